/** One conversation with the provider, from the first byte sent to how it ended. Knows nothing of money or journals. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { failure, type Answer, type Failure, type StreamEvent, type StreamSummary, type Usage } from '@signalbox/wires/canonical';
import type { ProviderAdapter, UpstreamRequest } from './provider.js';
import type { Upstream, UpstreamCall } from './upstream.js';

const FIRST_BYTE_MS_DEFAULT = 10_000;
const IDLE_MS_DEFAULT = 30_000;
/** A whole answer may take as long as the longest generation. */
const WHOLE_ANSWER_MS = 600_000;
const BODY_BYTES_MAX = 64 * 1_024 * 1_024;
const REFUSAL_BYTES_MAX = 65_536;
/** After the finish chunk: usage and `[DONE]` follow at once or not at all. */
const AFTER_FINISH_MS = 2_000;
/** A client that reads nothing for that long is gone. */
const STALLED_CLIENT_MS = 60_000;
const DRAIN_MS = 60_000;
/** No tokenizer averages more bytes a token over a long text. */
const ENDLESS_BYTES_PER_TOKEN = 16;
const ENDLESS_BYTES_MARGIN = 65_536;

const NO_CALL: UpstreamCall = { pause: () => undefined, resume: () => undefined, abort: () => undefined };

export type Ending =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'stream'; readonly cut: Failure | undefined }
  /** No content was given on. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly usage: Usage | undefined }
  /** The caller went away and the provider was stopped. */
  | { readonly kind: 'abandoned' };

export interface AttemptSinks {
  /** A 2xx has come, and with it (for streams) the first chunk. */
  onHead(systemFingerprint: string, serviceTier: string): void;
  /** False: pause; `resume` is called when there is room again. */
  onChunk(event: StreamEvent & { readonly type: 'chunk' }): boolean;
}

export interface Attempt {
  readonly ended: Promise<Ending>;
  /** HTTP status, 0 until it came. */
  status(): number;
  /** Milliseconds from start to the first chunk or byte of the body; 0 until then. */
  ttftMs(): number;
  summary(): StreamSummary | undefined;
  resume(): void;
  /** The caller went away: stop the provider now. */
  abandon(): void;
  /** The caller went away: go on without it for at most 60 s. */
  drain(): void;
}

export interface AttemptOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly request: DispatchRequest__Output;
  readonly upstreamRequest: UpstreamRequest;
  readonly sinks: AttemptSinks;
}

