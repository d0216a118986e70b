/** A provider with the OpenAI wire over HTTP that misbehaves at random and keeps its own bill. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { systemClock } from '@signalbox/runtime/clock';
import type { Random } from '@signalbox/sim/random';
import { clientOf } from './load.js';

export interface BillLine {
  /** `request/attempt`. */
  readonly id: string;
  readonly promptTokens: number;
  /** Name of the client, read from the prompt. */
  readonly client: string;
  /** A status was sent while the caller was still connected. */
  isHeaded: boolean;
  /** Output tokens generated so far. */
  generated: number;
  /** Figures of the usage frame, if it was sent completely. */
  told: { readonly prompt: number; readonly completion: number } | undefined;
}

export interface ChaosProvider {
  readonly baseUrl: string;
  readonly bill: ReadonlyMap<string, BillLine>;
  /** Attempts that arrived twice. */
  readonly doubles: readonly string[];
  stop(): Promise<void>;
}

const MODEL_OUTPUT_MAX = 400;
/** Share of streams with a delay before the first output. */
const THINKING_SHARE = 0.3;
const THINKING_MS_MAX = 1_500;
const sse = (value: object | string): string => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const chunk = (delta: object, finishReason: string | null): string => sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] });
const pause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.setTimer(ms, resolve));

async function bodyOf(request: IncomingMessage): Promise<{ readonly stream?: boolean; readonly max_tokens?: number; readonly messages?: readonly { readonly content: string }[] }> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString('utf8')) as Awaited<ReturnType<typeof bodyOf>>;
}

export async function startChaosProvider(random: Random): Promise<ChaosProvider> {
  const bill = new Map<string, BillLine>();
  const doubles: string[] = [];

  const head = (response: ServerResponse, line: BillLine, status: number, type: string): void => {
    line.isHeaded = !response.destroyed;
    response.writeHead(status, { 'content-type': type });
  };

  const refuse = (response: ServerResponse, line: BillLine): void => {
    head(response, line, random.pick([429, 500, 503]), 'application/json');
    response.end('{"error":{"message":"no"}}');
  };

  const stream = async (response: ServerResponse, line: BillLine, outputTokens: number, breaksAt: number, tells: boolean): Promise<void> => {
    if (random.chance(THINKING_SHARE)) await pause(random.int(50, THINKING_MS_MAX));
    head(response, line, 200, 'text/event-stream');
    const pauseMs = random.int(1, 60);
    while (line.generated < outputTokens) {
      if (response.destroyed) return;
      if (line.generated >= breaksAt) {
        response.destroy();
        return;
      }
      const tokens = Math.min(random.int(4, 40), outputTokens - line.generated);
      line.generated += tokens;
      response.write(chunk({ content: 'word'.repeat(tokens) }, null));
      await pause(pauseMs);
    }
    if (response.destroyed) return;
    response.write(chunk({}, 'stop'));
    if (tells) {
      line.told = { prompt: line.promptTokens, completion: line.generated };
      response.write(sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: line.promptTokens, completion_tokens: line.generated, total_tokens: line.promptTokens + line.generated } }));
    }
    response.end(sse('[DONE]'));
  };

  const answer = async (response: ServerResponse, line: BillLine, outputTokens: number, tells: boolean): Promise<void> => {
    await pause(random.int(5, 400));
    line.generated = outputTokens;
    if (tells) line.told = { prompt: line.promptTokens, completion: outputTokens };
    const usage = tells ? { usage: { prompt_tokens: line.promptTokens, completion_tokens: outputTokens, total_tokens: line.promptTokens + outputTokens } } : {};
    head(response, line, 200, 'application/json');
    response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'word'.repeat(outputTokens) }, finish_reason: 'stop' }], ...usage }));
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const id = String(request.headers['x-request-id']);
    const { stream: isStream = false, max_tokens: asked = MODEL_OUTPUT_MAX, messages = [] } = await bodyOf(request);
    if (bill.has(id)) doubles.push(id);
    const line: BillLine = { id, promptTokens: Math.max(1, Math.ceil((messages[0]?.content.length ?? 0) / random.int(2, 5))), client: clientOf(messages[0]?.content ?? ''), isHeaded: false, generated: 0, told: undefined };
    bill.set(id, line);
    if (random.chance(0.04)) {
      refuse(response, line);
      return;
    }
    const outputTokens = Math.min(random.int(1, MODEL_OUTPUT_MAX), asked);
    const tells = random.chance(0.9);
    if (isStream) await stream(response, line, outputTokens, random.chance(0.05) ? random.int(0, outputTokens) : Infinity, tells);
    else await answer(response, line, outputTokens, tells);
  };

  const server = createServer((request, response) => {
    response.on('error', () => undefined);
    serve(request, response).catch(() => response.destroy());
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    bill,
    doubles,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
