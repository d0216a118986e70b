/** `npm run bench`: every candidate in one run, turn by turn, then medians, ratios and verdicts. */
import { systemClock } from '@signalbox/runtime/clock';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArguments } from './arguments.js';
import { isPinned, moveTo } from './child.js';
import { LoadGenerator } from './load.js';
import { FULL, Measurer, PARTS, QUICK, type TargetReport } from './measurer.js';
import { timeDecision, timeLink } from './micro.js';
import { median } from './statistics.js';
import { LOAD_CORE, startPassThrough, startPassThroughTwice, startPortkey, startProvider, startSignalbox, type Target } from './targets.js';
import { soak, type SoakReport } from './soak.js';
import { printed, rowsOf, soakPrinted, type Run } from './verdicts.js';

const RESULTS = fileURLToPath(new URL('../results', import.meta.url));
const SETTLE_MS = 5_000;
const say = (text: string): boolean => process.stderr.write(`bench: ${text}\n`);

/** Milliseconds from spawning an all-in-one whose data exists to its first answer. */
async function timeSecondStart(provider: string, starts: number): Promise<number> {
  const first = await startSignalbox({ mode: 'standalone', provider });
  const { dataDir, key } = first;
  const kept = { dataDir, key };
  try {
    await answerOnce(first);
  } finally {
    // Ends the process and keeps the folder for the starts that count.
    await first.stopProcess();
  }
  const times: number[] = [];
  try {
    for (let start = 0; start < starts; start += 1) {
      const began = systemClock.monotonicMs();
      const again = await startSignalbox({ mode: 'standalone', provider, kept });
      try {
        await answerOnce(again);
        times.push(systemClock.monotonicMs() - began);
      } finally {
        await again.stop();
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  return median(times);
}

async function answerOnce(target: Target): Promise<void> {
  const load = new LoadGenerator(target.origin, systemClock);
  const body = Buffer.from(JSON.stringify({ model: target.model, messages: [{ role: 'user', content: 'Hello!' }] }));
  try {
    const { failures, firstFailure } = await load.closed({ path: '/v1/chat/completions', headers: target.headers, body }, 1, 1);
    if (failures > 0) throw new Error(`${target.name} answered ${firstFailure} to a plain request.`);
  } finally {
    await load.close();
  }
}

/** Writes what was measured, and on what; answers where. */
function keep(suffix: string, report: object): string {
  mkdirSync(RESULTS, { recursive: true });
  const date = new Date(systemClock.nowMs()).toISOString();
  const file = join(RESULTS, `${date.replaceAll(':', '-')}${suffix}.json`);
  const facts = { date, node: process.version, cpu: cpus()[0]?.model ?? '', cores: cpus().length, pinned: isPinned() };
  writeFileSync(file, `${JSON.stringify({ ...facts, ...report }, undefined, 2)}\n`);
  return file;
}

/** One way of running after the other, so that each has its core to itself. */
async function soakAll(modes: readonly ('split' | 'standalone')[], minutes: number): Promise<void> {
  moveTo(LOAD_CORE);
  const provider = await startProvider();
  const reports: SoakReport[] = [];
  try {
    for (const mode of modes) {
      say(`soak of ${String(minutes)} min: ${mode}`);
      const target = await startSignalbox({ mode, provider: provider.origin });
      try {
        reports.push(await soak(target, minutes));
      } finally {
        await target.stop();
      }
    }
    process.stdout.write(`${soakPrinted(reports)}\n\nwritten to ${keep('-soak', { reports })}\n`);
  } finally {
    await provider.stop();
  }
}

async function main(): Promise<void> {
  const { isQuick, withPortkey, portkeyDir, modes, profileDir, soakMinutes } = parseArguments(process.argv.slice(2));
  if (soakMinutes !== undefined) return soakAll(modes, soakMinutes);
  const plan = isQuick ? QUICK : FULL;
  moveTo(LOAD_CORE);
  const provider = await startProvider();
  const measurers: Measurer[] = [];
  const enter = async (target: Promise<Target>): Promise<void> => {
    const measurer = new Measurer(await target, plan);
    measurers.push(measurer);
    await answerOnce(measurer.target);
  };
  const problems: string[] = [];
  try {
    await enter(Promise.resolve(provider));
    await enter(startPassThrough(provider.origin));
    await enter(startPassThroughTwice(provider.origin));
    if (withPortkey) await enter(startPortkey(provider.origin, portkeyDir === undefined ? undefined : resolve(portkeyDir)));
    for (const mode of modes) {
      const profiles = profileDir === undefined ? undefined : join(resolve(profileDir), mode);
      await enter(startSignalbox({ mode, provider: provider.origin, profileDir: profiles })).catch((error: unknown) => problems.push(`${mode}: ${error instanceof Error ? error.message : 'unknown'}`));
    }
    for (const problem of problems) say(problem);
    for (const measurer of measurers) await measurer.warmUp();
    for (const part of PARTS) {
      say(part);
      // By part and turn, not by candidate: the drift of minutes falls on all alike.
      for (let turn = 0; turn < plan.parts[part].turns; turn += 1) for (const measurer of measurers) await measurer.turn(part);
    }
    say('idle');
    // What they still had to book is done by then, and what they gathered collected.
    await new Promise<void>((resolve) => systemClock.setTimer(SETTLE_MS, resolve));
    await Promise.all(measurers.map((measurer) => measurer.idle()));
    const targets: TargetReport[] = measurers.map((measurer) => measurer.report());
    // Idle gateways must not share the core with what is timed next.
    for (const measurer of measurers.splice(1)) await finish(measurer);
    say('second start, decision, Link');
    const hasStandalone = targets.some(({ name }) => name === 'standalone');
    const run: Run = {
      targets,
      secondStartMs: hasStandalone ? await timeSecondStart(provider.origin, isQuick ? 1 : 3) : Number.NaN,
      pinnedUs: timeDecision('maker/m20', isQuick ? 5_000 : 20_000),
      autoUs: timeDecision('auto', isQuick ? 3_000 : 10_000),
      link: await timeLink(isQuick ? 20_000 : 60_000),
    };
    const file = keep('', { quick: isQuick, profiled: profileDir !== undefined, problems, ...run, budgets: rowsOf(run) });
    process.stdout.write(`${printed(run)}\n\n${isPinned() ? 'one core for each gateway, one for the load' : 'not pinned: no taskset here'}; written to ${file}\n`);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    for (const measurer of measurers) await finish(measurer);
  }
}

async function finish(measurer: Measurer): Promise<void> {
  await measurer.close();
  await measurer.target.stop();
}

try {
  await main();
} catch (error) {
  say(error instanceof Error ? error.message : 'failed');
  process.exitCode = 1;
}
