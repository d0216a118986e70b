/** Reads each PDF in a separate process with limits on time and memory, a few at once. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { PdfProblem, PdfText, ReadPdf } from '../domain/ports.js';
import { createFairLine } from '../domain/fair-line.js';

const PROGRAM = fileURLToPath(new URL('../../pdf-worker/extract.mjs', import.meta.url));
const MEBIBYTE = 1_024 * 1_024;
/** Interval of checks of a process's memory. What it can allocate in between is small against the limit. */
const WATCH_MS = 25;
const TEXT_CHARS_MAX = 1_000_000;
const ANSWER_BYTES_MAX = 16 * MEBIBYTE;
/** Lower priority than the gateway's own work. */
const NICENESS = 10;
const BYTES_PER_PAGE = 4_096;
/** Unit of processor time in `/proc`, on every kernel. */
const MS_PER_TICK = 10;
/** A file counts as slow if its process used this share of the time limit as processor time. With less, the machine was too busy to run it. */
const SLOW_SHARE = 0.9;
/** Most files of one account that may wait for a process. */
const WAITING_OF_AN_ACCOUNT_MAX = 20;

export interface PdfProcessOptions {
  readonly clock: Clock;
  /** From the start of the process to its answer. */
  readonly timeoutMs: number;
  readonly memoryMib: number;
  readonly processesMax: number;
  /** Processor time that a process has used, in milliseconds; undefined if the system does not report it. */
  readonly processorMs?: (pid: number) => Promise<number | undefined>;
}

type Answer = PdfText | { readonly problem: PdfProblem };

/** Resident bytes of a process; undefined if the system does not report them. */
async function residentBytes(pid: number): Promise<number | undefined> {
  try {
    return Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]) * BYTES_PER_PAGE;
  } catch {
    return undefined;
  }
}

/** Implements `PdfProcessOptions.processorMs`, for all threads of the process. */
async function processorMsOf(pid: number): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The process name, in brackets, may contain any characters.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined;
  } catch {
    return undefined;
  }
}

function answerOf(text: string): Answer | undefined {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return undefined;
  }
}

export function createPdfProcess({ clock, timeoutMs, memoryMib, processesMax, processorMs = processorMsOf }: PdfProcessOptions): ReadPdf {
  const { enter, leave } = createFairLine({ placesMax: processesMax, waitingOfAccountMax: WAITING_OF_AN_ACCOUNT_MAX });

  const run = (bytes: Buffer, maxPages: number, signal: AbortSignal): Promise<Answer> =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [`--max-old-space-size=${Math.floor(memoryMib / 2)}`, PROGRAM, String(maxPages), String(TEXT_CHARS_MAX)], { env: {}, stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
      let isOver = false;
      let watch: Timer | undefined;
      const parts: Buffer[] = [];
      let size = 0;
      const end = (answer: Answer): void => {
        if (isOver) return;
        isOver = true;
        late.cancel();
        watch?.cancel();
        signal.removeEventListener('abort', onAbort);
        child.kill('SIGKILL');
        resolve(answer);
      };
      const onLate = (): void => {
        // Blame the file only if it used the processor. Otherwise the machine was busy, which is not the client's fault.
        void processorMs(child.pid ?? 0).then((used) => end({ problem: used === undefined || used >= SLOW_SHARE * timeoutMs ? 'timeout' : 'unavailable' }));
      };
      const late = clock.setTimer(timeoutMs, onLate, { unref: true });
      const onAbort = (): void => end({ problem: 'unavailable' });
      signal.addEventListener('abort', onAbort, { once: true });
      const look = (): void => {
        void residentBytes(child.pid ?? 0).then((resident) => {
          if (isOver) return;
          if (resident !== undefined && resident > memoryMib * MEBIBYTE) end({ problem: 'memory' });
          else watch = clock.setTimer(WATCH_MS, look, { unref: true });
        });
      };
      child.on('error', () => end({ problem: 'unavailable' }));
      child.on('spawn', () => {
        try {
          setPriority(child.pid ?? 0, NICENESS);
        } catch {
          // The process runs all the same.
        }
        look();
      });
      child.stdout.on('data', (part: Buffer) => {
        size += part.length;
        if (size > ANSWER_BYTES_MAX) end({ problem: 'too-large' });
        else parts.push(part);
      });
      child.on('close', (code, killedBy) => {
        const answer = code === 0 ? answerOf(Buffer.concat(parts).toString('utf8')) : undefined;
        // V8 aborts the process if its heap is full, and the kernel may kill one that uses too much memory.
        end(answer ?? { problem: killedBy === 'SIGABRT' || killedBy === 'SIGKILL' || killedBy === 'SIGTRAP' || code === 134 ? 'memory' : 'broken' });
      });
      // If the process ends before it has read everything, `close` reports it.
      child.stdin.on('error', () => undefined);
      child.stdin.end(bytes);
    });

  return async (bytes, { accountId, maxPages, signal }) => {
    if (!(await enter(accountId, signal))) return { problem: 'unavailable' };
    try {
      return await run(bytes, maxPages, signal);
    } finally {
      leave(accountId);
    }
  };
}
