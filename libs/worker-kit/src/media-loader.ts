/** Composes requests for wires that take files instead of URLs: what a client's message points to is fetched first, through the guarded dialer. */
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
import type { Caller } from './provider.js';

/** A request that is composed except for its files. */
export interface Draft {
  /** Files to fetch; empty = none. */
  readonly media: readonly MediaReference[];
  /** Throws Unsendable. */
  body(fetched: FetchedMedia): Buffer;
}

/** Lower-case media types that the wire takes, such as `image/png`. */
export type MediaTypes = Readonly<Record<MediaKind, readonly string[]>>;

export type LoadedRequest = Pick<DispatchRequest__Output, 'accountId' | 'fields'>;

export interface MediaLoader {
  /**
   * Returns what `send` makes of the body, or why the request cannot be sent. It is a promise only if files have to be fetched
   * or the request is large; others then get a turn between reading and writing it. `draft` may throw Unsendable. Rejects with
   * a Fault `overloaded` if a host name could not be looked up or there is no room for the files, which is not the client's fault.
   * Once the caller has left, no further file is fetched, and the result is some failure.
   */
  compose<Sent>(request: LoadedRequest, draft: () => Draft, mediaTypes: MediaTypes, send: (body: Buffer) => Sent, caller?: Caller): Sent | Failure | Promise<Sent | Failure>;
}

const FILE_BYTES_MAX = 8_388_608;
/** All files of one request, of which four thirds are sent in base64: 32 MiB, which is more than most providers take. */
const FILES_BYTES_MAX = 25_165_824;
const FILES_MAX = 16;
/** For one file, with redirects and until the last byte. */
const FETCH_MS = 10_000;
/** Concurrent fetches of all requests together, since the files are held in memory. */
const FETCHES_MAX = 8;
/** Concurrent fetches of one account, so that one client's slow URLs do not block the others. */
const FETCHES_OF_ACCOUNT_MAX = 6;
const NOTHING: FetchedMedia = new Map();
/** The failure after the caller left; nobody receives it. */
const left = (): Unsendable => new Unsendable(failure('DISCONNECTED', false));

/** The files of one request on their way. */
interface Loading {
  bytes: number;
  /** True once nobody needs the rest: the caller left, or a file was refused. */
  isOver: boolean;
  readonly leaving: (() => void)[];
}

function failureOf(error: unknown): Failure {
  if (error instanceof Unsendable) return error.failure;
  throw error;
}

export function createMediaLoader(fetchFile: FetchFile): MediaLoader {
  /** In the order of arrival. */
  const waiting = new Set<{ readonly accountId: string; readonly go: () => void }>(); // kept: of requests with files by URL, where all places are taken.
  /** Fetches under way, for accounts that have any. */
  const fetching = new Map<string, number>(); // kept: of requests with files by URL; ids and numbers.
  let total = 0;

  const fetchesOf = (accountId: string): number => fetching.get(accountId) ?? 0;
  const count = (accountId: string, by: 1 | -1): void => {
    const now = fetchesOf(accountId) + by;
    total += by;
    if (now === 0) fetching.delete(accountId);
    else fetching.set(accountId, now);
  };
  const turn = (accountId: string, loading: Loading): Promise<void> => {
    if (loading.isOver) return Promise.reject(left());
    if (total < FETCHES_MAX && fetchesOf(accountId) < FETCHES_OF_ACCOUNT_MAX) {
      count(accountId, 1);
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const place = { accountId, go: resolve };
      waiting.add(place);
      // A waiting fetch holds the whole request in memory; those whose clients have left must not pile up.
      loading.leaving.push(() => {
        if (waiting.delete(place)) reject(left());
      });
    });
  };
  /** Ends a fetch and starts the next: the longest waiting one of the account with the fewest under way. */
  const leave = (accountId: string): void => {
    count(accountId, -1);
    let next: { readonly accountId: string; readonly go: () => void } | undefined;
    for (const one of waiting) if (next === undefined || fetchesOf(one.accountId) < fetchesOf(next.accountId)) next = one;
    if (next === undefined || fetchesOf(next.accountId) >= FETCHES_OF_ACCOUNT_MAX) return;
    waiting.delete(next);
    count(next.accountId, 1);
    next.go();
  };

  const load = async (accountId: string, { url, kind, param }: MediaReference, mediaTypes: MediaTypes, loading: Loading, caller: Caller | undefined): Promise<Media> => {
    await turn(accountId, loading);
    try {
      if (loading.isOver) throw left();
      const file = await fetchFile(url, { bytesMax: FILE_BYTES_MAX, timeoutMs: FETCH_MS, mediaTypes: mediaTypes[kind] });
      // Not the URL's fault: another replica or another provider may succeed.
      if (!file.ok && isOurs(file.refusal)) throw new Fault('overloaded', 'a name could not be looked up');
      if (!file.ok) throw badInput(param, `The URL ${file.refusal.sentence}`);
      if (loading.isOver) throw left();
      loading.bytes += file.bytes.length;
      if (loading.bytes > FILES_BYTES_MAX) throw badInput(param, `The files that one request links to may have at most ${String(FILES_BYTES_MAX / 1_048_576)} MiB together.`);
      const base64 = file.bytes.toString('base64');
      caller?.grow(base64.length);
      return { mediaType: file.mediaType, base64 };
    } catch (error) {
      loading.isOver = true;
      throw error;
    } finally {
      leave(accountId);
    }
  };

  const loadAll = async (accountId: string, { media }: Draft, mediaTypes: MediaTypes, caller: Caller | undefined): Promise<FetchedMedia> => {
    const tooMany = media[FILES_MAX];
    if (tooMany !== undefined) throw badInput(tooMany.param, `At most ${String(FILES_MAX)} files are fetched for one request.`);
    const loading: Loading = { bytes: 0, isOver: false, leaving: [] };
    const end = (): void => {
      loading.isOver = true;
      for (const stop of loading.leaving) stop();
    };
    caller?.onLeave(end);
    try {
      return new Map(await Promise.all(media.map(async (reference) => [reference.url, await load(accountId, reference, mediaTypes, loading, caller)] as const)));
    } catch (error) {
      end();
      throw error;
    }
  };

  return {
    compose: (request, make, mediaTypes, send, caller) => {
      try {
        const draft = make();
        if (draft.media.length === 0 && !isLarge(request)) return send(draft.body(NOTHING));
        const loaded = draft.media.length === 0 ? othersTurn().then(() => NOTHING) : loadAll(request.accountId, draft, mediaTypes, caller);
        return loaded
          .then((fetched) => send(draft.body(fetched)))
          .catch(failureOf);
      } catch (error) {
        return failureOf(error);
      }
    },
  };
}

/** The loader for a service; it fetches through the guarded dialer. */
export function createGuardedMediaLoader(allow: AllowList, clock: Clock): MediaLoader {
  return createMediaLoader(createFetchFile({ dialer: createDialer({ allow, clock }), clock }));
}
