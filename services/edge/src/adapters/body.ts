/** Reads a request's body within its bounds. */
import { Pieces } from '@signalbox/kernel/pieces';
import { together } from '@signalbox/runtime/turn';
import { noteBody } from '@signalbox/runtime/young-heap';
import type { IncomingMessage } from 'node:http';
import { totalmem } from 'node:os';
import { inviteBody } from './responses.js';

export type BodyRead = { readonly kind: 'ok'; readonly body: Buffer } | { readonly kind: 'too-large' } | { readonly kind: 'no-room' } | { readonly kind: 'aborted' };

const TOO_LARGE: BodyRead = { kind: 'too-large' };
const NO_ROOM: BodyRead = { kind: 'no-room' };
const ABORTED: BodyRead = { kind: 'aborted' };
const NOTHING = Buffer.alloc(0);

/**
 * Never rejects. A client that waits for `100 Continue` gets it, unless it announces more than `bytesMax`. Above `bytesMax` it keeps nothing more and answers `too-large` at once. The rest is read and discarded,
 * within the server's request timeout, so that a client that sends everything before it reads still gets its 413, and the
 * connection can serve another request. `take` is told how many more bytes of memory the body needs; if it returns false,
 * the answer is `no-room` in the same way.
 */
export function readBody(request: IncomingMessage, bytesMax: number, take: (bytes: number) => boolean = () => true): BodyRead | Promise<BodyRead> {
  // The client may have left while its key was looked up: no event follows then.
  if (request.destroyed) return ABORTED;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) return TOO_LARGE;
  inviteBody(request);
  // The usual case: the body arrived together with the headers.
  if (request.complete) {
    const body = (request.read() as Buffer | null) ?? NOTHING;
    if (body.length > bytesMax) return TOO_LARGE;
    return take(body.length) ? { kind: 'ok', body: unmarked(body) } : NO_ROOM;
  }
  return new Promise((resolve) => {
    const pieces = new Pieces();
    let isWhole = false;
    let isRefused = false;
    // A promise resolves only once, so listeners need not be removed.
    const onCut = (): void => {
      if (!isWhole) resolve(ABORTED);
    };
    request.on('data', (part: Buffer) => {
      if (isRefused) return;
      const { heldBytes } = pieces;
      pieces.push(part);
      const isTooLarge = pieces.bytes > bytesMax;
      if (!isTooLarge && take(pieces.heldBytes - heldBytes)) return;
      // node:http does not discard a body that has a listener, so the memory is freed here.
      isRefused = true;
      pieces.clear();
      resolve(isTooLarge ? TOO_LARGE : NO_ROOM);
    });
    request.on('end', () => {
      isWhole = true;
      const body = pieces.take();
      noteBody(body.length);
      together(() => resolve({ kind: 'ok', body: unmarked(body) }));
    });
    // Needed even after the end: node:http emits an error on the request when the client leaves later.
    request.on('error', onCut);
    request.on('close', onCut);
  });
}

/** Without a byte order mark, which some editors and shells put before JSON (RFC 8259, section 8.1, lets a reader ignore it). */
function unmarked(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

/** 1 GiB: some 3,500 prompts of 300 kB at once. */
const ROOM_BYTES_MAX = 1_024 * 1_024 * 1_024;

/**
 * The share of this process's memory that bodies in work may take. A body of 15 MiB took 60 to 75 MiB at its peak: the
 * pieces received, the whole, its text, what is sent on, and what V8 had not collected yet.
 */
const ROOM_SHARE = 1 / 6;

/** Bytes that bodies in work may take together, at least two of the largest allowed. */
export function bodyRoomBytes(bodyBytesMax: number, memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)): number {
  return Math.max(2 * bodyBytesMax, Math.min(ROOM_BYTES_MAX, Math.floor(memoryBytes * ROOM_SHARE)));
}

const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** True when no body follows the headers, whatever content type they name. */
export function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

const TYPE_HEADER = 'content-type';

/** True when there is a Content-Type and each one names JSON: node:http keeps the first, and what stood in front of this gateway may have gone by another (RFC 9110, section 8.3). */
function isOfJson({ headers, rawHeaders }: IncomingMessage): boolean {
  if (headers[TYPE_HEADER] === undefined) return false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== TYPE_HEADER.length || name.toLowerCase() !== TYPE_HEADER) continue;
    const type = rawHeaders[i + 1] ?? '';
    if (type !== 'application/json' && !JSON_TYPE.test(type)) return false;
  }
  return true;
}

/** True when the body is declared as JSON and neither its content nor its transfer is compressed. */
export function isJsonBody(request: IncomingMessage): boolean {
  const { 'content-encoding': encoding, 'transfer-encoding': transfer } = request.headers;
  return isOfJson(request) && (encoding === undefined || encoding.toLowerCase() === 'identity') && (transfer === undefined || transfer.trim().toLowerCase() === 'chunked');
}
