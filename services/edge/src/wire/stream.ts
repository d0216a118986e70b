/** The events of a streamed answer. */
import type { Variant } from '@signalbox/kernel/tiers';
import { renderRouter, renderUsage, type RouterFigures, type UsageFigures } from './chat.js';
import { renderErrorObject, type ApiError } from './errors.js';
import type { Framing } from './framing.js';
import { routerTrailers } from './headers.js';
import { renderJson, type JsonValue } from './json-text.js';

/** A comment that is sent after a time of silence. */
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');
/** The last event of every stream. */
const DONE = 'data: [DONE]\n\n';

const EMPTY_CHOICES = '[]';
const NONE: ReadonlySet<number> = new Set();
const errorChoices = (indexes: readonly number[]): string => `[${indexes.map((index) => `{"index":${index},"delta":{},"finish_reason":"error"}`).join(',')}]`;

export interface StreamWireOptions {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** Catalog id of the model that answers; the same in every chunk. */
  readonly model: string;
  /** The model id that the client sent. */
  readonly routedFrom: string;
  readonly includeUsage: boolean;
  /** How many choices were asked for. */
  readonly choices: number;
  readonly variant: Variant;
  /** '' or absent = the provider sent none. */
  readonly systemFingerprint?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly framing: Framing;
}

/** The end of a broken stream whose usage and cost are not known. */
export interface StreamBreak {
  readonly provider: string;
  /** For the trailers; undefined = the headers already had this number, and the provider. */
  readonly attempts?: number | undefined;
  readonly routerMetadata?: JsonValue | undefined;
}

/** The figures of the last JSON chunk. */
export interface StreamEnd extends StreamBreak {
  readonly usage: UsageFigures;
  readonly costNanoUsd: bigint;
  readonly savingsNanoUsd: bigint;
  /** Undefined = healing did not apply. */
  readonly healed?: readonly string[] | undefined;
}

/** All returned buffers include the framing. Choices are JSON array texts and are inserted unchanged. */
export interface StreamWire {
  keepAlive(): Buffer;
  /** A chunk for each item of `list`, which must not be empty. */
  chunks(list: readonly Uint8Array[]): Buffer;
  /** Chunks for `before`, then the finish chunk with usage and `x_router`; with include_usage the figures are in a further chunk. Ends the stream. */
  finish(before: readonly Uint8Array[], choices: Uint8Array, end: StreamEnd): Buffer;
  /** Chunks for `before`, then the error chunk, which ends all choices except those in `finished`. Ends the stream. */
  error(before: readonly Uint8Array[], error: ApiError, end?: StreamEnd | StreamBreak, finished?: ReadonlySet<number>): Buffer;
}

/** Renders the events of one stream; the common part of all chunks is encoded once. */
export function createStreamWire(options: StreamWireOptions): StreamWire {
  const { id, created, model, routedFrom, includeUsage, choices: asked, variant, systemFingerprint = '', serviceTier = '', framing } = options;
  const fingerprint = systemFingerprint === '' ? '' : `,"system_fingerprint":${JSON.stringify(systemFingerprint)}`;
  const tier = serviceTier === '' ? '' : `,"service_tier":${JSON.stringify(serviceTier)}`;
  const envelope = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)}${tier}${fingerprint}`;
  const prefix = Buffer.from(`${envelope},"choices":`);
  const suffix = Buffer.from(includeUsage ? ',"usage":null}\n\n' : '}\n\n');

  const lengthOf = (list: readonly Uint8Array[]): number => {
    let length = list.length * (prefix.length + suffix.length);
    for (const choices of list) length += choices.length;
    return length;
  };

  const write = (out: Buffer, from: number, list: readonly Uint8Array[]): void => {
    let at = from;
    for (const choices of list) {
      out.set(prefix, at);
      at += prefix.length;
      out.set(choices, at);
      at += choices.length;
      out.set(suffix, at);
      at += suffix.length;
    }
  };

  const framed = (payload: Buffer): Buffer => {
    const out = framing.allocate(payload.length);
    out.set(payload, out.length - framing.tail - payload.length);
    return out;
  };

  const metadataOf = ({ routerMetadata }: StreamBreak): string => (routerMetadata === undefined ? '' : `,"router_metadata":${renderJson(routerMetadata)}`);

  const figures = (end: StreamEnd): string => {
    const router: RouterFigures = { provider: end.provider, costNanoUsd: end.costNanoUsd, savingsNanoUsd: end.savingsNanoUsd, routedFrom };
    const xRouter = variant === 'B' ? '' : `,"x_router":${renderRouter(router)}`;
    return `,"usage":${renderUsage(end.usage)}${xRouter}${metadataOf(end)}}\n\n`;
  };

  /** The last write of the stream: `before` and `last` in one payload, then the trailers. */
  const end = (before: readonly Uint8Array[], last: Buffer, figuresOfEnd: StreamEnd | StreamBreak | undefined): Buffer => {
    const events = Buffer.allocUnsafe(lengthOf(before));
    write(events, 0, before);
    const trailers = figuresOfEnd === undefined ? {} : routerTrailers(figuresOfEnd);
    return Buffer.concat([framed(Buffer.concat([events, last, Buffer.from(DONE)])), Buffer.from(framing.end(trailers))]);
  };

  return {
    keepAlive: () => framed(KEEP_ALIVE),
    chunks: (list) => {
      const length = lengthOf(list);
      const out = framing.allocate(length);
      write(out, out.length - framing.tail - length, list);
      return out;
    },
    finish: (before, choices, stated) =>
      includeUsage ? end([...before, choices], Buffer.from(`${envelope},"choices":${EMPTY_CHOICES}${figures(stated)}`), stated) : end(before, Buffer.concat([prefix, choices, Buffer.from(figures(stated))]), stated),
    error: (before, error, stated, finished = NONE) => {
      const open = Array.from({ length: asked }, (_none, index) => index).filter((index) => !finished.has(index));
      const head = `${envelope},"error":${renderErrorObject(error)},"choices":${errorChoices(open)}`;
      if (stated !== undefined && 'usage' in stated) return end(before, Buffer.from(head + figures(stated)), stated);
      const metadata = stated === undefined ? '' : metadataOf(stated);
      return end(before, Buffer.concat([Buffer.from(head + metadata), suffix]), stated);
    },
  };
}
