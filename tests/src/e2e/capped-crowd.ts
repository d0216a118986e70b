/** A crowd at one cap: many requests at once, a provider that uses part of each hold, and what must hold of it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@signalbox/runtime/clock';
import { admin } from '../harness/books.js';
import { until } from '../harness/client.js';
import type { Gateway } from '../harness/gateway.js';

/** Of one provider, and not a reasoning model: 0.4 USD in and 2 USD out, in nano-USD a token. */
const MODEL = 'mistralai/mistral-medium-3.1';
const INPUT_NANO_USD = 400n;
const OUTPUT_NANO_USD = 2_000n;
const MAX_TOKENS = 1_000;
const TRANCHE_TOKENS = 1_024;
const ANSWER_TOKENS_MIN = 64;
const RETRY_MS = 300;
/** Prompts end alike in length, so that every hold of a kind is the same. */
const PROMPT = 'Tell me something. ';

export interface PartialProvider {
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.setTimer(ms, resolve));

/** Takes 0.3 to 2 s and answers with 10 to 60 % of 1,024 tokens, never more than `max_tokens`. */
export async function startPartialProvider(): Promise<PartialProvider> {
  let draws = 1;
  const draw = (): number => {
    draws = (Math.imul(draws, 1_664_525) + 1_013_904_223) >>> 0;
    return draws / 2 ** 32;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as { readonly stream?: boolean; readonly max_tokens?: number };
    const tokens = Math.min(body.max_tokens ?? Infinity, Math.floor(TRANCHE_TOKENS * (0.1 + 0.5 * draw())));
    await wait(300 + 1_700 * draw());
    const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens };
    const finishReason = tokens === body.max_tokens ? 'length' : 'stop';
    const said = 'text '.repeat(Math.ceil((tokens * 2) / 5));
    const base = { id: 'x', created: 1, model: 'm' };
    if (body.stream !== true) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: finishReason }], usage }));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    const chunk = (choices: readonly object[], more: object = {}): string => `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
    response.end(`${chunk([{ index: 0, delta: { role: 'assistant', content: said }, finish_reason: null }])}${chunk([{ index: 0, delta: {}, finish_reason: finishReason }])}${chunk([], { usage })}data: [DONE]\n\n`);
  };
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    environment: { MISTRAL_API_KEY: 'upstream', MISTRAL_BASE_URL: `http://127.0.0.1:${String(port)}/v1` },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface RefusalMetadata {
  readonly limit_source?: string;
  readonly limit_usd?: number;
  readonly spend_usd?: number;
  readonly reserved_usd?: number;
}

export interface CrowdReport {
  readonly answered: number;
  /** 402 for live holds, each asked again. */
  readonly blocked: number;
  /** 402 for what is spent. */
  readonly capped: number;
  /** Faults of our own on a busy machine, each asked again: they refuse nobody for money. */
  readonly faults: number;
  readonly capNanoUsd: bigint;
  readonly spentNanoUsd: bigint;
  readonly reservedNanoUsd: bigint;
  /** What broke a promise: other statuses, refusals with room, missing headers. */
  readonly wrong: readonly string[];
}

const nano = (usd: number | undefined): bigint => BigInt(Math.round((usd ?? Number.NaN) * 1e9));

/** `requests` clients at once, spread over the edges, each until it is answered or the cap is spent. */
export async function runCrowd(gateway: Gateway, edges: readonly string[], requests: number, capHolds: number): Promise<CrowdReport> {
  const prompt = `${PROMPT}0000`;
  const messages = [{ role: 'user', content: prompt }];
  const promptTokensMax = BigInt(Buffer.byteLength(JSON.stringify(messages)) + 16);
  const holdOf = (tokens: number): bigint => promptTokensMax * INPUT_NANO_USD + BigInt(tokens) * OUTPUT_NANO_USD;
  const capNanoUsd = holdOf(TRANCHE_TOKENS) * BigInt(capHolds);
  const { account } = await admin<{ account: { id: string } }>(gateway, '/accounts', 'POST', { name: 'crowd', tier: 'enterprise', cost_cap_usd: `${capNanoUsd / 1_000_000_000n}.${String(capNanoUsd % 1_000_000_000n).padStart(9, '0')}`, cost_cap_period: 'total' });
  const { key } = await admin<{ key: { key: string } }>(gateway, '/keys', 'POST', { account_id: account.id, name: 'crowd' });
  const wrong: string[] = [];
  const counts = { answered: 0, blocked: 0, capped: 0, faults: 0 };

  const client = async (index: number): Promise<void> => {
    const stream = index % 2 === 0;
    const body = JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: `${PROMPT}${String(index).padStart(4, '0')}` }], ...(stream ? {} : { max_tokens: MAX_TOKENS }) });
    const hold = holdOf(stream ? TRANCHE_TOKENS : MAX_TOKENS);
    for (;;) {
      const response = await fetch(`${edges[index % edges.length] ?? ''}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' }, body, signal: AbortSignal.timeout(60_000) });
      const text = await response.text();
      if (response.status === 200) {
        if (stream && !text.trimEnd().endsWith('data: [DONE]')) wrong.push('a stream without its end');
        counts.answered += 1;
        return;
      }
      if (response.status === 500 || response.status === 503) {
        counts.faults += 1;
        await wait(RETRY_MS);
        continue;
      }
      if (response.status !== 402) {
        wrong.push(`${String(response.status)} ${text.slice(0, 200)}`);
        return;
      }
      const { error } = JSON.parse(text) as { readonly error: { readonly metadata: RefusalMetadata } };
      const { limit_source: source, limit_usd: limitUsd, spend_usd: spendUsd, reserved_usd: reservedUsd } = error.metadata;
      const [limit, spent, reserved] = [nano(limitUsd), nano(spendUsd), nano(reservedUsd)];
      if (source !== 'in_flight') {
        if (spent + holdOf(ANSWER_TOKENS_MIN) <= limit) wrong.push(`refused with room: ${text.slice(0, 300)}`);
        counts.capped += 1;
        return;
      }
      const asked = hold < limit - spent ? hold : limit - spent;
      if (spent + reserved + asked <= limit) wrong.push(`blocked with room: ${text.slice(0, 300)}`);
      const retryAfter = Number(response.headers.get('retry-after'));
      if (!(retryAfter >= 1 && retryAfter <= 5)) wrong.push(`Retry-After ${String(response.headers.get('retry-after'))}`);
      counts.blocked += 1;
      await wait(RETRY_MS);
    }
  };
  await Promise.all(Array.from({ length: requests }, (_, index) => client(index).catch((error: unknown) => void wrong.push(error instanceof Error ? error.message : 'unknown'))));

  let quota = { settled_nano_usd: '0', reserved_nano_usd: '-1' };
  await until(async () => (quota = await admin<typeof quota>(gateway, `/quota?account=${account.id}`)).reserved_nano_usd === '0', 20_000, 100, 'the holds to end');
  return { ...counts, capNanoUsd, spentNanoUsd: BigInt(quota.settled_nano_usd), reservedNanoUsd: BigInt(quota.reserved_nano_usd), wrong };
}
