/** One exchange with the provider, from the first byte sent to its end. Knows nothing about money or the journal. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { Pieces } from '@signalbox/kernel/pieces';
import { together } from '@signalbox/runtime/turn';
import { failure, type AnswerResult, type Failure, type StreamEvent, type StreamSummary, type StreamTransducer } from '@signalbox/wires/canonical';
import { AnswerTally, ANSWER_BOUNDS, STRANGERS_ANSWER_BOUNDS } from '@signalbox/wires/json-bounds';
import type { AttemptOptions, Ending } from './attempt-terms.js';
import { answerBytesMax, quotaAway } from './hold-growth.js';
import { HEARING_TURNS, Patience, type Overdue } from './patience.js';
import type { ResponseHeaders } from './provider.js';
import { readInSteps } from './read-in-steps.js';
import { StreamShare } from './turn-shares.js';
import { STALE_MS, type Loss, type UpstreamCall, type UpstreamListener } from './upstream.js';

export type { AttemptOptions, AttemptSinks, ChunkEvent, Ending } from './attempt-terms.js';

const BODY_BYTES_MAX = 64 * 1_024 * 1_024;
/** Limit for a whole answer from an address that an account configured; such an answer is parsed in one go. */
const STRANGERS_BYTES_MAX = 24 * 1_024 * 1_024;
/** Whole answers of strangers are counted in steps of this size. */
const COUNTED_BYTES = 131_072;
const REFUSAL_BYTES_MAX = 65_536;
/** After the last event of a stream, the end of the body follows at once and the connection can be reused. If it has not come by then, the connection is closed. */
const AFTER_DONE_MS = 1_000;
const DRAIN_MS = 60_000;
/** At most this much of one stream is read in one turn of the event loop. Otherwise a burst of thousands of tiny events would hold up all other requests. */
const TURN_BYTES = 65_536;
/** After a silence this long within a stream, this process may have been suspended and the caller may have given up meanwhile. Links give up after five seconds at the earliest. */
const SILENCE_MS = 3_000;
/** With a growing hold, the stream is read in pieces of this size, a handful of chunks, and the hold is checked after each, however much arrives in one read. */
const HELD_READ_BYTES = 2_048;

const NO_CALL: UpstreamCall = { pause: () => undefined, resume: () => undefined, release: () => undefined, abort: () => undefined, isSent: () => false };
const NO_HEADERS: ResponseHeaders = {};

export class Attempt implements UpstreamListener {
  readonly ended: Promise<Ending>;
  private readonly clock: Clock;
  private readonly transducer: StreamTransducer | undefined;
  private readonly patience: Patience;
  private readonly outputBytesMax: number;
  private settle: (ending: Ending) => void = () => undefined;
  private call: UpstreamCall = NO_CALL;
  private isOver = false;
  private httpStatus = 0;
  private headers = NO_HEADERS;
  private firstDataMs = 0;
  private firstContentMs = 0;
  private received = 0;
  /** Bytes of `received` that have room. */
  private counted = 0;
  private readonly body = new Pieces();
  /** Checks the size and shape of a whole answer as it arrives. */
  private readonly tally: AnswerTally;
  private isHeadGiven = false;
  private isContentGiven = false;
  private outputBytes = 0;
  private drainTimer: Timer | undefined;
  /** Bytes that were read but not processed yet, because an extension of the hold is awaited or the caller may have left. */
  private backlog: Buffer[] = [];
  private isAwaiting = false;
  /** What has arrived waits for a later turn. */
  private isHeldBack = false;
  private readonly share = new StreamShare();
  private isResting = false;
  private isStopped = false;
  private wasSent = false;
  /** How the source ended, if it did while there was a backlog. */
  private sourceEnd: 'end' | Loss | undefined;

