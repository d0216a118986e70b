/** Open-loop load: clients arrive at a fixed mean rate, whatever happens to earlier ones. */
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { systemClock } from '@signalbox/runtime/clock';
import type { Random } from '@signalbox/sim/random';

export interface ClientAccount {
  readonly id: string;
  readonly key: string;
}

/** What one client saw. */
export interface SeenRequest {
  readonly accountId: string;
  /** Part of the prompt, since a client that leaves early never learns the request's id. */
  readonly client: string;
  readonly isStream: boolean;
  /** Value of X-Request-Id; empty if no response head arrived. */
  requestId: string;
  readonly beganMs: number;
  endedMs: number;
  /** 0 = no response head arrived. */
  status: number;
  /** `error.code` of a refusal, if its body had one. */
  code: string;
  /** The body was complete: `[DONE]` without an error before it, or a whole JSON body. */
  isWhole: boolean;
  hungUp: boolean;
  /** Cost in USD from the header or the trailer. */
  costUsd: string | undefined;
}

export const MAX_TOKENS = 300;
export const PROMPT_BYTES_MAX = 600;
const CLIENT_BYTES_MAX = 16;
/** Reads the client's name from the prompt. */
export const clientOf = (prompt: string): string => prompt.slice(0, Math.max(0, prompt.indexOf(' ')));
const MODEL = 'openai/gpt-4o-mini';
const PATIENCE_MS = 90_000;

export interface Load {
  readonly seen: readonly SeenRequest[];
  /** Number of running requests. */
  inFlight(accountId: string): number;
  /** Starts no more clients; resolves when all have finished. */
  end(): Promise<void>;
}

interface LoadOptions {
  readonly random: Random;
  readonly edges: () => readonly string[];
  readonly accounts: readonly ClientAccount[];
  /** One letter, with which the names of its clients begin. */
  readonly letter: string;
  readonly perSecond: number;
}

export function startLoad({ random, edges, accounts, letter, perSecond }: LoadOptions): Load {
  const seen: SeenRequest[] = [];
  const open = new Set<SeenRequest>();
  const waiters: (() => void)[] = [];
  let isOver = false;

  const begin = (): void => {
    if (isOver) return;
    systemClock.setTimer((1_000 / perSecond) * 2 * random.next(), begin);
    const account = random.pick(accounts);
    const one: SeenRequest = { accountId: account.id, client: `${letter}${seen.length}`, isStream: random.chance(0.6), requestId: '', beganMs: systemClock.monotonicMs(), endedMs: 0, status: 0, code: '', isWhole: false, hungUp: false, costUsd: undefined };
    seen.push(one);
    open.add(one);
    ask(one, account, random.pick(edges()), random, () => {
      if (!open.delete(one)) return;
      one.endedMs = systemClock.monotonicMs();
      if (isOver && open.size === 0) for (const wake of waiters.splice(0)) wake();
    });
  };
  begin();
  return {
    seen,
    inFlight: (accountId) => [...open].filter((one) => one.accountId === accountId).length,
    end: () => {
      isOver = true;
      return open.size === 0 ? Promise.resolve() : new Promise((resolve) => void waiters.push(resolve));
    },
  };
}

function ask(one: SeenRequest, account: ClientAccount, edge: string, random: Random, onOver: () => void): void {
  const { isStream } = one;
  const content = `${one.client} ${'p'.repeat(random.int(10, PROMPT_BYTES_MAX - CLIENT_BYTES_MAX))}`;
  const body = JSON.stringify({ model: MODEL, stream: isStream, max_tokens: random.int(20, MAX_TOKENS), messages: [{ role: 'user', content }] });
  const leavesAfterMs = random.chance(0.1) ? random.int(1, random.chance(0.4) ? 300 : 1_500) : undefined;
  const isSlow = random.chance(0.05);
  const call: ClientRequest = httpRequest(`${edge}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json', te: 'trailers' }, agent: false });
  const timer = systemClock.setTimer(leavesAfterMs ?? PATIENCE_MS, () => {
    one.hungUp = true;
    call.destroy();
  });
  call.on('response', (response) => receive(one, response, isStream, isSlow ? random.int(10, 60) : 0));
  call.on('error', () => undefined);
  call.on('close', () => {
    timer.cancel();
    onOver();
  });
  call.end(body);
}

function receive(one: SeenRequest, response: IncomingMessage, isStream: boolean, pauseMs: number): void {
  one.status = response.statusCode ?? 0;
  one.requestId = String(response.headers['x-request-id'] ?? '');
  let tail = '';
  let hasError = false;
  response.on('data', (part: Buffer) => {
    tail = (tail + part.toString()).slice(-4_000);
    hasError ||= part.includes('"finish_reason":"error"') || part.includes('"error":');
    if (pauseMs === 0) return;
    response.pause();
    systemClock.setTimer(pauseMs, () => response.resume());
  });
  response.on('error', () => undefined);
  response.on('end', () => {
    if (one.status !== 200) {
      one.code = /"code":\s*"(\w+)"/.exec(tail)?.[1] ?? '';
      return;
    }
    one.isWhole = !hasError && (isStream ? tail.trimEnd().endsWith('[DONE]') : tail.trimEnd().endsWith('}'));
    const told = isStream ? response.trailers['x-router-cost'] : response.headers['x-router-cost'];
    if (one.isWhole && typeof told === 'string') one.costUsd = told;
  });
}
