/** A provider for tests: answers what it was told to, remembers what it was asked. */
import { createServer, request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';

export interface ScriptedAnswer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent whole; objects as JSON. */
  readonly body?: string | object;
  /** Sent one write each; a function is awaited, so that the test decides when to go on. */
  readonly chunks?: readonly (string | Uint8Array | (() => Promise<void>))[];
  /** Break the connection after the chunks. */
  readonly cut?: boolean;
  /** Break the connection without an answer, after calling this. */
  readonly drop?: true | (() => void);
  /** Never answer, or never end after the chunks. */
  readonly hang?: boolean;
  /** Entered in the provider's own bill. */
  readonly billedTokens?: number;
}

export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Of the client: requests on one connection share it. */
  readonly clientPort: number;
  /** True once the client broke the connection before the answer's end. */
  readonly wasAborted: () => boolean;
}

export interface FakeProviderOptions {
  /** Origin that answers, in this one's place, whatever nothing was scripted for. */
  readonly forwardTo?: string;
}

export interface FakeProvider {
  readonly origin: string;
  /** With `/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly RecordedRequest[];
  /** Tokens by X-Request-Id of what was answered. */
  readonly bill: ReadonlyMap<string, number>;
  /** Answers in order; an empty queue answers 500, or what the other origin does. */
  enqueue(...answers: readonly ScriptedAnswer[]): void;
  /** Forgets answers that nobody has asked for yet. */
  clear(): void;
  stop(): Promise<void>;
}

/** SSE frame of one JSON value or of a bare word such as `[DONE]`. */
export function sse(value: object | string): string {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
}

async function play(response: ServerResponse, answer: ScriptedAnswer): Promise<void> {
  if (answer.drop !== undefined) {
    if (answer.drop !== true) answer.drop();
    response.destroy();
    return;
  }
  if (answer.hang === true && answer.chunks === undefined) return;
  const isText = typeof answer.body === 'string';
  response.writeHead(answer.status ?? 200, { 'content-type': answer.chunks !== undefined ? 'text/event-stream' : isText ? 'text/html' : 'application/json', ...answer.headers });
  for (const chunk of answer.chunks ?? []) {
    if (typeof chunk === 'function') await chunk();
    else if (!response.destroyed) await new Promise<void>((resolve) => response.write(chunk, () => resolve()));
  }
  if (answer.cut === true) response.destroy();
  else if (answer.hang !== true) response.end(answer.body === undefined ? '' : isText ? answer.body : JSON.stringify(answer.body));
}

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse, origin: string): void {
  const outgoing = ask(new URL(request.url ?? '/', origin), { method: request.method, headers: { ...request.headers, host: new URL(origin).host } }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  outgoing.end(body);
}

export async function startFakeProvider({ forwardTo }: FakeProviderOptions = {}): Promise<FakeProvider> {
  const queue: ScriptedAnswer[] = [];
  const requests: RecordedRequest[] = [];
  const bill = new Map<string, number>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      requests.push({ path: request.url ?? '', headers: request.headers, body: body.toString('utf8'), clientPort: request.socket.remotePort ?? 0, wasAborted: () => response.destroyed && !response.writableFinished });
      const scripted = queue.shift();
      if (scripted === undefined && forwardTo !== undefined) {
        forward(request, body, response, forwardTo);
        return;
      }
      const answer: ScriptedAnswer = scripted ?? { status: 500, body: { error: { message: 'Nothing scripted.' } } };
      if (answer.billedTokens !== undefined) bill.set(String(request.headers['x-request-id']), answer.billedTokens);
      play(response, answer).catch(() => response.destroy());
    });
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const origin = `http://127.0.0.1:${String(port)}`;
  return {
    origin,
    baseUrl: `${origin}/v1`,
    requests,
    bill,
    clear: () => void queue.splice(0),
    enqueue: (...answers) => {
      queue.push(...answers);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
