/** Answers that came compressed though nobody asked for it: a proxy between a provider and us may do so. */
import { constants, createGunzip, type Gunzip } from 'node:zlib';
import type { ResponseHeaders } from './provider.js';

/** Each write gives all that it holds, so that a stream's words come when they came; what breaks off gives what there was of it. */
const FLUSHING = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

/** True where the body is gzip and nothing else. Another coding is left as it is, and is no answer. */
export function isGzip(headers: ResponseHeaders): boolean {
  const coding = headers['content-encoding'];
  return typeof coding === 'string' && /^(?:x-)?gzip$/i.test(coding.trim());
}

export interface GunzippedListener {
  onData(bytes: Buffer): void;
  /** All that was pushed has been heard. Not after `stop`. */
  onEnd(): void;
  /** It is no gzip. Nothing is heard after it. */
  onBroken(): void;
  /** More has been pushed than is heard at present: the source is to wait, and to go on. */
  pauseSource(): void;
  resumeSource(): void;
}

/**
 * Unpacks a body as it comes, a few KiB ahead of its listener at most. How much it may come to in all is the listener's to
 * say, who counts what is heard: a small body may hold a thousand times its bytes.
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

  /** Nothing more is heard. Safe to call twice. */
  stop(): void {
    this.gunzip.removeAllListeners('data').removeAllListeners('end').destroy();
  }
}