export function startAttempt({ adapter, upstream, clock, request, upstreamRequest, sinks }: AttemptOptions): Attempt {
  const startedAt = clock.monotonicMs();
  const transducer = request.stream ? adapter.createTransducer(request) : undefined;
  const outputTokensMax = request.maxTokens ?? request.maxOutputTokens;
  const outputBytesMax = outputTokensMax > 0 ? outputTokensMax * ENDLESS_BYTES_PER_TOKEN + ENDLESS_BYTES_MARGIN : Infinity;
  let settle: (ending: Ending) => void = () => undefined;
  const ended = new Promise<Ending>((resolve) => {
    settle = resolve;
  });
  let isOver = false;
  let status = 0;
  let headers: Readonly<Record<string, string | readonly string[] | undefined>> = {};
  let ttftMs = 0;
  let received = 0;
  let body: Buffer[] = [];
  let headGiven = false;
  let contentGiven = false;
  let lastDataAt = startedAt;
  let pausedAt: number | undefined;
  let finishedAt: number | undefined;
  let timer: Timer | undefined;
  let drainTimer: Timer | undefined;

  let call: UpstreamCall = NO_CALL;
  const end = (ending: Ending): void => {
    if (isOver) return;
    isOver = true;
    timer?.cancel();
    drainTimer?.cancel();
    body = [];
    call.abort();
    settle(ending);
  };
  const fail = (reason: Failure): void => {
    if (contentGiven) end({ kind: 'stream', cut: reason });
    else end({ kind: 'failed', failure: reason, usage: transducer?.summary().usage });
  };

  const idleMs = request.idleTimeoutMs || IDLE_MS_DEFAULT;
  const firstByteMs = request.stream ? request.firstByteTimeoutMs || FIRST_BYTE_MS_DEFAULT : WHOLE_ANSWER_MS;
  // One timer that looks where time stands: re-arming it for each chunk would cost more than the chunk.
  const watch = (delayMs: number): void => {
    timer = clock.setTimer(Math.max(1, delayMs), onWatch, { unref: true });
  };
  const onWatch = (): void => {
    if (isOver) return;
    const now = clock.monotonicMs();
    const due =
      pausedAt !== undefined ? pausedAt + STALLED_CLIENT_MS : finishedAt !== undefined ? finishedAt + AFTER_FINISH_MS : status === 0 || ttftMs === 0 ? startedAt + firstByteMs : lastDataAt + idleMs;
    if (now < due) watch(due - now);
    else if (pausedAt !== undefined) end({ kind: 'abandoned' });
    else if (finishedAt !== undefined) end({ kind: 'stream', cut: undefined });
    else fail(failure(status === 0 || ttftMs === 0 ? 'TIMEOUT_FIRST_BYTE' : 'TIMEOUT_IDLE', true, status));
  };

  const give = (event: StreamEvent): void => {
    if (isOver) return;
    if (event.type === 'failed') {
      fail({ ...event.failure, status: event.failure.status || status });
      return;
    }
    if (event.type === 'done') {
      end({ kind: 'stream', cut: undefined });
      return;
    }
    if (!headGiven && transducer !== undefined) {
      headGiven = true;
      const { systemFingerprint, serviceTier } = transducer.summary();
      sinks.onHead(systemFingerprint, serviceTier);
    }
    contentGiven ||= event.content;
    if (!sinks.onChunk(event) && pausedAt === undefined && !isOver) {
      pausedAt = clock.monotonicMs();
      call.pause();
      timer?.cancel();
      watch(STALLED_CLIENT_MS);
    }
  };

  const onStreamData = (bytes: Buffer, source: NonNullable<typeof transducer>): void => {
    for (const event of source.push(bytes)) give(event);
    if (isOver) return;
    const summary = source.summary();
    if (summary.outputBytes > outputBytesMax) {
      const closing = source.finishOpen('length');
      if (closing !== undefined) give(closing);
      end({ kind: 'stream', cut: undefined });
    } else if (summary.isFinished && finishedAt === undefined) {
      finishedAt = clock.monotonicMs();
      timer?.cancel();
      watch(AFTER_FINISH_MS);
    }
  };

  const isSuccess = (): boolean => status >= 200 && status < 300;
  const refuse = (): void => {
    fail(adapter.classifyRefusal({ status, headers, body: Buffer.concat(body), nowMs: clock.nowMs() }));
  };

  call = upstream.post(upstreamRequest, `${request.requestId}/${String(request.attempt)}`, {
    onHead: (told, toldHeaders) => {
      status = told;
      headers = toldHeaders;
    },
    onData: (bytes) => {
      lastDataAt = clock.monotonicMs();
      if (ttftMs === 0) ttftMs = Math.max(1, Math.round(lastDataAt - startedAt));
      received += bytes.length;
      if (received > BODY_BYTES_MAX) {
        fail(failure('GARBAGE', true, status));
        return;
      }
      if (isSuccess() && transducer !== undefined) onStreamData(bytes, transducer);
      else {
        body.push(bytes);
        if (!isSuccess() && received > REFUSAL_BYTES_MAX) refuse();
      }
    },
    onEnd: () => {
      if (isOver) return;
      if (!isSuccess()) {
        refuse();
        return;
      }
      if (transducer !== undefined) {
        for (const event of transducer.close()) give(event);
        return;
      }
      const result = adapter.readAnswer(Buffer.concat(body), request);
      if (result.ok) end({ kind: 'answer', answer: result.answer });
      else end({ kind: 'failed', failure: result.failure, usage: result.usage });
    },
    onError: (kind) => {
      if (kind === 'connect') fail(failure('CONNECT'));
      else if (finishedAt !== undefined) end({ kind: 'stream', cut: undefined });
      else if (status !== 0 && !isSuccess()) refuse();
      else fail(failure('DISCONNECTED', true, status));
    },
  });
  if (!isOver) watch(firstByteMs);

  const resume = (): void => {
    if (isOver || pausedAt === undefined) return;
    pausedAt = undefined;
    lastDataAt = clock.monotonicMs();
    timer?.cancel();
    watch(finishedAt === undefined ? idleMs : AFTER_FINISH_MS);
    call.resume();
  };
  return {
    ended,
    status: () => status,
    ttftMs: () => ttftMs,
    summary: () => transducer?.summary(),
    resume,
    abandon: () => end({ kind: 'abandoned' }),
    drain: () => {
      if (isOver) return;
      resume();
      drainTimer = clock.setTimer(DRAIN_MS, () => end({ kind: 'abandoned' }), { unref: true });
    },
  };
}
