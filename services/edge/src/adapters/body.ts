/** Reads a request's body within its bounds. */
import { together } from '@signalbox/runtime/turn';
import type { IncomingMessage } from 'node:http';

export type BodyRead = { readonly kind: 'ok'; readonly body: Buffer } | { readonly kind: 'too-large' } | { readonly kind: 'aborted' };

const TOO_LARGE: BodyRead = { kind: 'too-large' };
const ABORTED: BodyRead = { kind: 'aborted' };
const NOTHING = Buffer.alloc(0);

/**
 * Never rejects. Above `bytesMax` it stops keeping what arrives and answers at once; node:http throws the rest away
 * once the answer has left, within the server's request timeout, so that the client gets to read its 413.
 */
export function readBody(request: IncomingMessage, bytesMax: number): BodyRead | Promise<BodyRead> {
  // The client may have left while its key was looked up: no event would follow.
  if (request.destroyed) return ABORTED;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) return TOO_LARGE;
  // Nearly every body came with its headers.
  if (request.complete) {
    const body = (request.read() as Buffer | null) ?? NOTHING;
    return body.length > bytesMax ? TOO_LARGE : { kind: 'ok', body };
  }
  return new Promise((resolve) => {
    let first: Buffer | undefined;
    let rest: Buffer[] | undefined;
    let bytes = 0;
    let isWhole = false;
    // A promise resolves once, and what is emitted after the end changes nothing: no listener needs to be taken off.
    const onCut = (): void => {
      if (!isWhole) resolve(ABORTED);
    };
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes > bytesMax) {
        first = rest = undefined;
        request.pause();
        resolve(TOO_LARGE);
      } else if (first === undefined) first = part;
      else (rest ??= [first]).push(part);
    });
    request.on('end', () => {
      isWhole = true;
      const body = rest === undefined ? (first ?? NOTHING) : Buffer.concat(rest, bytes);
      first = rest = undefined;
      together(() => resolve({ kind: 'ok', body }));
    });
    // Also heard when a client leaves later: node:http then emits an error on the request.
    request.on('error', onCut);
    request.on('close', onCut);
  });
}

const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** True when the body is declared as JSON and not compressed, neither whole nor on its way. */
export function isJsonBody(request: IncomingMessage): boolean {
  const type = request.headers['content-type'] ?? '';
  const { 'content-encoding': encoding, 'transfer-encoding': transfer } = request.headers;
  return (type === 'application/json' || JSON_TYPE.test(type)) && (encoding === undefined || encoding.toLowerCase() === 'identity') && (transfer === undefined || transfer.trim().toLowerCase() === 'chunked');
}