  /** Sends nothing; `start` does. */
  constructor(private readonly options: AttemptOptions) {
    const { adapter, clock, request } = options;
    this.clock = clock;
    this.patience = new Patience(clock, request, (what) => this.overdue(what));
    this.transducer = request.stream ? adapter.createTransducer(request) : undefined;
    this.tally = new AnswerTally(this.isStrangers ? STRANGERS_ANSWER_BOUNDS : ANSWER_BOUNDS);
    this.outputBytesMax = answerBytesMax(request);
    this.ended = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  start(): void {
    const { upstream, upstreamRequest, place, request, growth } = this.options;
    growth?.attend(() => this.readOn());
    this.call = upstream.post(upstreamRequest, `${request.requestId}/${String(request.attempt)}`, this, place);
    this.patience.start();
  }

  /** HTTP status; 0 until it has arrived. */
  get status(): number {
    return this.httpStatus;
  }

  /** True if the provider had been sent the whole request when the attempt was abandoned. */
  get isHandedOver(): boolean {
    return this.wasSent;
  }

  /** Milliseconds from start to the first byte of the body; 0 until then. */
  get firstByteMs(): number {
    return this.firstDataMs;
  }

  /** Milliseconds from start to the first content of a stream, which comments and empty chunks may precede. For whole answers, and streams without content, to the first byte. */
  get ttftMs(): number {
    return this.firstContentMs || this.firstDataMs;
  }

  /** True if the answer was stopped because its hold could not grow. */
  get isStoppedByHold(): boolean {
    return this.isStopped;
  }

  summary(): StreamSummary | undefined {
    return this.transducer?.summary();
  }

  /** As of an answer: the whole stream held nothing. */
  saidNothing(): boolean {
    return this.transducer?.saidNothing?.() === true;
  }

  resume(): void {
    if (this.isOver || !this.patience.isPaused) return;
    this.patience.resumed();
    if (!this.isAwaiting && !this.isHeldBack && !this.isResting) this.call.resume();
  }

  /** The caller left: stop the call to the provider now. */
  abandon(): void {
    this.end({ kind: 'abandoned' });
  }

  /** The caller left: go on without it for at most 60 s. */
  drain(): void {
    if (this.isOver) return;
    this.resume();
    this.drainTimer = this.clock.setTimer(DRAIN_MS, () => this.end({ kind: 'abandoned' }), { unref: true });
  }

  onSent(): void {
    this.patience.sent();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.patience.headCame();
    this.httpStatus = status;
    this.headers = headers;
    if (!this.isOver && !this.isSuccess()) this.patience.refused();
  }

  onData(bytes: Buffer): void {
    const before = this.patience.lastDataAt;
    this.patience.dataCame();
    if (this.firstDataMs === 0) this.firstDataMs = this.sinceStartMs(this.patience.lastDataAt);
    this.received += bytes.length;
    if (this.received > (this.transducer === undefined && this.isStrangers ? STRANGERS_BYTES_MAX : BODY_BYTES_MAX)) {
      this.fail(failure('GARBAGE', true, this.httpStatus));
      return;
    }
    if (this.isSuccess() && this.transducer !== undefined) {
      if (this.isContentGiven && this.patience.lastDataAt - before >= SILENCE_MS) this.hearCaller();
      if (!this.share.take(bytes.length) && !this.isHeldBack) {
        this.holdBack();
        this.share.wait(bytes.length, () => this.readOnAfterTurn());
      }
      if (this.options.growth === undefined && !this.isHeldBack) this.onStreamData(bytes, this.transducer);
      else {
        this.backlog.push(bytes);
        this.readBacklog(this.transducer);
      }
      if (this.share.turnBytes > TURN_BYTES) this.rest();
    } else {
      this.body.push(bytes);
      if (!this.isSuccess()) {
        if (this.received > REFUSAL_BYTES_MAX) this.refuse();
      } else if (!this.tally.push(bytes) || !this.hasRoom()) this.fail(failure('GARBAGE', true, this.httpStatus));
    }
  }

  onEnd(): void {
    if (this.isOver) return;
    if (this.backlog.length > 0) {
      this.sourceEnd = 'end';
      return;
    }
    if (!this.isSuccess()) {
      this.refuse();
      return;
    }
    if (this.transducer !== undefined) {
      for (const event of this.transducer.close()) this.give(event, this.transducer);
      return;
    }
    const { adapter, request } = this.options;
    const body = this.body.take();
    if (adapter.keepsLogprobs === true && this.tally.segments.length > 0) void this.readInSteps(body);
    else this.answered(adapter.readAnswer(body, request));
  }

  private async readInSteps(body: Buffer): Promise<void> {
    const { adapter, request } = this.options;
    const result = await readInSteps({ adapter, request, status: this.httpStatus, body, segments: this.tally.segments, isOver: () => this.isOver });
    if (result !== undefined) this.answered(result);
  }

  private answered(result: AnswerResult): void {
    if (result.ok) this.end({ kind: 'answer', answer: result.answer });
    else this.end({ kind: 'failed', failure: result.failure, usage: result.usage });
  }

  onError(kind: Loss): void {
    if (this.backlog.length > 0) {
      this.sourceEnd = kind;
      return;
    }
    if (kind === 'connect') this.fail(failure('CONNECT'));
    else if (kind === 'unable') this.end({ kind: 'failed', failure: failure('CONNECT'), usage: undefined, isOurs: true });
    else if (kind === 'stale' && this.clock.monotonicMs() - this.patience.startedAt <= STALE_MS) this.end({ kind: 'failed', failure: failure('DISCONNECTED'), usage: undefined, isStale: true });
    else if (this.patience.isFinished) this.finish('stop');
    else if (this.httpStatus !== 0 && !this.isSuccess()) this.refuse();
    else this.fail(failure('DISCONNECTED', true, this.httpStatus));
  }

  private holdBack(): void {
    this.isHeldBack = true;
    this.call.pause();
  }

  private readOnAfterTurn(): void {
    this.isHeldBack = false;
    if (!this.isOver && this.transducer !== undefined) this.goOn(this.transducer);
  }

  /** Pauses reading until the other requests have had their turn. */
  private rest(): void {
    if (this.isOver || this.isResting) return;
    this.isResting = true;
    this.call.pause();
    together(() => {
      this.isResting = false;
      this.share.turnBytes = 0;
      if (!this.isOver && !this.patience.isPaused && !this.isAwaiting && !this.isHeldBack) this.call.resume();
    });
  }

  /** Holds back what follows until the other sockets have been read. A caller that gave up meanwhile is noticed there; it is given no more and owes no more. */
  private hearCaller(): void {
    if (this.isHeldBack) return;
    this.holdBack();
    // A closed connection ends its calls only some turns later.
    const pass = (turns: number): void => {
      if (this.isOver || turns === 0) this.readOnAfterTurn();
      else together(() => pass(turns - 1));
    };
    pass(HEARING_TURNS);
  }

  private readBacklog(transducer: StreamTransducer): void {
    const { growth } = this.options;
    while (!this.isAwaiting && !this.isHeldBack && !this.isOver) {
      const [bytes] = this.backlog;
      if (bytes === undefined) break;
      if (growth === undefined) {
        this.backlog.shift();
        this.onStreamData(bytes, transducer);
        continue;
      }
      if (bytes.length > HELD_READ_BYTES) this.backlog[0] = bytes.subarray(HELD_READ_BYTES);
      else this.backlog.shift();
      this.onStreamData(bytes.subarray(0, HELD_READ_BYTES), transducer);
      if (this.isOver || this.patience.isFinished) continue;
      const verdict = growth.after(transducer.summary().outputBytes);
      if (verdict === 'wait') {
        this.isAwaiting = true;
        this.call.pause();
      } else if (verdict !== 'go') this.stop(verdict);
    }
  }

  /** The hold is used up. `stop`: the account's limits end the answer. `away`: quota cannot be asked about them, so the answer fails. */
  private stop(verdict: 'stop' | 'away'): void {
    if (verdict === 'away') {
      this.fail(quotaAway(this.options.request.requestId, this.httpStatus));
      return;
    }
    this.isStopped = true;
    this.finish('length');
  }

  /** Called when quota has answered an extension. */
  private readOn(): void {
    const { growth } = this.options;
    if (this.isOver || !this.isAwaiting || this.transducer === undefined || growth === undefined) return;
    this.isAwaiting = false;
    this.patience.excuse();
    const verdict = growth.after(this.transducer.summary().outputBytes);
    if (verdict === 'wait') {
      this.isAwaiting = true;
      return;
    }
    if (verdict !== 'go') {
      this.stop(verdict);
      return;
    }
    this.goOn(this.transducer);
  }

  private goOn(transducer: StreamTransducer): void {
    this.readBacklog(transducer);
    if (this.isOver || this.isAwaiting || this.isHeldBack) return;
    if (this.sourceEnd === 'end') this.onEnd();
    else if (this.sourceEnd !== undefined) this.onError(this.sourceEnd);
    else if (!this.patience.isPaused && !this.isResting) this.call.resume();
  }

  /** Ends the answer normally; choices without a finish reason of their own get this one. */
  private finish(reason: 'stop' | 'length'): void {
    const closing = this.transducer?.finishOpen(reason);
    if (closing !== undefined && this.transducer !== undefined) this.give(closing, this.transducer);
    this.end({ kind: 'stream', cut: undefined });
  }

  private onStreamData(bytes: Buffer, transducer: StreamTransducer): void {
    const events = transducer.push(bytes);
    for (const event of events) this.give(event, transducer);
    if (this.isOver) return;
    const summary = transducer.summary();
    if (events.length > 0 || summary.outputBytes !== this.outputBytes) this.patience.gotOn(summary.outputBytes > 0);
    this.outputBytes = summary.outputBytes;
    if (this.isContentGiven) this.options.sinks.onProgress(summary.outputBytes, this.patience.lastDataAt);
    if (summary.outputBytes > this.outputBytesMax) this.finish('length');
    else this.patience.follow(summary);
  }

  private give(event: StreamEvent, transducer: StreamTransducer): void {
    if (this.isOver) return;
    if (event.type === 'failed') {
      this.fail({ ...event.failure, status: event.failure.status || this.httpStatus });
      return;
    }
    if (event.type === 'done') {
      this.release();
      this.end({ kind: 'stream', cut: undefined });
      return;
    }
    const { sinks } = this.options;
    if (!this.isHeadGiven) {
      this.isHeadGiven = true;
      const { systemFingerprint, serviceTier } = transducer.summary();
      sinks.onHead(systemFingerprint, serviceTier);
    }
    if (event.content && !this.isContentGiven) {
      this.isContentGiven = true;
      this.firstContentMs = this.sinceStartMs(this.clock.monotonicMs());
    }
    if (!sinks.onChunk(event) && !this.patience.isPaused && !this.isOver) {
      this.patience.paused();
      this.call.pause();
    }
  }

  /** In whole milliseconds, at least 1, since 0 means never. */
  private sinceStartMs(at: number): number {
    return Math.max(1, Math.round(at - this.patience.startedAt));
  }

  /** The address was given by an account, so the server is not trusted. */
  private get isStrangers(): boolean {
    return this.options.upstreamRequest.isGuarded === true;
  }

  /** False when there is no memory for what has arrived of a stranger's whole answer: its server decides how large it is, and how long it is held. */
  private hasRoom(): boolean {
    const more = this.received - this.counted;
    if (!this.isStrangers || more < COUNTED_BYTES) return true;
    this.counted = this.received;
    try {
      this.options.grow?.(more);
      return true;
    } catch {
      return false;
    }
  }

  private isSuccess(): boolean {
    return this.httpStatus >= 200 && this.httpStatus < 300;
  }

  private refuse(): void {
    const { adapter, clock } = this.options;
    this.fail(adapter.classifyRefusal({ status: this.httpStatus, headers: this.headers, body: this.body.take(), nowMs: clock.nowMs() }));
  }

  private fail(reason: Failure): void {
    const ended = this.isContentGiven ? this.transducer?.finishEnded?.() : undefined;
    if (ended !== undefined && this.transducer !== undefined) this.give(ended, this.transducer);
    this.end(this.isContentGiven ? { kind: 'stream', cut: reason } : { kind: 'failed', failure: reason, usage: this.transducer?.summary().usage });
  }

  /** Keeps the connection for reuse: closing it would cost the next request a new connection, and with most providers a TLS handshake. */
  private release(): void {
    const { call } = this;
    call.release();
    this.clock.setTimer(AFTER_DONE_MS, () => call.abort(), { unref: true });
    this.call = NO_CALL;
  }

  private end(ending: Ending): void {
    if (this.isOver) return;
    this.isOver = true;
    this.patience.stop();
    this.drainTimer?.cancel();
    this.options.growth?.close();
    this.body.clear();
    this.backlog = [];
    if (ending.kind === 'abandoned') this.wasSent = this.call.isSent();
    this.call.abort();
    this.settle(ending);
  }

  private overdue(what: Overdue): void {
    if (what === 'client') this.end({ kind: 'abandoned' });
    else if (what === 'end') this.finish('stop');
    else if (what === 'refusal') this.refuse();
    else if (what === 'sent') this.fail(failure('CONNECT'));
    else this.fail(failure(what === 'first-byte' || (what === 'event' && !this.isHeadGiven) ? 'TIMEOUT_FIRST_BYTE' : 'TIMEOUT_IDLE', true, this.httpStatus));
  }
}
