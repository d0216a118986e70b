/** What dispatch needs to know about a provider: how to compose requests and read answers. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Secret } from '@signalbox/runtime/secret';
import type { AnswerResult, Failure, StreamTransducer } from '@signalbox/wires/canonical';
import type { ImagesRequest } from '@signalbox/wires/openai-images/request';
import type { ImagesAnswer } from '@signalbox/wires/openai-images/response';

/** Keyed by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface UpstreamRequest {
  /** Absolute path with query. */
  readonly path: string;
  /** Lower-case names and values, alternating. The upstream adds `x-request-id` and `accept-encoding`. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  /** The origin to call, if it is not the adapter's. */
  readonly origin?: string;
  /** The origin was given by an account, so connections to it go through the guarded dialer. */
  readonly isGuarded?: boolean;
}

export type Composed = UpstreamRequest | Failure;

/** Who waits for the attempt that a request is composed for. */
export interface Caller {
  /** Registers a listener that is called once, when nobody waits any more. May be called once at most. */
  onLeave(listener: () => void): void;
  /** Reserves memory for `bytes` that were fetched for the request, until the attempt ends. Throws Fault `overloaded` when there is no room. */
  grow(bytes: number): void;
}

/** A provider's image API. Pure, like the rest of its wire. */
export interface ImagesWire {
  compose(request: ImagesRequest, secret: Secret | undefined): UpstreamRequest;
  readAnswer(body: Uint8Array): ImagesAnswer;
}

/** One provider's wire. Pure, except that it puts the secret into headers. */
export interface ProviderAdapter {
  /** Catalog id, such as `openai`. */
  readonly provider: string;
  /** Scheme, host and port of the provider. */
  readonly origin: string;
  /** Composes the request. `secret` is undefined for providers that need none. Returns a failure if this wire cannot carry the request; then nothing is sent or journaled. If it has to wait, it may stop once `caller` has left: its result is ignored then. */
  compose(request: DispatchRequest__Output, secret: Secret | undefined, caller?: Caller): Composed | Promise<Composed>;
  createTransducer(request: DispatchRequest__Output): StreamTransducer;
  readAnswer(body: Uint8Array, request: DispatchRequest__Output): AnswerResult;
  /** `readAnswer` passes the content of `logprobs` on unchanged. The log probabilities of a long answer may then be read separately, in steps. */
  readonly keepsLogprobs?: boolean;
  classifyRefusal(refusal: { readonly status: number; readonly headers: ResponseHeaders; readonly body: Uint8Array; readonly nowMs: number }): Failure;
  /** The provider answered 401: drop any access token that was fetched for this credential. Absent: this wire fetches none. */
  onCredentialRefused?(secret: Secret): void;
  /** Absent: this wire makes no images. */
  readonly images?: ImagesWire;
}
