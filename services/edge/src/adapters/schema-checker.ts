/** Validates answers against clients' JSON schemas in a worker thread: started when needed, ended when it hangs or has been idle for long. */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { LiveMap } from '@signalbox/kernel/live-map';
import { createFloodGuard } from '../domain/flood.js';
import type { SchemaCheck } from '../domain/healing.js';

/** Limit of one check. A schema compiles in a few milliseconds; a pattern that backtracks without end is given up. */
const ANSWER_MS = 1_000;
/** Limit of a thread's start, which takes some tenths of a second, on a busy machine more. */
const START_MS = 5_000;
const IDLE_MS = 60_000;
/** Most waiting checks; further ones get no verdict, since they would not be answered in time. */
const WAITING_MAX = 256;
const TEXT_CHARS_MAX = 1_048_576;
/** Schemas remembered because they hung the thread, which are not checked again; beyond it the oldest is forgotten. */
const HOSTILE_MAX = 100;
/** If an account's schemas hang the thread more often within a minute, none of its schemas is checked until the minute is over: all accounts share the thread. */
const HANGS_PER_MINUTE_MAX = 2;
/** How often a check that waited behind a hanging one is asked again. */
const ASKED_AGAIN_MAX = 4;
const HEAP_MB_MAX = 64;
/** A schema that is compiled first, so that the compiler is loaded before a client's schema is checked. */
const GREETING = '{"type":"null"}';

export interface SchemaThread {
  post(message: { readonly id: number; readonly schema: string; readonly text: string }): void;
  onMessage(listener: (message: { readonly id: number; readonly verdict: boolean | undefined }) => void): void;
  /** Called when the thread has ended, for any reason. */
  onExit(listener: () => void): void;
  end(): Promise<unknown>;
}

export interface SchemaChecker {
  readonly check: SchemaCheck;
  stop(): Promise<void>;
}

function startThread(): SchemaThread {
  const worker = new Worker(new URL('./schema-thread.js', import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX } });
  worker.unref();
  // An error ends the thread, and `exit` follows.
  worker.on('error', () => undefined);
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (listener) => void worker.on('message', listener),
    onExit: (listener) => void worker.on('exit', listener),
    end: () => worker.terminate(),
  };
}

interface Question {
  readonly accountId: string;
  readonly schema: string;
  readonly text: string;
  /** How often it waited behind one that hung the thread. */
  readonly held: number;
  readonly resolve: (verdict: boolean | undefined) => void;
}

export function createSchemaChecker({ clock, start = startThread }: { readonly clock: Clock; readonly start?: () => SchemaThread }): SchemaChecker {
  let waiting = new LiveMap<number, Question>();
  const hostile = new Set<string>(); // kept: schemas that hung the thread.
  const hangs = createFloodGuard(clock, HANGS_PER_MINUTE_MAX, 60_000);
  let thread: SchemaThread | undefined;
  let deadline: Timer | undefined;
  let idle: Timer | undefined;
  let lastId = 0;
  /** The thread has answered `GREETING`. */
  let isWarm = false;

  const drop = (): Promise<unknown> => {
    const gone = thread;
    thread = undefined;
    deadline?.cancel();
    deadline = undefined;
    idle?.cancel();
    const unanswered = [...waiting.values()];
    waiting = new LiveMap();
    for (const { resolve } of unanswered) resolve(undefined);
    return gone?.end() ?? Promise.resolve();
  };

  /** The thread works in order, so it hangs at the first waiting check. Those behind it are asked of a new thread. */
  const hang = (): void => {
    const [first] = waiting.values();
    const again: Question[] = [];
    if (first !== undefined && first.schema !== GREETING) {
      hostile.add(first.schema);
      hangs.note(first.accountId);
      for (const [id, question] of waiting) {
        if (question.schema === first.schema || question.held >= ASKED_AGAIN_MAX || hangs.waitMs(question.accountId) > 0) continue;
        waiting.delete(id);
        again.push({ ...question, held: question.held + 1 });
      }
    }
    const oldest = hostile.size > HOSTILE_MAX ? hostile.values().next().value : undefined;
    if (oldest !== undefined) hostile.delete(oldest);
    void drop();
    for (const question of again) ask(running(), question);
  };

  const watch = (): void => {
    deadline?.cancel();
    deadline = waiting.size === 0 ? undefined : clock.setTimer(isWarm ? ANSWER_MS : START_MS, hang, { unref: true });
    idle?.cancel();
    if (waiting.size === 0 && thread !== undefined) idle = clock.setTimer(IDLE_MS, () => void drop(), { unref: true });
  };

  const running = (): SchemaThread => {
    if (thread !== undefined) return thread;
    const started = start();
    thread = started;
    isWarm = false;
    started.onMessage(({ id, verdict }) => {
      isWarm = true;
      const asked = waiting.get(id);
      if (asked === undefined) return;
      waiting.delete(id);
      asked.resolve(verdict);
      watch();
    });
    started.onExit(() => {
      if (thread === started) hang();
    });
    // Asked first, so that a slow start is not taken for a client's schema that hangs.
    ask(started, { accountId: '', schema: GREETING, text: 'null', held: 0, resolve: () => undefined });
    return started;
  };

  const ask = (asked: SchemaThread, question: Question): void => {
    const id = (lastId += 1);
    waiting.set(id, question);
    asked.post({ id, schema: question.schema, text: question.text });
    if (waiting.size === 1) watch();
  };

  return {
    check: (accountId, schema, text) => {
      if (hostile.has(schema) || hangs.waitMs(accountId) > 0 || waiting.size >= WAITING_MAX || text.length > TEXT_CHARS_MAX) return Promise.resolve(undefined);
      return new Promise((resolve) => ask(running(), { accountId, schema, text, held: 0, resolve }));
    },
    stop: async () => {
      await drop();
    },
  };
}
