/** Directives that request faults and kinds of answers: `[sim:name=value …]` in the last user message. */

export interface Directives {
  /** Answer with this HTTP status and an error body; 0 = none. */
  readonly status: number;
  /** The image API answers with this HTTP status; 0 = it makes images. */
  readonly imageStatus: number;
  /** Seconds of `Retry-After` with a status; 0 = none. */
  readonly retryAfter: number;
  /** Never answer. */
  readonly hang: boolean;
  /** Break the connection after this many content chunks; -1 = never. */
  readonly cutAfter: number;
  /** Wait before the first byte. */
  readonly delayMs: number;
  /** Wait between chunks. */
  readonly chunkDelayMs: number;
  /** Send bytes that are not JSON. */
  readonly garbage: boolean;
  readonly noUsage: boolean;
  /** 200 without an answer. */
  readonly empty: boolean;
  /** Length of the answer; 0 = the default. */
  readonly tokens: number;
  /** Hidden reasoning tokens. */
  readonly reasoning: number;
  /** Prompt tokens to report as cached. */
  readonly cached: number;
  /** Answer with a quote from the other content of the prompt. */
  readonly quote: boolean;
  /** Number of parallel tool calls. */
  readonly calls: number;
}

const PATTERN = /\[sim:([^\]]{1,200})\]/g;

function whole(values: ReadonlyMap<string, string>, name: string, fallback: number, maximum: number): number {
  const value = Number(values.get(name) ?? NaN);
  return Number.isInteger(value) && value >= 0 ? Math.min(value, maximum) : fallback;
}

/** Unknown names are ignored; figures are clamped. */
export function readDirectives(text: string): Directives {
  const values = new Map<string, string>();
  for (const [, inside = ''] of text.matchAll(PATTERN)) {
    for (const word of inside.trim().split(/[\s,]+/)) {
      const [name = '', value = ''] = word.split('=');
      values.set(name, value);
    }
  }
  return {
    status: whole(values, 'status', 0, 599),
    imageStatus: whole(values, 'image-status', 0, 599),
    retryAfter: whole(values, 'retry-after', 0, 86_400),
    hang: values.has('hang'),
    cutAfter: whole(values, 'cut-after', -1, 1_000_000),
    delayMs: whole(values, 'delay-ms', 0, 600_000),
    chunkDelayMs: whole(values, 'chunk-delay-ms', 0, 60_000),
    garbage: values.has('garbage'),
    noUsage: values.has('no-usage'),
    empty: values.has('empty'),
    tokens: whole(values, 'tokens', 0, 200_000),
    reasoning: whole(values, 'reasoning', 0, 200_000),
    cached: whole(values, 'cached', 0, 10_000_000),
    quote: values.has('quote'),
    calls: whole(values, 'calls', 1, 16),
  };
}

export function withoutDirectives(text: string): string {
  return text.replace(PATTERN, '').trim();
}
