/** Fetches a file from a client-supplied URL, through the guarded dialer, with limits on size, time, redirects and type. */
import type { Clock } from '@signalbox/kernel/clock';
import { Pieces } from '@signalbox/kernel/pieces';
import { Client, type DispatchHandler } from '@signalbox/runtime/http-client';
import type { Dialer } from './dialer.js';
import { essenceOf, mediaTypeOf } from './media-type.js';
import { refusal, RefusedError, type Refusal, type RefusalReason } from './refusal.js';

const REDIRECTS_MAX = 4;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const HEADER_BYTES_MAX = 16_384;

export interface FetchLimits {
  readonly bytesMax: number;
  /** From the call to the last byte, redirects included. */
  readonly timeoutMs: number;
  /** Accepted media types, in lower case and without parameters, such as `image/png`. */
  readonly mediaTypes: readonly string[];
}

export type Fetched =
  /** `mediaType` is determined by the bytes if their format has a signature, else by the server's header. It is one of the accepted types. */
  { readonly ok: true; readonly bytes: Buffer; readonly mediaType: string } | { readonly ok: false; readonly refusal: Refusal };

/** Never rejects. Sends nothing of the client's but the URL; follows at most 4 redirects, each checked like the first. Safe to call twice. */
export type FetchFile = (url: string, limits: FetchLimits) => Promise<Fetched>;

type Hop = Fetched | { readonly redirectTo: string };
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}

/** Decides by the response head: a refusal, a redirect, or undefined to read the body. */
function judgeHead(status: number, headers: Headers, { bytesMax, mediaTypes }: FetchLimits): Hop | undefined {
  const refuse = (reason: RefusalReason): Hop => ({ ok: false, refusal: refusal(reason) });
  const location = headerOf(headers, 'location');
  if (REDIRECTS.has(status) && location !== '') return { redirectTo: location };
  if (status !== 200) return refuse('status');
  if (Number(headerOf(headers, 'content-length') || '0') > bytesMax) return refuse('too-large');
  const declared = essenceOf(headerOf(headers, 'content-type'));
  if (declared !== '' && !mediaTypes.includes(declared)) return refuse('media-type');
  // We asked for no compression, and the unpacked size would not be bounded by the bytes received.
  const encoding = headerOf(headers, 'content-encoding').trim().toLowerCase();
  return encoding === '' || encoding === 'identity' ? undefined : refuse('media-type');
}

/** One request; `onStart` receives a function that aborts it. */
function fetchOnce(dialer: Dialer, url: URL, limits: FetchLimits, onStart: (cut: (reason: RefusalReason) => void) => void): Promise<Hop> {
  const client = new Client(url.origin, { connect: dialer.connect, maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: 0, bodyTimeout: 0 });
  return new Promise<Hop>((resolve) => {
    const pieces = new Pieces();
    let declared = '';
    let isOver = false;
    const end = (hop: Hop): void => {
      if (isOver) return;
      isOver = true;
      resolve(hop);
      client.destroy().catch(() => undefined);
    };
    const refuse = (reason: RefusalReason): void => end({ ok: false, refusal: refusal(reason) });
    onStart(refuse);
    const handler: DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart: (_controller, status, headers) => {
        if (status < 200) return;
        declared = headerOf(headers, 'content-type');
        const judged = judgeHead(status, headers, limits);
        if (judged !== undefined) end(judged);
      },
      onResponseData: (_controller, chunk) => {
        if (isOver) return;
        pieces.push(chunk);
        if (pieces.bytes > limits.bytesMax) refuse('too-large');
      },
      onResponseEnd: () => {
        if (isOver) return;
        const bytes = pieces.take();
        const mediaType = mediaTypeOf(bytes, declared, limits.mediaTypes);
        end(mediaType === undefined ? { ok: false, refusal: refusal('media-type') } : { ok: true, bytes, mediaType });
      },
      onResponseError: (_controller, error) => end({ ok: false, refusal: error instanceof RefusedError ? error.refusal : refusal('unreachable') }),
    };
    client.dispatch(
      {
        path: `${url.pathname}${url.search}`,
        method: 'GET',
        headers: { accept: limits.mediaTypes.join(', '), 'accept-encoding': 'identity', 'user-agent': 'signalbox' },
      },
      handler,
    );
  });
}

export function createFetchFile({ dialer, clock }: { readonly dialer: Dialer; readonly clock: Clock }): FetchFile {
  return async (text, limits) => {
    let isLate = false;
    let cut: (reason: RefusalReason) => void = () => undefined;
    const timer = clock.setTimer(
      limits.timeoutMs,
      () => {
        isLate = true;
        cut('timeout');
      },
      { unref: true },
    );
    try {
      let target = text;
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
        const checked = dialer.check(target);
        if (!checked.ok) return checked;
        if (isLate) return { ok: false, refusal: refusal('timeout') };
        const hop = await fetchOnce(dialer, checked.url, limits, (abort) => {
          cut = abort;
        });
        if ('ok' in hop) return hop;
        if (!URL.canParse(hop.redirectTo, checked.url.href)) return { ok: false, refusal: refusal('bad-url') };
        const next = new URL(hop.redirectTo, checked.url);
        // Do not follow a redirect from https to http.
        if (checked.url.protocol === 'https:' && next.protocol !== 'https:') return { ok: false, refusal: refusal('scheme') };
        target = next.href;
      }
      return { ok: false, refusal: refusal('too-many-redirects') };
    } finally {
      timer.cancel();
    }
  };
}
