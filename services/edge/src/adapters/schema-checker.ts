/** Validates answers against clients' JSON schemas in a worker thread: started when needed, ended when it hangs or has been idle for long. */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { LiveMap } from '@signalbox/kernel/live-map';
import { createFloodGuard } from '../domain/flood.js';
import type { SchemaCheck } from '../domain/healing.js';

/** A schema is compiled in a few milliseconds; a pattern that backtracks for ever is not waited for. */
const ANSWER_MS = 1_000;
/** A thread takes some tenths of a second to start, on a busy machine more. */
const START_MS = 5_000;
const IDLE_MS = 60_000;
/** Beyond it nobody would be answered in time. */
const WAITING_MAX = 256;
const TEXT_CHARS_MAX = 1_048_576;
/** A schema that hung the thread is not asked again; the oldest is forgotten. */
const HOSTILE_MAX = 100;
/** An account whose schemas hung the thread more often within a minute is not asked for until the minute is over: all accounts share the thread. */
const HANGS_PER_MINUTE_MAX = 2;
/** How often what stood behind a schema that hung the thread is asked again. */
const ASKED_AGAIN_MAX = 4;
const HEAP_MB_MAX = 64;
/** One to compile, so that the compiler is ready when the first client's is asked. */
const GREETING = '{"type":"null"}';

export interface SchemaThread {
  post(message: { readonly id: number; readonly schema: string; readonly text: string }): void;
  onMessage(listener: (message: { readonly id: number; readonly verdict: boolean | undefined }) => void): void;
  /** Called when it is gone, whyever. */
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
  // What ends it is told by its exit.
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
  /** How often it stood behind one that hung the thread. */
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
  /** The thread has answered what it is greeted with. */
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

  /** The thread answers in turn: what is first in line is what it hangs at. What stands behind it is asked of another thread. */
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
    // First in line, so that no client's schema is blamed for a slow start.
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
