/** The events of a streamed answer (contract, section 5). */
import type { Variant } from '@signalbox/kernel/tiers';
import { renderRouter, renderUsage, type RouterFigures, type UsageFigures } from './chat.js';
import { renderErrorObject, type ApiError } from './errors.js';
import { renderJson, type JsonValue } from './json-text.js';

/** A comment between events, after silence. */
export const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');
/** The last event of every stream. */
export const DONE = Buffer.from('data: [DONE]\n\n');

const EMPTY_CHOICES = Buffer.from('[]');
const ERROR_CHOICES = Buffer.from('[{"index":0,"delta":{},"finish_reason":"error"}]');

export interface StreamWireOptions {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** Catalog id of the model that answers; the same in every chunk. */
  readonly model: string;
  /** The model id that the client sent. */
  readonly routedFrom: string;
  readonly includeUsage: boolean;
  readonly variant: Variant;
  readonly systemFingerprint?: string | undefined;
}

/** The figures of the last JSON chunk. */
export interface StreamEnd {
  readonly usage: UsageFigures;
  readonly provider: string;
  readonly costNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
  readonly routerMetadata?: JsonValue | undefined;
}

export interface StreamWire {
  /** A chunk for each of `list`; an item is JSON array text and is spliced in as it is. */
  chunks(list: readonly Uint8Array[]): Buffer;
  /** The end without `[DONE]`: the held finish chunk with usage and `x_router`, or under include_usage that chunk and one more. */
  finish(choices: Uint8Array, end: StreamEnd): Buffer;
  /** The last chunk of a stream that broke; without `end` nothing is known of its usage. Without `[DONE]`. */
  errorChunk(error: ApiError, end?: StreamEnd): Buffer;
}

/** Renders the events of one stream; what all chunks share is encoded once. */
export function createStreamWire(options: StreamWireOptions): StreamWire {
  const { id, created, model, routedFrom, includeUsage, variant, systemFingerprint = '' } = options;
  const fingerprint = systemFingerprint === '' ? '' : `,"system_fingerprint":${JSON.stringify(systemFingerprint)}`;
  const envelope = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)}${fingerprint}`;
  const prefix = Buffer.from(`${envelope},"choices":`);
  const suffix = Buffer.from(includeUsage ? ',"usage":null}\n\n' : '}\n\n');

  const chunks = (list: readonly Uint8Array[]): Buffer => {
    let length = list.length * (prefix.length + suffix.length);
    for (const choices of list) length += choices.length;
    const out = Buffer.allocUnsafe(length);
    let at = 0;
    for (const choices of list) {
      out.set(prefix, at);
      at += prefix.length;
      out.set(choices, at);
      at += choices.length;
      out.set(suffix, at);
      at += suffix.length;
    }
    return out;
  };

  const figures = (end: StreamEnd): string => {
    const router: RouterFigures = { provider: end.provider, costNanoUsd: end.costNanoUsd, savingsNanoUsd: end.savingsNanoUsd, routedFrom };
    const xRouter = variant === 'B' ? '' : `,"x_router":${renderRouter(router)}`;
    const metadata = end.routerMetadata === undefined ? '' : `,"router_metadata":${renderJson(end.routerMetadata)}`;
    return `,"usage":${renderUsage(end.usage)}${xRouter}${metadata}}\n\n`;
  };

  return {
    chunks,
    finish: (choices, end) => (includeUsage ? Buffer.concat([chunks([choices]), prefix, EMPTY_CHOICES, Buffer.from(figures(end))]) : Buffer.concat([prefix, choices, Buffer.from(figures(end))])),
    errorChunk: (error, end) =>
      Buffer.concat([Buffer.from(`${envelope},"error":${renderErrorObject(error)},"choices":`), ERROR_CHOICES, end === undefined ? suffix : Buffer.from(figures(end))]),
  };
}
