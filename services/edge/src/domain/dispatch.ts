/** One attempt at one provider: events of its worker to the client's answer, until it ends, fails or the client leaves. */
import type { Body__Output, Chunk__Output, DispatchEvent__Output, DispatchRequest, End__Output, Failed__Output, Head__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { toFault, type Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { Answer, Route, Settlement } from './answer.js';
import type { AttemptCall, WorkersPort } from './ports.js';

/** A reader that takes nothing for this long is cut (FAILURES, slow reader). */
const STALLED_READER_MS = 60_000;

export type AttemptResult =
  | { readonly kind: 'complete' }
  /** Nothing of it reached the client: another attempt may answer. */
  | { readonly kind: 'failed'; readonly failed: Failed__Output; readonly trace: AttemptTrace }
  /** The stream broke after content, and the client has been told. */
  | { readonly kind: 'cut' }
  /** The client hung up, or took nothing for too long. */
  | { readonly kind: 'gone'; readonly wasSent: boolean };

/**
 * What a failed attempt left at its worker: `none` = nothing is journaled, so nobody there ends the hold; `journaled`;
 * `lost` = the link broke and the worker, if it lives, goes on or concludes without us.
 */
export type AttemptTrace = 'none' | 'journaled' | 'lost';

/** Shared by the attempts of one request: the silence that the client sees spans them. */
export interface Activity {
  /** Monotonic milliseconds of the last byte sent, or of the request's start. */
  lastSentMs: number;
}

export interface AttemptOptions {
  readonly workers: WorkersPort;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly activity: Activity;
  readonly answer: Answer;
  readonly request: DispatchRequest;
  readonly provider: string;
  readonly isStream: boolean;
  readonly route: (head: Head__Output | undefined) => Route;
  readonly settle: (end: End__Output) => Settlement;
}

const NO_TEXT = { publicMessage: '', publicParam: '' } as const;

const UNJOURNALED: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['RATE_LIMITED', 'BAD_REQUEST']);
const LOST: ReadonlySet<FaultCode> = new Set<FaultCode>(['link_lost', 'deadline_exceeded', 'cancelled']);

/** Without a free credential, or a way to say the request on its wire, the worker refuses before it writes anything down. */
const traceOf = ({ class: failureClass, status }: Failed__Output): AttemptTrace => (failureClass === 'NO_CREDENTIAL' || (status === 0 && UNJOURNALED.has(failureClass)) ? 'none' : 'journaled');
const traceOfFault = (fault: Fault | undefined): AttemptTrace => (fault === undefined || LOST.has(fault.code) ? 'lost' : 'none');

export function failureOf(failureClass: Failed__Output['class'], isRetryable: boolean): Failed__Output {
  return { class: failureClass, status: 0, retryAfterMs: 0, retryable: isRetryable, ...NO_TEXT };
}

function failureOfFault(fault: Fault | undefined): Failed__Output {
  if (fault === undefined) return failureOf('DISCONNECTED', true);
  return failureOf(fault.code === 'deadline_exceeded' ? 'TIMEOUT_IDLE' : fault.code === 'link_lost' ? 'DISCONNECTED' : 'CONNECT', true);
}

const finishChunk = (reason: string): Buffer => Buffer.from(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":${JSON.stringify(reason === '' || reason === 'error' ? 'stop' : reason)}}]`);

/** Resolves once, never rejects; the answer's last word has been given for `complete` and `cut`. The outcome is the caller's to tell. */
export function runAttempt(options: AttemptOptions): Promise<AttemptResult> {
  const { workers, clock, heartbeatMs, activity, answer, request, provider, isStream } = options;
  return new Promise((resolve) => {
    let route = options.route(undefined);
    let call: AttemptCall | undefined;
    let body: Body__Output | undefined;
    // Chunks before the first content stay here: until then another attempt may answer instead.
    let early: Chunk__Output[] = [];
    let heldFinish: Chunk__Output | undefined;
    let hasContent = false;
    let isOver = false;
    let heartbeat: Timer | undefined;
    let stalled: Timer | undefined;

    const over = (result: AttemptResult): void => {
      if (isOver) return;
      isOver = true;
      heartbeat?.cancel();
      stalled?.cancel();
      resolve(result);
    };

    const beat = (): void => {
      const nowMs = clock.monotonicMs();
      if (nowMs - activity.lastSentMs >= heartbeatMs) {
        // A reader that has stalled is not silent for want of words.
        if (stalled === undefined) answer.keepAlive(route);
        activity.lastSentMs = nowMs;
      }
      heartbeat = clock.setTimer(Math.max(1, heartbeatMs - (nowMs - activity.lastSentMs)), beat);
    };

    const send = (chunk: Chunk__Output): void => {
      activity.lastSentMs = clock.monotonicMs();
      if (answer.chunk(route, chunk.choices) || stalled !== undefined) return;
      call?.pause();
      stalled = clock.setTimer(STALLED_READER_MS, () => {
        // Over first: cancelling ends the call at once, and a failure now would be written to the stalled reader.
        over({ kind: 'gone', wasSent: true });
        call?.cancel();
        answer.abandon();
      });
      answer.onDrain(() => {
        stalled?.cancel();
        stalled = undefined;
        if (!isOver) call?.resume();
      });
    };

    const onChunk = (chunk: Chunk__Output): void => {
      if (heldFinish !== undefined) {
        send(heldFinish);
        heldFinish = undefined;
      }
      if (!hasContent && !chunk.content && !chunk.finish) {
        early.push(chunk);
        return;
      }
      if (!hasContent) {
        hasContent = true;
        for (const waiting of early) send(waiting);
        early = [];
      }
      if (chunk.finish) heldFinish = chunk;
      else send(chunk);
    };

    const onFailed = (failed: Failed__Output, settlement: Settlement | undefined, trace: AttemptTrace): void => {
      if (!hasContent) {
        over({ kind: 'failed', failed, trace });
        return;
      }
      over({ kind: 'cut' });
      answer.cut(route, failed, settlement);
    };

    const complete = (end: End__Output): void => {
      const settlement = options.settle(end);
      if (end.cut !== null && end.cut !== undefined && isStream) {
        onFailed(end.cut, settlement, 'journaled');
        return;
      }
      if (isStream) {
        for (const waiting of early) send(waiting);
        early = [];
        answer.finish(route, heldFinish?.choices ?? finishChunk(end.finishReason), settlement);
      } else if (body !== undefined) answer.body(route, body, settlement);
      else {
        over({ kind: 'failed', failed: end.cut ?? failureOf('EMPTY', true), trace: 'journaled' });
        return;
      }
      over({ kind: 'complete' });
    };

    const onEvent = (event: DispatchEvent__Output): void => {
      if (isOver) return;
      switch (event.event) {
        case 'head':
          if (event.head) route = options.route(event.head);
          break;
        case 'chunk':
          if (event.chunk && isStream) onChunk(event.chunk);
          break;
        case 'body':
          if (event.body) body = event.body;
          break;
        case 'end':
          if (event.end) complete(event.end);
          break;
        case 'failed':
          if (event.failed) onFailed(event.failed, undefined, traceOf(event.failed));
          break;
        case undefined:
          // An event that this version does not know.
          break;
      }
    };

    answer.onGone(() => {
      if (isOver) return;
      over({ kind: 'gone', wasSent: call !== undefined });
      call?.cancel();
    });
    if (isOver) return;
    const onEnd = (fault: Fault | undefined): void => {
      if (!isOver) onFailed(failureOfFault(fault), undefined, traceOfFault(fault));
    };
    try {
      call = workers.dispatch(provider, request, { onEvent, onEnd });
    } catch (error) {
      // The request could not be written, for instance because it is larger than a message may be.
      onEnd(toFault(error));
      return;
    }
    if (call === undefined) {
      over({ kind: 'failed', failed: failureOf('NO_CREDENTIAL', true), trace: 'none' });
      return;
    }
    if (isStream && !isOver) beat();
  });
}

