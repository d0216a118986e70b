/** A plain HTTP client for tests, with access to every header and trailer. */
import { request, type IncomingHttpHeaders } from 'node:http';

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Objects are sent as JSON; text and bytes as they are. */
  readonly body?: object | string | Buffer;
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}

export interface ErrorBody {
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null; readonly code: string | null; readonly metadata?: Readonly<Record<string, unknown>> };
}

export interface ToolCallBody {
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

export interface RouterBody {
  readonly provider: string;
  readonly cost_usd: number;
  readonly savings_usd: number;
  readonly routed_from: string;
}

export interface UsageBody {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export interface CompletionBody {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly { readonly index: number; readonly message: { readonly role: string; readonly content: string | null; readonly tool_calls?: readonly ToolCallBody[] }; readonly finish_reason: string }[];
  readonly usage: UsageBody;
  readonly x_router?: RouterBody;
}

export interface ChunkBody {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly { readonly index: number; readonly delta: { readonly role?: string; readonly content?: string | null; readonly tool_calls?: readonly ToolCallBody[] }; readonly finish_reason: string | null }[];
  readonly usage?: UsageBody | null;
  readonly x_router?: RouterBody;
  readonly error?: ErrorBody['error'];
}

/** Sends one request and returns the whole answer. Rejects if the connection breaks. */
export function send(baseUrl: string, { method = 'POST', path = '/v1/chat/completions', key, headers = {}, body }: Sent): Promise<Got> {
  const payload = body === undefined ? undefined : typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, baseUrl),
      {
        method,
        agent: false,
        headers: { ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(payload.length) }), ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, trailers: response.trailers, text: Buffer.concat(parts).toString('utf8') }));
      },
    );
    // An answer may arrive before the whole body was sent.
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

export const completionOf = (got: Got): CompletionBody => JSON.parse(got.text) as CompletionBody;
export const errorOf = (got: Got): ErrorBody['error'] => (JSON.parse(got.text) as ErrorBody).error;

/** A header with a single value, or the empty string. */
export function header(got: Got, name: string): string {
  const value = got.headers[name];
  return typeof value === 'string' ? value : '';
}

export interface StreamBody {
  readonly comments: readonly string[];
  readonly chunks: readonly ChunkBody[];
  /** `[DONE]` came last. */
  readonly isDone: boolean;
}

/** Splits an event stream; throws on any line that the API does not have. */
export function streamOf(text: string): StreamBody {
  if (!text.endsWith('\n\n')) throw new Error('The stream does not end with a blank line.');
  const events = text.slice(0, -2).split('\n\n');
  const comments: string[] = [];
  const chunks: ChunkBody[] = [];
  let isDone = false;
  for (const event of events) {
    if (isDone) throw new Error('Something follows [DONE].');
    if (event.startsWith(': ')) comments.push(event);
    else if (event === 'data: [DONE]') isDone = true;
    else if (event.startsWith('data: {') && !event.includes('\n')) chunks.push(JSON.parse(event.slice(6)) as ChunkBody);
    else throw new Error(`Not an event of the contract: ${event.slice(0, 60)}`);
  }
  return { comments, chunks, isDone };
}

/** Text of all deltas of the first choice. */
export const contentOf = (chunks: readonly ChunkBody[]): string => chunks.map((chunk) => chunk.choices.find(({ index }) => index === 0)?.delta.content ?? '').join('');

/** The cost in a body's text as nano-USD, without going through a float. */
export function nanoIn(text: string, name: 'cost_usd' | 'savings_usd' | 'charge_usd'): bigint {
  const found = new RegExp(`"${name}":(\\d+)(?:\\.(\\d{1,9}))?[,}]`).exec(text);
  if (found === null) throw new Error(`No exact ${name} in the body.`);
  return BigInt((found[1] ?? '0') + (found[2] ?? '').padEnd(9, '0'));
}

/** A header's plain decimal as nano-USD. */
export function nanoOf(text: string): bigint {
  const found = /^(\d+)\.(\d{9})$/.exec(text);
  if (found === null) throw new Error(`Not a plain decimal with nine places: "${text}".`);
  return BigInt(`${found[1] ?? ''}${found[2] ?? ''}`);
}

/** Reads a body until it contains `words`, and returns the text so far. Rejects if the body ends before: a finished reader resolves immediately each time, so a loop would never yield to the test's time limit. */
export async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, words: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  while (!text.includes(words)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The body ended without ${words}: ${text.slice(0, 300)}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}
