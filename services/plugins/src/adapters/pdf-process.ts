/** Reads PDFs in processes of their own, each bounded in time and memory, a few at once. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { PdfProblem, PdfText, ReadPdf } from '../domain/ports.js';
import { createFairLine } from '../domain/fair-line.js';

const PROGRAM = fileURLToPath(new URL('../../pdf-worker/extract.mjs', import.meta.url));
const MEBIBYTE = 1_024 * 1_024;
/** How often the memory of a process is looked at: what it may take in between is small against the bound. */
const WATCH_MS = 25;
const TEXT_CHARS_MAX = 1_000_000;
const ANSWER_BYTES_MAX = 16 * MEBIBYTE;
/** Behind the gateway's own work. */
const NICENESS = 10;
const BYTES_PER_PAGE = 4_096;
/** The unit of processor time in `/proc`, whatever the kernel's own. */
const MS_PER_TICK = 10;
/** Of the time that a file may take, what its process must have computed for to be called slow: with less, the machine had no time for it. */
const SLOW_SHARE = 0.9;
/** Files of one account that may wait for a process. */
const WAITING_OF_AN_ACCOUNT_MAX = 20;

export interface PdfProcessOptions {
  readonly clock: Clock;
  /** From the start of the process to its answer. */
  readonly timeoutMs: number;
  readonly memoryMib: number;
  readonly processesMax: number;
  /** Processor time that a process has used so far, in milliseconds; undefined where the system does not say. */
  readonly processorMs?: (pid: number) => Promise<number | undefined>;
}

type Answer = PdfText | { readonly problem: PdfProblem };

/** Resident bytes of a process; undefined where the system does not say. */
async function residentBytes(pid: number): Promise<number | undefined> {
  try {
    return Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]) * BYTES_PER_PAGE;
  } catch {
    return undefined;
  }
}

/** As `PdfProcessOptions.processorMs`, of all its threads. */
async function processorMsOf(pid: number): Promise<number | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name, in brackets, may hold anything.
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
        // A file is slow by what it made us compute; one that never got that far met a busy machine, which is no fault of its sender's.
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
          // It runs all the same.
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
        // The engine aborts itself when its heap is full, and the system may end what takes too much.
        end(answer ?? { problem: killedBy === 'SIGABRT' || killedBy === 'SIGKILL' || killedBy === 'SIGTRAP' || code === 134 ? 'memory' : 'broken' });
      });
      // A process that ended before it read everything is told of by `close`.
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
