/** Reads a request's body within its bounds. */
import type { IncomingMessage } from 'node:http';

export type BodyRead = { readonly kind: 'ok'; readonly body: Buffer } | { readonly kind: 'too-large' } | { readonly kind: 'aborted' };

/**
 * Never rejects. Above `bytesMax` it stops keeping what arrives and answers at once; node:http throws the rest away
 * once the answer has left, within the server's request timeout, so that the client gets to read its 413.
 */
export function readBody(request: IncomingMessage, bytesMax: number): Promise<BodyRead> {
  // The client may have left while its key was looked up: no event would follow.
  if (request.destroyed) return Promise.resolve({ kind: 'aborted' });
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) return Promise.resolve({ kind: 'too-large' });
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const onData = (part: Buffer): void => {
      bytes += part.length;
      if (bytes > bytesMax) {
        parts.length = 0;
        request.pause();
        over({ kind: 'too-large' });
        return;
      }
      parts.push(part);
    };
    const onEnd = (): void => {
      const [only] = parts;
      over({ kind: 'ok', body: parts.length === 1 && only !== undefined ? only : Buffer.concat(parts, bytes) });
    };
    const onCut = (): void => over({ kind: 'aborted' });
    const over = (read: BodyRead): void => {
      request.off('data', onData);
      request.off('end', onEnd);
      request.off('close', onCut);
      // The listener for errors stays: a client that leaves later makes node:http emit one.
      resolve(read);
    };
    request.on('error', onCut);
    request.on('end', onEnd);
    request.on('close', onCut);
    request.on('data', onData);
  });
}

/** True when the body is declared as JSON and not compressed. */
export function isJsonBody(request: IncomingMessage): boolean {
  const type = request.headers['content-type'] ?? '';
  const encoding = request.headers['content-encoding'];
  return /^application\/json\s*(;|$)/i.test(type) && (encoding === undefined || encoding.toLowerCase() === 'identity');
}
