/** What an attempt is made with, what it tells while it runs, and how it ends. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { Answer, Failure, StreamEvent, Usage } from '@signalbox/wires/canonical';
import type { HoldGrowth } from './hold-growth.js';
import type { ProviderAdapter, UpstreamRequest } from './provider.js';
import type { Place, Upstream } from './upstream.js';

export type Ending =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'stream'; readonly cut: Failure | undefined }
  /** No content was given on. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly usage: Usage | undefined }
  /** The caller went away and the provider was stopped. */
  | { readonly kind: 'abandoned' };

export type ChunkEvent = StreamEvent & { readonly type: 'chunk' };

export interface AttemptSinks {
  /** A 2xx has come, and with it (for streams) the first chunk. */
  onHead(systemFingerprint: string, serviceTier: string): void;
  /** False: pause; `resume` is called when there is room again. */
  onChunk(event: ChunkEvent): boolean;
  /** Once for each read that brought content: all output so far, in bytes, at monotonic `nowMs`. */
  onProgress(outputBytes: number, nowMs: number): void;
}

export interface AttemptOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly request: DispatchRequest__Output;
  readonly upstreamRequest: UpstreamRequest;
  /** Absent: the attempt waits for one. */
  readonly place?: Place | undefined;
  readonly sinks: AttemptSinks;
  /** Given when the hold does not cover the whole answer. */
  readonly growth?: HoldGrowth | undefined;
}
