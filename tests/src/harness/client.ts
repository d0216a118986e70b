/** A bounded load on a gateway, and what its clients received. */
import { systemClock } from '@signalbox/runtime/clock';

/** One complete 200 answer: a stream up to `[DONE]`, or a plain body. */
export interface SeenAnswer {
  readonly requestId: string;
  /** From the header or the trailer; undefined if only an estimate was reported. */
  readonly costUsd: string | undefined;
}

export interface SeenLoad {
  readonly answers: readonly SeenAnswer[];
  /** Statuses other than 200, and `reset` for a broken connection. */
  readonly others: Readonly<Record<string, number>>;
}

export interface LoadOptions {
  /** Base URLs of all replicas, used round robin by connections. */
  readonly baseUrls: readonly string[];
  readonly key: string;
  readonly connections: number;
  readonly untilMs: number;
  /** Prompt with directives for the simulator, see its README. */
  readonly prompt?: string;
}

const REQUEST_MS = 20_000;

/** Requests a chat completion; never rejects. */
export async function ask(baseUrl: string, key: string, body: Readonly<Record<string, unknown>>): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
  try {
    const response = await fetch(`${baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const { status, headers } = response;
    return { status, headers, text: await response.text() };
  } catch {
    return { status: 0, headers: new Headers(), text: '' };
  }
}

/** Sends streamed and plain requests, one at a time per connection, until `untilMs`. */
export async function load({ baseUrls, key, connections, untilMs, prompt = 'hello [sim:chunk-delay-ms=5]' }: LoadOptions): Promise<SeenLoad> {
  const answers: SeenAnswer[] = [];
  const others: Record<string, number> = {};
  const connection = async (index: number): Promise<void> => {
    const baseUrl = baseUrls[index % baseUrls.length] ?? '';
    for (let turn = 0; systemClock.monotonicMs() < untilMs; turn += 1) {
      const stream = (index + turn) % 2 === 0;
      const { status, text, headers } = await ask(baseUrl, key, { model: 'auto', stream, messages: [{ role: 'user', content: `${prompt} ${index}.${turn}` }] });
      const isWhole = status === 200 && (stream ? text.trimEnd().endsWith('[DONE]') && !text.includes('"finish_reason":"error"') : text !== '');
      if (isWhole) answers.push({ requestId: headers.get('x-request-id') ?? '', costUsd: stream ? undefined : (headers.get('x-router-cost') ?? undefined) });
      else {
        const name = status === 0 ? 'reset' : String(status);
        others[name] = (others[name] ?? 0) + 1;
        // A refused connection fails at once, so wait a little instead of spinning.
        if (status === 0) await until(() => Promise.resolve(false), 50, 50).catch(() => undefined);
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, index) => connection(index)));
  return { answers, others };
}

/** Polls until `check` holds; rejects after `deadlineMs`. */
export async function until(check: () => Promise<boolean>, deadlineMs: number, everyMs = 100, what = 'the condition'): Promise<void> {
  const end = systemClock.monotonicMs() + deadlineMs;
  while (!(await check())) {
    if (systemClock.monotonicMs() >= end) throw new Error(`Waited ${deadlineMs} ms for ${what}.`);
    await new Promise<void>((resolve) => void systemClock.setTimer(everyMs, resolve));
  }
}
