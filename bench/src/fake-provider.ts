/** A provider of the OpenAI wire that costs as little as possible: fixed answers, streams written chunk by chunk. */
import { createServer, type ServerResponse } from 'node:http';

/** Milliseconds between two chunks of a stream, so that each is a read of its own. */
const CHUNK_INTERVAL_MS = 4;

const filler = 'The quick brown fox jumps over the lazy dog while the bench counts. '.repeat(20);
const ANSWER = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-4o-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: filler.slice(0, 720) }, logprobs: null, finish_reason: 'stop' }],
  usage: { prompt_tokens: 230, completion_tokens: 160, total_tokens: 390 },
});

const chunk = (delta: object, finish: string | null, extra: object = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'gpt-4o-mini', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...extra })}\n\n`;
const FIRST = chunk({ role: 'assistant', content: 'token' }, null);
const NEXT = chunk({ content: ' token' }, null);
const LAST = `${chunk({}, 'stop')}data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'gpt-4o-mini', choices: [], usage: { prompt_tokens: 230, completion_tokens: 160, total_tokens: 390 } })}\n\ndata: [DONE]\n\n`;

function stream(response: ServerResponse, chunks: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(FIRST);
  let left = chunks - 1;
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) response.write(NEXT);
    else {
      clearInterval(timer);
      response.end(LAST);
    }
  }, CHUNK_INTERVAL_MS);
  response.once('close', () => clearInterval(timer));
}

/** Reads a request's body to its end; `max_tokens` in it is the count of chunks of a stream. */
const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const isSmall = parts.length === 1 && (parts[0]?.length ?? 0) < 8_192;
    const body = isSmall ? (parts[0]?.toString('latin1') ?? '') : '';
    if (/"stream":\s*true/.test(body)) stream(response, Math.min(1_000, Math.max(2, Number(/"max(?:_completion)?_tokens":\s*(\d+)/.exec(body)?.[1] ?? 10))));
    else response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(ANSWER) }).end(ANSWER);
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`ready ${typeof address === 'object' && address !== null ? String(address.port) : ''}\n`);
});
