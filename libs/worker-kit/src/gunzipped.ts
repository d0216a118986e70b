/** Unpacks answers that are compressed although we did not ask for it, as a proxy in front of a provider may do. */
import { constants, createGunzip, type Gunzip } from 'node:zlib';
import type { ResponseHeaders } from './provider.js';

/** Output is flushed after each write, so that a stream is not delayed, and a truncated body yields what there was of it. */
const FLUSHING = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

/** True if the body is encoded with gzip alone. Any other coding is left as it is and will not parse as an answer. */
export function isGzip(headers: ResponseHeaders): boolean {
  const coding = headers['content-encoding'];
  return typeof coding === 'string' && /^(?:x-)?gzip$/i.test(coding.trim());
}

export interface GunzippedListener {
  onData(bytes: Buffer): void;
  /** All that was pushed has been delivered. Not called after `stop`. */
  onEnd(): void;
  /** The body is not valid gzip. Nothing is called after it. */
  onBroken(): void;
  /** The buffer is full: pause the source until `resumeSource`. */
  pauseSource(): void;
  resumeSource(): void;
}

/**
 * Unpacks a body as it arrives, at most a few KiB ahead of its listener. The listener must limit the unpacked size, since a
 * small body may unpack to a thousand times its bytes.
 */
export class Gunzipped {
  private readonly gunzip: Gunzip = createGunzip(FLUSHING);

  constructor(private readonly listener: GunzippedListener) {
    this.gunzip.on('data', (bytes: Buffer) => listener.onData(bytes));
    this.gunzip.on('end', () => listener.onEnd());
    this.gunzip.on('error', () => listener.onBroken());
    this.gunzip.on('drain', () => listener.resumeSource());
  }

  push(bytes: Buffer): void {
    if (!this.gunzip.write(bytes)) this.listener.pauseSource();
  }

  /** Nothing more will be pushed. */
  end(): void {
    this.gunzip.end();
  }

  pause(): void {
    this.gunzip.pause();
  }

  resume(): void {
    this.gunzip.resume();
  }

  /** The listener is called no more. Safe to call twice. */
  stop(): void {
    this.gunzip.removeAllListeners('data').removeAllListeners('end').destroy();
  }
}
