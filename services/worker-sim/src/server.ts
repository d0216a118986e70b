/** The simulator's HTTP server: OpenAI's chat and image APIs on loopback. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock } from '@signalbox/kernel/clock';
import { readDirectives } from './domain/directives.js';
import { canvasOf, paint } from './domain/painting.js';
import { simulate, type Simulated, type SimulatedChoice } from './domain/answer.js';
import { logprobsOf, piecesOf, type Logprobs } from './domain/logprobs.js';

const BODY_BYTES_MAX = 64 * 1_024 * 1_024;
const IMAGES_MAX = 10;

export interface SimulatorServer {
  /** Resolves with the port, a free one on 127.0.0.1. */
  start(): Promise<number>;
  stop(): Promise<void>;
}

type Json = Readonly<Record<string, unknown>>;

function sendError(response: ServerResponse, status: number, message: string, retryAfter = 0): void {
  response.writeHead(status, { 'content-type': 'application/json', ...(retryAfter > 0 ? { 'retry-after': String(retryAfter) } : {}) });
  response.end(JSON.stringify({ error: { message, type: status >= 500 ? 'server_error' : 'invalid_request_error', param: null, code: status === 429 ? 'rate_limit_exceeded' : null } }));
}

async function readBody(request: IncomingMessage): Promise<Json | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  try {
    const parsed: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Json) : undefined;
  } catch {
    return undefined;
  }
}

function messageOf(choice: SimulatedChoice): object {
  if (choice.toolCalls.length === 0) return { role: 'assistant', content: choice.content, refusal: null };
  return { role: 'assistant', content: null, refusal: null, tool_calls: choice.toolCalls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } })) };
}

/** Log probabilities of a choice; none for tool calls, as with OpenAI. */
function probabilitiesOf(choice: SimulatedChoice, pieces: readonly string[], { alternatives }: Simulated): Logprobs | null {
  return alternatives === undefined || choice.toolCalls.length > 0 ? null : logprobsOf(pieces, alternatives);
}

/** Generates the pieces one at a time: log probabilities of 16,000 tokens take more than a second, during which nobody else would be served. */
export function* piecesToldOf(choice: SimulatedChoice, simulated: Simulated): Generator<{ readonly delta: object; readonly logprobs: Logprobs | null }> {
  for (const [index, call] of choice.toolCalls.entries()) {
    yield { delta: { tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] }, logprobs: null };
    yield { delta: { tool_calls: [{ index, function: { arguments: call.arguments } }] }, logprobs: null };
  }
  if (choice.toolCalls.length > 0) return;
  for (const content of piecesOf(choice.content)) yield { delta: { content }, logprobs: probabilitiesOf(choice, [content], simulated) };
}

export function createSimulatorServer(clock: Clock): SimulatorServer {
  let served = 0;
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimer(ms, resolve, { unref: true });
    });

  const stream = async (response: ServerResponse, envelope: Json, simulated: Simulated, withUsage: boolean): Promise<void> => {
    const { directives, choices, usage } = simulated;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const write = async (choice: object | undefined, told: Json = {}): Promise<void> => {
      const hasRoom = response.write(`data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices: choice === undefined ? [] : [choice], ...told })}\n\n`);
      if (!hasRoom && !response.destroyed) await new Promise<void>((resolve) => {
        const goOn = (): void => {
          response.off('drain', goOn).off('close', goOn);
          resolve();
        };
        response.once('drain', goOn).once('close', goOn);
      });
    };
    if (directives.empty) {
      response.end('data: [DONE]\n\n');
      return;
    }
    let sent = 0;
    for (const [index, choice] of choices.entries()) {
      await write({ index, delta: { role: 'assistant', content: choice.toolCalls.length > 0 ? null : '' }, logprobs: null, finish_reason: null });
      for (const told of piecesToldOf(choice, simulated)) {
        if (response.destroyed) return;
        if (sent === directives.cutAfter) {
          // Flush what was written before breaking the connection.
          response.write('', () => response.destroy());
          return;
        }
        if (directives.chunkDelayMs > 0) await pause(directives.chunkDelayMs);
        await write({ index, ...told, finish_reason: null });
        sent += 1;
      }
      await write({ index, delta: {}, logprobs: null, finish_reason: choice.finishReason });
    }
    if (withUsage && !directives.noUsage) await write(undefined, { usage });
    response.end('data: [DONE]\n\n');
  };

  const paintAll = (response: ServerResponse, { prompt, size, n = 1 }: Json): void => {
    const canvas = typeof size === 'string' ? canvasOf(size) : undefined;
    if (typeof prompt !== 'string' || prompt === '' || canvas === undefined || typeof n !== 'number' || !Number.isInteger(n) || n < 1 || n > IMAGES_MAX) {
      sendError(response, 400, `The simulator paints a prompt, of a size such as 1024x1024, up to ${String(IMAGES_MAX)} times.`);
      return;
    }
    const { imageStatus, retryAfter } = readDirectives(prompt);
    if (imageStatus >= 400) {
      sendError(response, imageStatus, `Simulated failure ${String(imageStatus)}.`, retryAfter);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ created: Math.floor(clock.nowMs() / 1_000), data: Array.from({ length: n }, (_, number) => ({ b64_json: paint(prompt, number, canvas).toString('base64') })), usage: { input_tokens: Math.ceil(Buffer.byteLength(prompt) / 4) } }));
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isPainting = request.url === '/v1/images/generations';
    if (request.method !== 'POST' || (request.url !== '/v1/chat/completions' && !isPainting)) {
      sendError(response, 404, 'The simulator answers POST /v1/chat/completions and POST /v1/images/generations only.');
      return;
    }
    const body = await readBody(request);
    if (isPainting) {
      if (body === undefined) sendError(response, 400, 'The body must be a JSON object.');
      else paintAll(response, body);
      return;
    }
    if (body === undefined || !Array.isArray(body['messages']) || body['messages'].length === 0) {
      sendError(response, 400, 'The body must be a JSON object with messages.');
      return;
    }
    const simulated = simulate(body);
    const { directives } = simulated;
    if (directives.hang) return;
    if (directives.delayMs > 0) await pause(directives.delayMs);
    if (directives.status >= 400) {
      sendError(response, directives.status, `Simulated failure ${String(directives.status)}.`, directives.retryAfter);
      return;
    }
    if (directives.garbage) {
      response.writeHead(200, { 'content-type': body['stream'] === true ? 'text/event-stream' : 'application/json' });
      response.end(body['stream'] === true ? 'data: {"choices":[{"ind\n\n' : '<html>not JSON</html>');
      return;
    }
    served += 1;
    const envelope = { id: `chatcmpl-sim${String(served)}`, created: Math.floor(clock.nowMs() / 1_000), model: body['model'], system_fingerprint: 'fp_simulator' };
    if (body['stream'] === true) {
      const options: unknown = body['stream_options'];
      await stream(response, envelope, simulated, typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true);
      return;
    }
    const choices = directives.empty ? [] : simulated.choices.map((choice, index) => ({ index, message: messageOf(choice), logprobs: probabilitiesOf(choice, piecesOf(choice.content), simulated), finish_reason: choice.finishReason }));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...envelope, object: 'chat.completion', choices, ...(directives.noUsage ? {} : { usage: simulated.usage }) }));
  };

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, '127.0.0.1', () => {
          const address = server.address();
          resolve(typeof address === 'object' && address !== null ? address.port : 0);
        });
      }),
    stop: () =>
      new Promise((resolve) => {
        if (!server.listening) {
          resolve();
          return;
        }
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
