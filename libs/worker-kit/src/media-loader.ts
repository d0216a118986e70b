/** Composing for wires that take files, not addresses: what a client's message points at is fetched first, guarded. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { AllowList } from '@signalbox/net-guard/allow-list';
import { createDialer } from '@signalbox/net-guard/dialer';
import { createFetchFile, type FetchFile } from '@signalbox/net-guard/fetcher';
import { isOurs } from '@signalbox/net-guard/refusal';
import { failure, type Failure } from '@signalbox/wires/canonical';
import type { FetchedMedia, Media, MediaKind, MediaReference } from '@signalbox/wires/media';
import { badInput, Unsendable } from '@signalbox/wires/unsendable';
import { isLarge, othersTurn } from './large-request.js';
import type { OnLeave } from './provider.js';

/** A request as far as it can be put together before its files are here. */
export interface Draft {
  /** What has to be fetched; empty = nothing. */
  readonly media: readonly MediaReference[];
  /** Throws Unsendable. */
  body(fetched: FetchedMedia): Buffer;
}

/** Lower-case media types that the wire takes, such as `image/png`. */
export type MediaTypes = Readonly<Record<MediaKind, readonly string[]>>;

export type LoadedRequest = Pick<DispatchRequest__Output, 'accountId' | 'fields'>;

export interface MediaLoader {
  /**
   * What `send` makes of the body, or why the request cannot be sent. A promise only where something has to be fetched, or
   * the request is large: others have their turn between its reading and its writing. `draft` may throw Unsendable. Rejects
   * with a Fault `overloaded` where a name could not be looked up, which no client can help. Once its caller has left, what still waits to be fetched is not, and some failure is the answer.
   */
  compose<Sent>(request: LoadedRequest, draft: () => Draft, mediaTypes: MediaTypes, send: (body: Buffer) => Sent, onLeave?: OnLeave): Sent | Failure | Promise<Sent | Failure>;
}

const FILE_BYTES_MAX = 8_388_608;
const FILES_MAX = 16;
/** Redirects and the last byte included. */
const FETCH_MS = 10_000;
/** Of all requests together: what is being fetched is held in memory. */
const FETCHES_MAX = 8;
/** Of one account: slow addresses of one client keep no other waiting. */
const FETCHES_OF_ACCOUNT_MAX = 6;
const NOTHING: FetchedMedia = new Map();
/** Nobody hears of it. */
const left = (): Unsendable => new Unsendable(failure('DISCONNECTED', false));

/** Who waits for a request's files. */
interface Caller {
  hasLeft: boolean;
  readonly leaving: (() => void)[];
}

function failureOf(error: unknown): Failure {
  if (error instanceof Unsendable) return error.failure;
  throw error;
}

export function createMediaLoader(fetchFile: FetchFile): MediaLoader {
  /** In the order of arrival. */
  const waiting = new Set<{ readonly accountId: string; readonly go: () => void }>(); // kept: of requests with files by URL, where all places are taken.
  /** Fetches under way by account, those alone that have any. */
  const fetching = new Map<string, number>(); // kept: of requests with files by URL; ids and numbers.
  let total = 0;

  const fetchesOf = (accountId: string): number => fetching.get(accountId) ?? 0;
  const count = (accountId: string, by: 1 | -1): void => {
    const now = fetchesOf(accountId) + by;
    total += by;
    if (now === 0) fetching.delete(accountId);
    else fetching.set(accountId, now);
  };
  const turn = (accountId: string, caller: Caller): Promise<void> => {
    if (caller.hasLeft) return Promise.reject(left());
    if (total < FETCHES_MAX && fetchesOf(accountId) < FETCHES_OF_ACCOUNT_MAX) {
      count(accountId, 1);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const place = { accountId, go: resolve };
      waiting.add(place);
      // It holds the whole request: a line of those whose clients are gone would fill the memory.
      caller.leaving.push(() => {
        if (waiting.delete(place)) reject(left());
      });
    });
  };
  /** The next is the first in line of the account with the fewest under way. */
  const leave = (accountId: string): void => {
    count(accountId, -1);
    let next: { readonly accountId: string; readonly go: () => void } | undefined;
    for (const one of waiting) if (next === undefined || fetchesOf(one.accountId) < fetchesOf(next.accountId)) next = one;
    if (next === undefined || fetchesOf(next.accountId) >= FETCHES_OF_ACCOUNT_MAX) return;
    waiting.delete(next);
    count(next.accountId, 1);
    next.go();
  };

  const load = async (accountId: string, { url, kind, param }: MediaReference, mediaTypes: MediaTypes, caller: Caller): Promise<Media> => {
    await turn(accountId, caller);
    try {
      const file = await fetchFile(url, { bytesMax: FILE_BYTES_MAX, timeoutMs: FETCH_MS, mediaTypes: mediaTypes[kind] });
      // Another replica, or another provider, may do better: none of the URL's doing.
      if (!file.ok && isOurs(file.refusal)) throw new Fault('overloaded', 'a name could not be looked up');
      if (!file.ok) throw badInput(param, `The URL ${file.refusal.sentence}`);
      return { mediaType: file.mediaType, base64: file.bytes.toString('base64') };
    } finally {
      leave(accountId);
    }
  };

  const loadAll = async (accountId: string, { media }: Draft, mediaTypes: MediaTypes, onLeave: OnLeave | undefined): Promise<FetchedMedia> => {
    const tooMany = media[FILES_MAX];
    if (tooMany !== undefined) throw badInput(tooMany.param, `At most ${String(FILES_MAX)} files are fetched for one request.`);
    const caller: Caller = { hasLeft: false, leaving: [] };
    onLeave?.(() => {
      caller.hasLeft = true;
      for (const stop of caller.leaving) stop();
    });
    return new Map(await Promise.all(media.map(async (reference) => [reference.url, await load(accountId, reference, mediaTypes, caller)] as const)));
  };

  return {
    compose: (request, make, mediaTypes, send, onLeave) => {
      try {
        const draft = make();
        if (draft.media.length === 0 && !isLarge(request)) return send(draft.body(NOTHING));
        const loaded = draft.media.length === 0 ? othersTurn().then(() => NOTHING) : loadAll(request.accountId, draft, mediaTypes, onLeave);
        return loaded
          .then((fetched) => send(draft.body(fetched)))
          .catch(failureOf);
      } catch (error) {
        return failureOf(error);
      }
    },
  };
}

/** The loader of a service: what it fetches goes through the one guarded dialer. */
export function createGuardedMediaLoader(allow: AllowList, clock: Clock): MediaLoader {
  return createMediaLoader(createFetchFile({ dialer: createDialer({ allow, clock }), clock }));
}
