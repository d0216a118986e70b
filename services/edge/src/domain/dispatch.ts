/** One attempt at one provider: passes its worker's events on to the client's answer until the attempt ends, fails or the client leaves. */
import type { Body__Output, Chunk__Output, DispatchEvent__Output, DispatchRequest, End__Output, Failed__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { toFault, type Fault } from '@signalbox/kernel/fault';
import type { Answer, AttemptReport, ClientListener, Route, Settlement } from './answer.js';
import { failureOf, failureOfFault, NOTHING_SAID, NOT_HEALED, REPLICAS_OWN, traceOf, traceOfFault, type AttemptTrace } from './attempt-failures.js';
import { finishChunk, indexesOf } from './finish-chunks.js';
import { healChoices, HEALING_FAILED, StreamHealing, type HealedAnswer, type HealedChunk, type HealedText, type HealingTerms, type SchemaCheck } from './healing.js';
import type { AttemptCall, AttemptListener, WorkersPort } from './ports.js';
import { READER_LOOK_MS, ReaderPace, type Unread } from './reader-pace.js';

/**
 * The usual time of a provider to begin is as long as a heartbeat, and is over a moment after it. A heartbeat waits so long
 * beyond that end: if the attempt fails, the client can still get a status of its own, or the name of the next provider.
 */
const END_FIRST_MS = 250;
/** What a waiting chunk takes beside its bytes, about. */
const CHUNK_BYTES = 256;

export type AttemptResult =
  | { readonly kind: 'complete' }
  /** Nothing of it reached the client, so another attempt may answer. `lostAt`: the worker replica, if the fault is its own and not the endpoint's: the link to it broke, or it refused for a reason of its own while other replicas are there. */
  | { readonly kind: 'failed'; readonly failed: Failed__Output; readonly trace: AttemptTrace; readonly reserve?: Reserve; readonly lostAt?: object | undefined }
  /** The stream broke after content, and the client has been told. */
  | { readonly kind: 'cut' }
  /** The client hung up, read nothing for too long, or was cut off. `isOwed`: the attempt is charged, since the client left by itself or had been given content. */
  | { readonly kind: 'gone'; readonly wasSent: boolean; readonly isOwed: boolean };

/** Gives the client an answer that failed healing, or held nothing, and was kept in case no other attempt does better. To be called at most once. */
export type Reserve = (attempts: readonly AttemptReport[]) => void;

/** How the answer's JSON is healed. */
export interface Healing {
  readonly terms: HealingTerms;
  readonly checkSchema: SchemaCheck;
  /** Another attempt may be asked for an answer that cannot be healed. */
  readonly mayFailOver: boolean;
}

/** Shared by the attempts of one request, also of all its rounds: the silence that the client sees, and the pace at which it reads, span them. */
export interface Activity {
  /** Monotonic milliseconds of the last byte sent, or of the request's start. */
  lastSentMs: number;
  /** Absent = the client has never fallen behind. */
  pace?: ReaderPace;
}

export interface AttemptOptions {
  readonly workers: WorkersPort;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly activity: Activity;
  readonly answer: Answer;
  readonly request: DispatchRequest;
  readonly isStream: boolean;
  /** How many choices were asked for (`n`). */
  readonly choices: number;
  readonly route: Route;
  /** The attempts before this one. */
  readonly earlier: readonly AttemptReport[];
  readonly decisionId: string;
  /** A replica of the worker to avoid: an attempt at the same endpoint was lost with it, or refused by it. */
  readonly besides?: object | undefined;
  /** What becomes of an answer of nothing whose model may say more when it is asked again: it is kept in reserve, or dropped, and another attempt is made. Undefined = it is the answer. */
  readonly ifNothingSaid?: (() => 'keep' | 'drop' | undefined) | undefined;
  /** Undefined when no JSON was asked for. */
  readonly healing?: Healing | undefined;
  /** Counts the bytes of a whole answer, and of a stream what is kept of it; false = there is no room for it, and no more is given. Absent = there is room. */
  readonly takeRoom?: ((bytes: number) => boolean) | undefined;
  /** Called once, when the attempt is known to be in its worker's journal: from now on the worker ends the request's hold. */
  readonly onJournaled: () => void;
  /** Called once, when the first content goes to the client: from then on no other attempt may take its place. */
  readonly onCommitted?: (() => void) | undefined;
}

const COMPLETE: AttemptResult = { kind: 'complete' };

/** Choices that cannot be parsed here are passed on unchanged. */
function healBody({ choices }: Body__Output, terms: HealingTerms): HealedAnswer & { readonly choices: Buffer } {
  try {
    return healChoices(choices, terms);
  } catch {
    return { steps: [], isBroken: true, isWorthAnother: false, texts: [], choices };
  }
}

/** Never rejects. For `complete` and `cut` the client's answer has been ended; telling the worker the outcome is left to the caller. */
export function runAttempt(options: AttemptOptions): Promise<AttemptResult> {
  return new Promise((resolve) => new Attempt(options, resolve).start());
}

class Attempt implements AttemptListener, ClientListener {
  private call: AttemptCall | undefined;
  private body: Body__Output | undefined;
  /** Chunks before the first content wait here: until then another attempt may answer instead. */
  private early: HealedChunk[] = [];
  private earlyBytes = 0;
  private heldFinish: HealedChunk | undefined;
  /** If several choices were asked for, those whose finish chunk was sent. */
  private readonly finished = new Set<number>(); // kept: of one dispatch, and dropped with it.
  /** The finish chunk for choices that have ended while others go on; sent if the worker is lost. */
  private ended: Buffer | undefined;
  private readonly healer: StreamHealing | undefined;
  private isSilent: ((choices: Uint8Array) => boolean) | undefined;
  /** The most that was kept of a stream at a time, in bytes or characters, earlier rounds included: it has room until the request is over. */
  private counted: number;
  /** The worker has sent everything; the answer is being healed and checked here. */
  private isSettling = false;
  private isJournaled = false;
  private hasContent = false;
  private isOver = false;
  /** When the provider must have begun. */
  private readonly beginByMs: number;
  private heartbeat: Timer | undefined;
  private stalled: Timer | undefined;
  private taken: (() => number | undefined) | undefined;

  constructor(
    private readonly options: AttemptOptions,
    private readonly resolve: (result: AttemptResult) => void,
  ) {
    this.beginByMs = options.clock.monotonicMs() + (options.request.firstByteTimeoutMs ?? Infinity);
    this.counted = options.answer.heldChars?.() ?? 0;
    if (options.healing !== undefined && options.isStream) this.healer = new StreamHealing(options.healing.terms);
  }

  start(): void {
    const { answer, workers, route, request, isStream, besides } = this.options;
    answer.attend(this);
    if (this.isOver) return;
    if (isStream) this.isSilent = answer.silence?.(route);
    try {
      this.call = workers.dispatch(route.provider, request, this, besides);
    } catch (error) {
      // The request could not be written, for instance because it is larger than a message may be.
      this.onEnd(toFault(error));
      return;
    }
    if (this.call === undefined) this.over({ kind: 'failed', failed: failureOf('CONNECT', true), trace: 'none' });
    else if (isStream && !this.isOver) {
      // The client was slow before this attempt: it has not read the text of the round before.
      if (this.stalled !== undefined) this.call.pause();
      this.beat();
    }
  }

  onEvent(event: DispatchEvent__Output): void {
    if (this.isOver || this.isSettling) return;
    switch (event.event) {
      case 'chunk':
        this.journaled();
        if (event.chunk && this.options.isStream) this.onTold(event.chunk);
        break;
      case 'head':
        this.journaled();
        if (event.head) this.options.route.head = event.head;
        break;
      case 'body':
        this.journaled();
        if (event.body) this.body = event.body;
        break;
      case 'end':
        if (event.end) this.complete(event.end);
        break;
      case 'failed':
        if (event.failed) this.onFailed(event.failed, undefined, traceOf(event.failed));
        break;
      case 'started':
        this.journaled();
        break;
      case undefined:
        // An event of a newer version.
        break;
    }
  }

  onEnd(fault: Fault | undefined): void {
    if (this.isOver || this.isSettling) return;
    if (fault === undefined && this.stalled !== undefined) {
      // The worker ended the call because it could not send for too long: the client was not reading.
      this.giveUpReader('slow');
      return;
    }
    // The worker is lost, and can no longer end the choices that had finished.
    if (this.ended !== undefined && this.hasContent) this.onTold({ choices: this.ended, content: false, finish: true });
    this.onFailed(failureOfFault(fault), undefined, traceOfFault(fault), this.lostAt(fault));
  }

  private lostAt(fault: Fault | undefined): object | undefined {
    if (fault === undefined || this.call === undefined) return undefined;
    return fault.code === 'link_lost' || (REPLICAS_OWN.has(fault.code) && this.call.hasOthers?.() === true) ? this.call.peer?.() : undefined;
  }

  onGone(byItself: boolean): void {
    if (this.isOver) return;
    this.over({ kind: 'gone', wasSent: this.call !== undefined, isOwed: byItself || this.hasContent });
    this.call?.cancel(byItself ? 'client_left' : undefined);
  }

  onStop(): boolean {
    if (this.isOver || !this.hasContent) return false;
    const { workers, route, request: { requestId = '', attempt = 0 } } = this.options;
    // While it is being healed here, the worker has already ended it.
    if (!this.isSettling) workers.stop(route.provider, requestId, attempt);
    return true;
  }

  onSlow(taken: () => number | undefined): void {
    if (this.isOver || this.stalled !== undefined) return;
    this.call?.pause();
    this.taken = taken;
    const { activity, clock } = this.options;
    activity.pace ??= new ReaderPace();
    activity.pace.begin(taken(), clock.monotonicMs());
    this.watchReader();
  }

  private watchReader(): void {
    this.stalled = this.options.clock.setTimer(READER_LOOK_MS, () => {
      const unread = this.lookAtReader();
      if (unread === undefined) this.watchReader();
      else this.giveUpReader(unread);
    });
  }

  private lookAtReader(): Unread | undefined {
    const { activity, clock } = this.options;
    return activity.pace?.look(this.taken?.(), clock.monotonicMs());
  }

  private giveUpReader(unread: Unread): void {
    // `over` first: cancelling ends the call at once, which must not be handled as a failure.
    this.over({ kind: 'gone', wasSent: true, isOwed: true });
    this.call?.cancel();
    this.options.answer.abandon(unread);
  }

  onDrain(): void {
    if (this.isOver) return;
    const unread = this.stalled === undefined ? undefined : this.lookAtReader();
    this.stalled?.cancel();
    this.stalled = undefined;
    if (unread === undefined) this.call?.resume();
    else this.giveUpReader(unread);
  }

  private journaled(): void {
    if (this.isJournaled) return;
    this.isJournaled = true;
    this.options.onJournaled();
  }

  private onTold(chunk: Chunk__Output): void {
    this.ended = chunk.ended;
    if (this.healer === undefined) this.onChunk(chunk);
    else for (const healed of this.healer.push(chunk.choices)) this.onChunk(healed);
    if (this.options.takeRoom !== undefined) this.countHeld(this.options.takeRoom);
  }

  /** Text for a schema's check, for citations or for the next round, and calls of our tools, are kept until the end, and what is no content until some comes. */
  private countHeld(takeRoom: (bytes: number) => boolean): void {
    const held = this.earlyBytes + (this.healer?.heldChars ?? 0) + (this.options.answer.heldChars?.() ?? 0);
    const more = held - this.counted;
    if (more <= 0) return;
    this.counted = held;
    if (takeRoom(more)) return;
    // `over` first, as when a reader is given up.
    this.onFailed(failureOf('GARBAGE', true), undefined, 'journaled');
    this.call?.cancel();
  }

  private onChunk(chunk: HealedChunk): void {
    if (this.heldFinish !== undefined) {
      if (this.hasContent) this.send(this.heldFinish);
      else this.keepEarly(this.heldFinish);
      this.heldFinish = undefined;
    }
    if (!this.hasContent) {
      if (!this.commits(chunk)) {
        if (chunk.finish) this.heldFinish = chunk;
        else this.keepEarly(chunk);
        return;
      }
      this.hasContent = true;
      this.options.onCommitted?.();
      this.sendEarly();
    }
    if (chunk.finish) this.heldFinish = chunk;
    else this.send(chunk);
  }

  /** Whether sending this chunk rules out another attempt. A finish without content does not: it may be that of an answer of nothing. An answer that is healed may turn out broken at its end, so only text that is certain does; chunks hidden from the client never do. */
  private commits(chunk: HealedChunk): boolean {
    if (this.isSilent?.(chunk.choices) === true) return false;
    return chunk.content && chunk.isRest !== true;
  }

  private keepEarly(chunk: HealedChunk): void {
    this.early.push(chunk);
    this.earlyBytes += chunk.choices.length + CHUNK_BYTES;
  }

  private sendEarly(): void {
    for (const waiting of this.early) this.send(waiting);
    this.early = [];
    this.earlyBytes = 0;
  }

  private send(chunk: HealedChunk): void {
    const { activity, clock, answer, route } = this.options;
    activity.lastSentMs = clock.monotonicMs();
    if (chunk.finish && this.options.choices > 1) for (const index of indexesOf(chunk)) this.finished.add(index);
    answer.chunk(route, chunk.choices);
  }

  private onFailed(failed: Failed__Output, settlement: Settlement | undefined, trace: AttemptTrace, lostAt?: object): void {
    if (!this.hasContent) {
      this.over({ kind: 'failed', failed, trace, lostAt });
      return;
    }
    // What healing held back was generated and is charged, so the client gets it.
    if (this.healer !== undefined) for (const chunk of this.healer.end('error').chunks) this.send(chunk);
    const { answer, route, choices } = this.options;
    const held = this.heldFinish;
    // A choice that ended keeps its finish reason. If all have ended, the last finish chunk is withheld, since the usage that must follow it is missing.
    if (held !== undefined && choices > 1 && this.finished.size + indexesOf(held).length < choices) this.send(held);
    this.over({ kind: 'cut' });
    answer.cut(route, failed, settlement, this.attempts(), this.finished);
  }

  private complete(end: End__Output): void {
    const { isStream, healing, takeRoom, ifNothingSaid } = this.options;
    const settlement = this.settle(end);
    if (isStream && end.cut !== null && end.cut !== undefined) {
      this.onFailed(end.cut, settlement, 'journaled');
      return;
    }
    if (!isStream && this.body === undefined) {
      this.over({ kind: 'failed', failed: end.cut ?? failureOf('EMPTY', true), trace: 'journaled' });
      return;
    }
    if (this.body !== undefined && takeRoom?.(this.body.choices.length) === false) {
      this.over({ kind: 'failed', failed: failureOf('GARBAGE', true), trace: 'journaled' });
      return;
    }
    const fate = end.nothingSaid === true && !this.hasContent ? ifNothingSaid?.() : undefined;
    if (fate !== undefined) {
      this.over({ kind: 'failed', failed: NOTHING_SAID, trace: 'journaled', ...(fate === 'keep' ? { reserve: this.reserve(settlement, (told) => this.give(told, this.body)) } : {}) });
      return;
    }
    if (healing !== undefined) {
      this.isSettling = true;
      void this.heal(healing, settlement);
      return;
    }
    this.give(settlement, this.body);
    this.over(COMPLETE);
  }

  private give(settlement: Settlement, body: Body__Output | undefined): void {
    const { answer, route, isStream } = this.options;
    if (isStream) {
      this.sendEarly();
      answer.finish(route, this.heldFinish?.choices ?? finishChunk(settlement.end.finishReason), settlement);
    } else if (body !== undefined) answer.body(body, settlement);
  }

  private reserve(settlement: Settlement, give: (told: Settlement) => void): Reserve {
    return (attempts) => {
      this.options.route.attempts = attempts.length;
      give({ ...settlement, attempts });
    };
  }

  /** Heals the answer and checks it against its schema, then gives it. Never rejects: an answer that cannot be healed is given unchanged, or kept in reserve. */
  private async heal(healing: Healing, settlement: Settlement): Promise<void> {
    const { body } = this;
    const healedBody = body === undefined ? undefined : healBody(body, healing.terms);
    const healed = healedBody ?? this.healStream(settlement.end.finishReason);
    const misfits = healed.isBroken ? [] : await this.misfits(healing, healed);
    const isRight = !healed.isBroken && misfits.length === 0;
    const isWorthAnother = healed.isWorthAnother && misfits.every(({ isEnded }) => isEnded);
    if (this.isOver) return;
    const give = (told: Settlement): void => {
      const given = body === undefined || healedBody === undefined || !isRight ? body : { ...body, choices: healedBody.choices };
      this.give({ ...told, healed: isRight ? healed.steps : HEALING_FAILED }, given);
    };
    if (!isRight && isWorthAnother && healing.mayFailOver && !this.hasContent) {
      this.over({ kind: 'failed', failed: NOT_HEALED, trace: 'journaled', reserve: this.reserve(settlement, give) });
      return;
    }
    give(settlement);
    this.over(COMPLETE);
  }

  /** Ends the healing of a stream. The text held back is sent now if content was sent before, else with the rest. */
  private healStream(finishReason: string): HealedAnswer {
    const healed = this.healer?.end(finishReason) ?? { steps: [], isBroken: false, isWorthAnother: false, texts: [], chunks: [] };
    for (const chunk of healed.chunks) {
      if (this.hasContent) this.send(chunk);
      else this.keepEarly(chunk);
    }
    return healed;
  }

  /** The texts that violate their JSON schema. */
  private async misfits({ terms, checkSchema }: Healing, { texts }: HealedAnswer): Promise<readonly HealedText[]> {
    const { schema } = terms;
    if (schema === undefined) return [];
    const verdicts = await Promise.all(texts.map(({ text }) => checkSchema(this.options.request.accountId ?? '', schema, text)));
    return texts.filter((_text, index) => verdicts[index] === false);
  }

  private settle(end: End__Output): Settlement {
    const { route, decisionId } = this.options;
    const { provider, model, sunsetDate, dropParams } = route;
    return { provider, model, sunsetDate, dropParams, end, attempts: this.attempts(), decisionId };
  }

  /** The earlier attempts, and this one as the one that answered. */
  private attempts(): readonly AttemptReport[] {
    const { route: { provider, model }, request, earlier } = this.options;
    return [...earlier, { provider, model, failed: undefined, byok: request.byok ?? false }];
  }

  /** Heartbeat of the stream with a single timer: chunks only note their time, from which the next beat is counted. */
  private readonly beat = (): void => {
    const { clock, heartbeatMs, activity, answer, route } = this.options;
    const nowMs = clock.monotonicMs();
    if (nowMs - activity.lastSentMs >= heartbeatMs) {
      const leftMs = this.beginByMs + END_FIRST_MS - nowMs;
      if (!this.hasContent && leftMs > 0 && leftMs <= 2 * END_FIRST_MS) {
        this.heartbeat = clock.setTimer(leftMs, this.beat);
        return;
      }
      // A stalled client has unread bytes already.
      if (this.stalled === undefined) answer.keepAlive(route);
      activity.lastSentMs = nowMs;
    }
    this.heartbeat = clock.setTimer(Math.max(1, heartbeatMs - (nowMs - activity.lastSentMs)), this.beat);
  };

  private over(result: AttemptResult): void {
    if (this.isOver) return;
    this.isOver = true;
    this.heartbeat?.cancel();
    this.stalled?.cancel();
    this.resolve(result);
  }
}
