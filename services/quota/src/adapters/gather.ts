/**
 * Batches calls of Redis scripts. Calls that arrive in one turn of the event loop, or during a round trip, are sent in one
 * pipeline. Consecutive requests of one account for the same step share one script call. An account's calls keep their order.
 */
import type { RequestScript, ScriptName } from './scripts.js';

/** One call of a script. */
export interface ScriptCall {
  readonly name: ScriptName;
  readonly accountId: string;
  /** The script's arguments after the time. */
  readonly args: readonly string[];
  /** How many requests, or request ids, the call is about. */
  readonly size: number;
}

/** Result of a call: the script's answer, or an error. */
export type ScriptResult = { readonly answer: unknown } | { readonly error: Error };

export interface Gathered {
  /** Runs one step for one request. `terms` are the arguments that it may share with other requests, `own` the rest. Resolves with the request's part of the script's answer. */
  step(name: RequestScript, accountId: string, terms: readonly string[], own: readonly string[]): Promise<unknown>;
  /** Runs a script in a call that is not shared. */
  call(name: ScriptName, accountId: string, args: readonly string[]): Promise<unknown>;
}

export interface GatherOptions {
  /** Does one round trip. Results are in the order of the calls; never rejects. The next round trip begins only when this one has ended. */
  readonly send: (calls: readonly ScriptCall[]) => Promise<readonly ScriptResult[]>;
  /** Called as a round trip of `size` requests begins. Settles as `trip` does, or rejects if it is late: then its calls fail, and so do the queued ones behind it. No new round trip begins until the late one has ended. */
  readonly within?: (trip: Promise<readonly ScriptResult[]>, size: number) => Promise<unknown>;
  /** For tests: replaces setImmediate, which calls back after the current turn of the event loop. */
  readonly afterTurn?: (callback: () => void) => void;
}

/** Requests per script call. Other accounts wait while a script runs, and this many take it about a millisecond. */
const REQUESTS_MAX = 100;

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A call of a PER_REQUEST script, to which further requests may be added until it is sent. */
class Steps implements ScriptCall {
  readonly waiting: Waiting[] = [];
  private readonly terms: (readonly string[])[] = [];
  private readonly requests: string[] = [];

  constructor(
    readonly name: RequestScript,
    readonly accountId: string,
  ) {}

  get size(): number {
    return this.waiting.length;
  }

  get args(): readonly string[] {
    return [String(this.terms.length), ...this.terms.flat(), ...this.requests];
  }

  add(terms: readonly string[], own: readonly string[], waiting: Waiting): void {
    let at = this.terms.findIndex((known) => known.every((text, index) => text === terms[index]));
    if (at < 0) at = this.terms.push(terms) - 1;
    this.requests.push(String(at + 1), ...own);
    this.waiting.push(waiting);
  }

  settle(result: ScriptResult): void {
    const answers: readonly unknown[] = 'answer' in result && Array.isArray(result.answer) ? result.answer : [];
    for (const [index, { resolve, reject }] of this.waiting.entries()) {
      if (index < answers.length) resolve(answers[index]);
      else reject('error' in result ? result.error : new Error('the store answered out of turn'));
    }
  }
}

class Single implements ScriptCall {
  constructor(
    readonly name: ScriptName,
    readonly accountId: string,
    readonly args: readonly string[],
    private readonly waiting: Waiting,
  ) {}

  get size(): number {
    return this.args.length;
  }

  settle(result: ScriptResult): void {
    if ('error' in result) this.waiting.reject(result.error);
    else this.waiting.resolve(result.answer);
  }
}

export function createGather({ send, within = (trip) => trip, afterTurn = setImmediate }: GatherOptions): Gathered {
  let queue: (Steps | Single)[] = [];
  /** By account, its last queued call, if more requests can be added to it. */
  let growing = new Map<string, Steps>(); // kept: of one turn: dropped whole, never cleared.
  /** True from the first queued call until the round trip of the last one has ended. */
  let isBusy = false;
  /** A late round trip, until it ends or a new call queues behind it. */
  let overdue: Promise<readonly ScriptResult[]> | undefined;

  const watch = (trip: Promise<readonly ScriptResult[]>, calls: readonly (Steps | Single)[]): void => {
    let hasEnded = false;
    const end = (): void => void (hasEnded = true);
    trip.then(end, end);
    within(trip, calls.reduce((sum, { size }) => sum + size, 0)).catch((reason: unknown) => {
      if (hasEnded) return;
      const error = reason instanceof Error ? reason : new Error('unknown');
      const behind = queue;
      queue = [];
      growing = new Map();
      overdue = trip;
      for (const call of [...calls, ...behind]) call.settle({ error });
    });
  };
  const flush = (): void => {
    overdue = undefined;
    if (queue.length === 0) {
      isBusy = false;
      return;
    }
    const calls = queue;
    queue = [];
    growing = new Map();
    const trip = send(calls);
    watch(trip, calls);
    void trip.then((results) => {
      calls.forEach((call, index) => call.settle(results[index] ?? { error: new Error('the store did not answer') }));
      flush();
    });
  };
  const enqueue = (call: Steps | Single): void => {
    queue.push(call);
    if (overdue !== undefined) {
      const trip = overdue;
      overdue = undefined;
      watch(trip, []);
    }
    if (isBusy) return;
    isBusy = true;
    afterTurn(flush);
  };

  return {
    step: (name, accountId, terms, own) =>
      new Promise((resolve, reject) => {
        const latest = growing.get(accountId);
        const isOpen = latest !== undefined && latest.name === name && latest.waiting.length < REQUESTS_MAX;
        const steps = isOpen ? latest : new Steps(name, accountId);
        steps.add(terms, own, { resolve, reject });
        if (isOpen) return;
        growing.set(accountId, steps);
        enqueue(steps);
      }),
    call: (name, accountId, args) =>
      new Promise((resolve, reject) => {
        growing.delete(accountId);
        enqueue(new Single(name, accountId, args, { resolve, reject }));
      }),
  };
}
