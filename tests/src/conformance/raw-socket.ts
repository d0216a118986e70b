/** HTTP/1.1 over a raw socket, with full control of the bytes sent and received. */
import { connect } from 'node:net';

const SILENCE_MS_MAX = 20_000;

/** Sends bytes unchanged; returns everything received until the other side closes. Rejects after 20 s. */
export function exchange(baseUrl: string, bytes: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes));
    const parts: Buffer[] = [];
    socket.setTimeout(SILENCE_MS_MAX, () => {
      reject(new Error('The other side did not close.'));
      socket.destroy();
    });
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('error', (error) => (parts.length === 0 ? reject(error) : undefined));
    socket.on('close', () => resolve(Buffer.concat(parts).toString('utf8')));
  });
}

/** Sends the head of a request whose body is never sent; returns the first answer once its declared length has arrived. Rejects after 20 s, or if the other side closes before. */
export function answerToHead(baseUrl: string, head: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(head));
    let text = '';
    socket.setTimeout(SILENCE_MS_MAX, () => socket.destroy(new Error('The other side did not answer.')));
    socket.on('data', (part: Buffer) => {
      text += part.toString('latin1');
      const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1];
      const bodyStart = text.indexOf('\r\n\r\n') + 4;
      if (bodyStart < 4 || length === undefined || text.length < bodyStart + Number(length)) return;
      resolve(parseAnswer(Buffer.from(text, 'latin1').toString('utf8')));
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('The other side closed before it had answered.')));
  });
}

/** A request as text, with `connection: close` added. */
export function requestText(method: string, path: string, headers: readonly string[], body = ''): string {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return [`${method} ${path} HTTP/1.1`, 'Host: gateway', 'Connection: close', ...headers, ...length, '', body].join('\r\n');
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  /** One string per chunk of the transfer coding; without one, the whole body. */
  readonly chunks: readonly string[];
  readonly trailers: readonly string[];
}

/** Parses an answer; throws if the transfer coding is broken. */
export function parseAnswer(text: string): RawAnswer {
  const bytes = Buffer.from(text, 'utf8');
  const headEnd = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...headers] = bytes.subarray(0, headEnd).toString('utf8').split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  let rest = bytes.subarray(headEnd + 4);
  if (!headers.some((line) => /^transfer-encoding: chunked$/i.test(line))) return { status, headers, chunks: [rest.toString('utf8')], trailers: [] };
  const chunks: string[] = [];
  for (;;) {
    const lineEnd = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, lineEnd).toString('latin1'), 16);
    if (lineEnd < 0 || !Number.isInteger(size)) throw new Error('Not a chunk size.');
    rest = rest.subarray(lineEnd + 2);
    if (size === 0) break;
    chunks.push(rest.subarray(0, size).toString('utf8'));
    if (rest.subarray(size, size + 2).toString('latin1') !== '\r\n') throw new Error('A chunk does not end where it says.');
    rest = rest.subarray(size + 2);
  }
  const trailers = rest.toString('utf8').split('\r\n').filter((line) => line !== '');
  return { status, headers, chunks, trailers };
}
