/** Types of an attempt: what it needs, what it reports while it runs, and how it ends. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { Answer, Failure, StreamEvent, Usage } from '@signalbox/wires/canonical';
import type { HoldGrowth } from './hold-growth.js';
import type { ProviderAdapter, UpstreamRequest } from './provider.js';
import type { Place, Upstream } from './upstream.js';

export type Ending =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'stream'; readonly cut: Failure | undefined }
  /** It failed before any content was passed on. `isStale`: a connection kept from earlier requests was closed at once, which says little about the provider. `isOurs`: this process could not open a connection, which says nothing about it. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly usage: Usage | undefined; readonly isStale?: boolean; readonly isOurs?: boolean }
  /** The caller left, or ended the stream, and the call to the provider was stopped. */
  | { readonly kind: 'abandoned' };

export type ChunkEvent = StreamEvent & { readonly type: 'chunk' };

export interface AttemptSinks {
  /** The provider answered 2xx and the first chunk of the stream has arrived. Not called for whole answers. */
  onHead(systemFingerprint: string, serviceTier: string): void;
  /** False: pause; `resume` is called when there is room again. */
  onChunk(event: ChunkEvent): boolean;
  /** Called after each read once content has arrived, with all output so far in bytes, at monotonic `nowMs`. */
  onProgress(outputBytes: number, nowMs: number): void;
}

export interface AttemptOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly request: DispatchRequest__Output;
  readonly upstreamRequest: UpstreamRequest;
  /** The connection reserved for this attempt. Absent: `upstream.post` waits for one. */
  readonly place?: Place | undefined;
  readonly sinks: AttemptSinks;
  /** Reserves memory for bytes of an answer from an account's own address, until the attempt is over. Throws Fault `overloaded` when there is no room. Absent = there is room. */
  readonly grow?: ((bytes: number) => void) | undefined;
  /** Present when the hold does not cover the whole answer. */
  readonly growth?: HoldGrowth | undefined;
}
