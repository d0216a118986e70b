/** Makes images with the provider's image API, in one call and without the journal. The caller charges for them. */
import type { GenerateImagesRequest__Output, GenerateImagesResponse } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import { Pieces } from '@signalbox/kernel/pieces';
import type { Log } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import { failure, type Failure } from '@signalbox/wires/canonical';
import { AnswerTally, ANSWER_BOUNDS } from '@signalbox/wires/json-bounds';
import { withoutSecret, type CredentialPool, type TakenCredential } from './credentials.js';
import { failedMessage } from './dispatch-records.js';
import type { WorkerMetrics } from './metrics.js';
import type { OwnCredential, OwnCredentials } from './own-credentials.js';
import type { ImagesWire, ProviderAdapter, ResponseHeaders, UpstreamRequest } from './provider.js';
import { STALE_MS, type Upstream, type UpstreamCall } from './upstream.js';

/** Providers take up to a minute for an image of the most expensive kind. */
const TIMEOUT_MS = 110_000;
/** The files are in base64; decoded, an answer of this size fits into a message. */
const BODY_BYTES_MAX = 64 * 1_024 * 1_024;
const REFUSAL_BYTES_MAX = 65_536;

export interface ImageMakerOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly credentials: CredentialPool;
  /** Without it, calls on an account's own credential fail with NO_CREDENTIAL; the operator's key is never used instead. */
  readonly ownCredentials?: Pick<OwnCredentials, 'resolve'>;
  readonly metrics: WorkerMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** Never rejects because of the provider. `signal` aborts when nobody waits for the images any more. */
export type MakeImages = (request: GenerateImagesRequest__Output, signal: AbortSignal) => Promise<GenerateImagesResponse>;

interface Made {
  readonly images: readonly Buffer[];
  readonly promptTokens: number | undefined;
}

type Exchanged = { readonly kind: 'whole'; readonly status: number; readonly headers: ResponseHeaders; readonly body: Buffer } | { readonly kind: 'failed'; readonly failure: Failure; readonly isStale?: boolean };

export function createImageMaker({ adapter: operators, upstream, credentials: shared, ownCredentials, metrics, clock, log }: ImageMakerOptions): MakeImages {
  const warnUnasked = rareWarning(log, clock, "An account's own credential could not be fetched.");
  const exchange = (request: UpstreamRequest, requestId: string, accountId: string, signal: AbortSignal): Promise<Exchanged> =>
    new Promise((resolve) => {
      let status = 0;
      let headers: ResponseHeaders = {};
      const startedMs = clock.monotonicMs();
      const pieces = new Pieces();
      const tally = new AnswerTally(ANSWER_BOUNDS);
      let call: UpstreamCall | undefined;
      const end = (result: Exchanged): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        call?.abort();
        resolve(result);
      };
      const whole = (): void => end({ kind: 'whole', status, headers, body: pieces.take() });
      const onAbort = (): void => end({ kind: 'failed', failure: failure('DISCONNECTED', true, status) });
      const timer = clock.setTimer(TIMEOUT_MS, () => end({ kind: 'failed', failure: failure(status === 0 ? 'TIMEOUT_FIRST_BYTE' : 'TIMEOUT_IDLE', true, status) }), { unref: true });
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) {
        onAbort();
        return;
      }
      call = upstream.post(request, requestId, {
        onHead: (told, given) => {
          status = told;
          headers = given;
        },
        onData: (part) => {
          pieces.push(part);
          if (pieces.bytes > BODY_BYTES_MAX || !tally.push(part)) {
            end({ kind: 'failed', failure: failure('GARBAGE', true, status) });
            return;
          }
          // The beginning of a refusal says all that matters.
          if ((status < 200 || status >= 300) && pieces.bytes > REFUSAL_BYTES_MAX) whole();
        },
        onEnd: whole,
        onError: (kind) => end({ kind: 'failed', failure: failure(kind === 'connect' || kind === 'unable' ? 'CONNECT' : 'DISCONNECTED', true, status), isStale: kind === 'stale' && clock.monotonicMs() - startedMs <= STALE_MS }),
      }, upstream.enter?.(request, accountId));
    });

  /** The account's own credential; undefined if it has none, `away` if accounts cannot be asked now, which is not a refusal. */
  const ownOf = async ({ accountId, byokHandle, requestId }: GenerateImagesRequest__Output): Promise<OwnCredential | 'away' | undefined> => {
    try {
      return byokHandle === '' ? undefined : await ownCredentials?.resolve(accountId, byokHandle);
    } catch (error) {
      warnUnasked({ provider: operators.provider, request_id: requestId, error: error instanceof Error ? error.name : 'unknown' });
      return 'away';
    }
  };

  const run = async (request: GenerateImagesRequest__Output, signal: AbortSignal): Promise<Made | Failure> => {
    const own = request.byok ? await ownOf(request) : undefined;
    if (own === 'away') return failure('ACCOUNTS_AWAY');
    if (request.byok && own === undefined) return failure('NO_CREDENTIAL');
    const adapter = own?.adapter ?? operators;
    if (adapter.images === undefined) return failure('NOT_FOUND');
    const credentials = own?.pool ?? shared;
    const taken = credentials.take(request.providerModelId);
    if (!taken.ok) return { ...failure(taken.isResting ? 'RATE_LIMITED' : 'NO_CREDENTIAL'), retryAfterMs: taken.retryAfterMs };
    try {
      return await ask(request, signal, adapter.images, adapter, own, credentials, taken.credential);
    } finally {
      credentials.release(taken.credential);
    }
  };

  const ask = async (request: GenerateImagesRequest__Output, signal: AbortSignal, images: ImagesWire, adapter: ProviderAdapter, own: OwnCredential | undefined, credentials: CredentialPool, credential: TakenCredential): Promise<Made | Failure> => {
    const composed = images.compose(request, credential.secret);
    const sent = own?.isAtOwnAddress === true ? { ...composed, origin: composed.origin ?? adapter.origin, isGuarded: true } : composed;
    const asked = (): Promise<Exchanged> => exchange(sent, `${request.requestId}/image`, request.accountId, signal);
    const first = await asked();
    // Asked once more on a new connection, as an attempt of a chat is (ADR 105).
    const exchanged = first.kind === 'failed' && first.isStale === true ? await asked() : first;
    if (exchanged.kind === 'failed') return exchanged.failure;
    const { status, headers, body } = exchanged;
    if (status < 200 || status >= 300) {
      const reason = adapter.classifyRefusal({ status, headers, body, nowMs: clock.nowMs() });
      if (reason.class === 'CREDENTIAL') {
        credentials.refused(credential);
        if (own === undefined) log.warn('The provider refused a credential; it is benched.', { provider: adapter.provider, status });
      } else if (reason.class === 'RATE_LIMITED') credentials.rest(credential, request.providerModelId, reason.retryAfterMs);
      return { ...reason, publicMessage: withoutSecret(reason.publicMessage, credential) };
    }
    const answer = images.readAnswer(body);
    if (!answer.ok) return { ...answer.failure, publicMessage: withoutSecret(answer.failure.publicMessage, credential) };
    credentials.succeeded(credential);
    return answer;
  };

  return async (request, signal) => {
    const startedMs = clock.monotonicMs();
    const result = await run(request, signal);
    const seconds = (clock.monotonicMs() - startedMs) / 1_000;
    if ('class' in result) {
      metrics.images(result.class, 0, seconds);
      return { failed: failedMessage(result) };
    }
    metrics.images('ok', result.images.length, seconds);
    return { images: [...result.images], ...(result.promptTokens === undefined ? {} : { promptTokens: result.promptTokens }) };
  };
}
