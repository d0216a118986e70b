/** What dispatch needs to know of a provider: how to ask it, and how to read it. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import type { AnswerResult, Failure, StreamTransducer } from '@signalbox/wires/canonical';
import type { ImagesRequest } from '@signalbox/wires/openai-images/request';
import type { ImagesAnswer } from '@signalbox/wires/openai-images/response';

/** By lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface UpstreamRequest {
  /** Absolute path with query. */
  readonly path: string;
  /** Names in lower case and values, in turn; dispatch adds `x-request-id` itself. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  /** Where this wire of the provider is, when that is not the adapter's origin. */
  readonly origin?: string;
  /** The origin was given by a client: connections to it go through the guarded dialer. */
  readonly isGuarded?: boolean;
}

export type Composed = UpstreamRequest | Failure;

/** Calls the listener once when nobody waits for the attempt any more. Taken once at most. */
export type OnLeave = (listener: () => void) => void;

/** A provider's image API. Pure, like the rest of its wire. */
export interface ImagesWire {
  compose(request: ImagesRequest, secret: Secret | undefined): UpstreamRequest;
  readAnswer(body: Uint8Array): ImagesAnswer;
}

/** One provider's wire. Pure, the secret apart, which it only puts into headers. */
export interface ProviderAdapter {
  /** Catalog id, such as `openai`. */
  readonly provider: string;
  /** Scheme, host and port of the provider. */
  readonly origin: string;
  /** `secret` is undefined for providers that need none. A failure: this wire cannot carry the request, so nothing is sent or journaled. What it waits for may end once the caller has left: nothing is sent then, whatever it answers. */
  compose(request: DispatchRequest__Output, secret: Secret | undefined, onLeave?: OnLeave): Composed | Promise<Composed>;
  createTransducer(request: DispatchRequest__Output): StreamTransducer;
  readAnswer(body: Uint8Array, request: DispatchRequest__Output): AnswerResult;
  /** `readAnswer` gives on what stands in `logprobs` as it came, whatever it is: of a long answer they are read by themselves, in steps. */
  readonly keepsLogprobs?: boolean;
  classifyRefusal(refusal: { readonly status: number; readonly headers: ResponseHeaders; readonly body: Uint8Array; readonly nowMs: number }): Failure;
  /** The provider answered 401 to this credential: what was fetched for it is not sent again. Absent: nothing is. */
  onCredentialRefused?(secret: Secret): void;
  /** Absent: this wire makes no images. */
  readonly images?: ImagesWire;
}
