/** An answer as it is kept for a repeat: one line of JSON with status, headers and trailers, then the body's bytes. */
import { z } from 'zod';
import type { HeaderList } from './headers.js';

export interface KeptAnswer {
  readonly status: number;
  /** Names and values in turn; none that only held then. */
  readonly headers: HeaderList;
  readonly trailers: HeaderList;
  readonly body: Buffer;
  /** Of the key that asked; answers of older versions do not tell it. */
  readonly keyId?: string | undefined;
}

/** Larger answers are not kept; half of what accounts takes. */
const KEPT_BYTES_MAX = 512 * 1_024;

const headSchema = z.object({ status: z.number(), headers: z.array(z.string()), trailers: z.array(z.string()), keyId: z.string().optional() });
const LINE_FEED = 0x0a;

export function packAnswer({ status, headers, trailers, body, keyId }: KeptAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ status, headers, trailers, keyId })}\n`), body]);
}

/** Undefined when it is not what `packAnswer` made. */
export function unpackAnswer(bytes: Buffer): KeptAnswer | undefined {
  const end = bytes.indexOf(LINE_FEED);
  try {
    const head = headSchema.safeParse(JSON.parse(bytes.toString('utf8', 0, Math.max(0, end))));
    return head.success ? { ...head.data, body: bytes.subarray(end + 1) } : undefined;
  } catch {
    return undefined;
  }
}

/** Of the connection or of the moment: told anew with each repeat. */
const isOfTheMoment = (name: string): boolean => /^(x-ratelimit-|content-length$|trailer$|transfer-encoding$|connection$|date$)/i.test(name);

/** Takes down an answer while it is sent; gives up on one that is too large. */
export class AnswerRecorder {
  /** As told to the client; undefined until it is known. */
  costNanoUsd: bigint | undefined;
  /** It was refused because of a bug of ours, maybe after it had been dispatched. */
  isDoubtful = false;
  private headers: HeaderList = [];
  private trailers: HeaderList = [];
  private parts: Buffer[] = [];
  private bytes = 0;
  private isComplete = false;

  /** `keeps` false: only the cost is noted. */
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

  /** Packed; undefined when it is not kept, not complete or too large. `isFramed`: the parts carry the chunked coding. */
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
