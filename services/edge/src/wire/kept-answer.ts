/** The stored form of an answer that is kept for repeats: one line of JSON with status, headers and trailers, then the body's bytes. */
import { z } from 'zod';
import type { HeaderList } from './headers.js';

export interface KeptAnswer {
  readonly status: number;
  /** Names and values in alternation, without those that only applied to the first answer. */
  readonly headers: HeaderList;
  readonly trailers: HeaderList;
  readonly body: Buffer;
  /** The key that made the request; undefined in answers stored by older versions. */
  readonly keyId?: string | undefined;
}

/** Larger answers are not kept. Half of what accounts accepts. */
const KEPT_BYTES_MAX = 512 * 1_024;

const headSchema = z.object({ status: z.number(), headers: z.array(z.string()), trailers: z.array(z.string()), keyId: z.string().optional() });
const LINE_FEED = 0x0a;

export function packAnswer({ status, headers, trailers, body, keyId }: KeptAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ status, headers, trailers, keyId })}\n`), body]);
}

/** Undefined when `packAnswer` did not make it. */
export function unpackAnswer(bytes: Buffer): KeptAnswer | undefined {
  const end = bytes.indexOf(LINE_FEED);
  try {
    const head = headSchema.safeParse(JSON.parse(bytes.toString('utf8', 0, Math.max(0, end))));
    return head.success ? { ...head.data, body: bytes.subarray(end + 1) } : undefined;
  } catch {
    return undefined;
  }
}

/** Headers of the connection or the moment, which each repeat gets anew. */
const isOfTheMoment = (name: string): boolean => /^(x-ratelimit-|content-length$|trailer$|transfer-encoding$|connection$|date$)/i.test(name);

/** Records an answer while it is sent, unless it is too large. */
export class AnswerRecorder {
  /** The cost as told to the client; undefined until known. */
  costNanoUsd: bigint | undefined;
  /** The request was refused because of a bug of ours, perhaps after it had been dispatched. */
  isDoubtful = false;
  private headers: HeaderList = [];
  private trailers: HeaderList = [];
  private parts: Buffer[] = [];
  private bytes = 0;
  private isComplete = false;

  /** `keeps`: false = only the cost is noted. */
  constructor(
    readonly keeps: boolean,
    private readonly keyId: string,
  ) {}

  head(headers: HeaderList): void {
    if (!this.keeps) return;
    for (let i = 0; i + 1 < headers.length; i += 2) if (!isOfTheMoment(headers[i] ?? '')) this.headers.push(headers[i] ?? '', headers[i + 1] ?? '');
  }

  part(bytes: Buffer): void {
    if (!this.keeps || this.bytes > KEPT_BYTES_MAX) return;
    this.bytes += bytes.length;
    if (this.bytes > KEPT_BYTES_MAX) this.parts = [];
    else this.parts.push(Buffer.from(bytes));
  }

  end(costNanoUsd: bigint | undefined, trailers: Readonly<Record<string, string>>): void {
    this.costNanoUsd = costNanoUsd;
    this.trailers = Object.entries(trailers).flat();
    this.isComplete = true;
  }

  /** The packed answer; undefined when it is not kept, not complete or too large. `isFramed`: the parts have the chunked transfer coding. */
  answer(isFramed: boolean): Buffer | undefined {
    if (!this.keeps || !this.isComplete || this.bytes > KEPT_BYTES_MAX) return undefined;
    const whole = Buffer.concat(this.parts);
    return packAnswer({ status: 200, headers: this.headers, trailers: this.trailers, keyId: this.keyId, body: isFramed ? unframed(whole) : whole });
  }
}

/** The payload of the chunked coding, as `CHUNKED` writes it. */
function unframed(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n', at);
    const length = end < 0 ? 0 : Number.parseInt(bytes.toString('latin1', at, end), 16);
    if (!(length > 0)) return Buffer.concat(parts);
    parts.push(bytes.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
}
