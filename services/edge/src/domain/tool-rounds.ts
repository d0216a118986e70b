/** Requests whose model may call plugins' tools ("our tools"): each round dispatches the request once more, with the results of the calls before (ADR 20). */
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Failed__Output, Outcome } from '@signalbox/contracts/worker';
import type { CardFees } from '@signalbox/kernel/card-fees';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { toFault, type Fault } from '@signalbox/kernel/fault';
import type { AttemptReport, Route, Settlement } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { Activity } from './dispatch.js';
import { HEALING_FAILED, healingTermsOf } from './healing.js';
import { imagesChunk, RoundAnswer, withImages, withoutCalls, type RoundEnd, type Shown } from './round-answer.js';
import { RoundFigures } from './round-figures.js';
import { TEND_MS, written, writtenAsGiven } from './tellings.js';
import { ToolCalls } from './tool-calls.js';
import { continuedRequest } from './tool-request.js';
import type { ServerTools, Turn } from './turn.js';

/** Failures that the request itself causes once tool results have been added to the client's messages. */
const REQUEST_FAULTS: ReadonlySet<string> = new Set<Failed__Output['class']>(['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY']);

/** The state before a round is dispatched. */
export interface RoundStart {
  /** From 1. */
  readonly round: number;
  /** Attempts of the earlier rounds. */
  readonly before: readonly AttemptReport[];
  /** Charges of the earlier rounds. */
  readonly earlierNanoUsd: bigint;
  readonly earlierTokens: number;
  /** Bytes and messages added to the prompt since admission. */
  readonly addedBytes: number;
  readonly addedMessages: number;
  /** The same object for all rounds. */
  readonly activity: Activity;
}

export interface Conducted {
  readonly attempts: readonly AttemptReport[];
  readonly result: 'answered' | 'cut' | 'gone' | 'refused';
  /** For `gone`: edge itself cut the client off before it got anything of this attempt. */
  readonly isCutOff?: boolean;
  /** For `gone`, with an Idempotency-Key: it is certain that nothing is charged and that the client got nothing, so that the request may run again. */
  readonly isUncharged?: boolean;
}

export interface RoundsOptions {
  readonly turn: Turn;
  readonly tools: ServerTools;
  readonly plan: DecideResponse__Output;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  /**
   * Dispatches one round; its answer goes to `turn.answer`. `no-room`: the account's limits leave nothing for it. It tells
   * the workers the outcomes of failed attempts, and of one whose client left, but not of the one that answered, nor of
   * one whose client was cut off.
   */
  readonly dispatch: (turn: Turn, start: RoundStart, fees: CardFees) => Promise<Conducted | 'no-room'>;
  /** Tells a worker an outcome. Resolves with true when the worker has taken it; never rejects. */
  readonly tell: (provider: string, attempt: number, outcome: Outcome, isFollowed: boolean) => Promise<boolean>;
  /** Extends the request's hold to cover the next round. False = the account's limits leave no room for it. */
  readonly hold: (turn: Turn, start: RoundStart, feeNanoUsd: bigint) => Promise<boolean>;
  /** Called when the operator paid for something that no account is charged for: tool calls, or the rounds before one that failed because of the request itself. */
  readonly onWaste: () => void;
  /** Tells the worker of an attempt that answered a round that its outcome will follow. */
  readonly tend: (provider: string, attempt: number) => void;
}

/** An attempt that answered a round. */
interface Answered {
  readonly provider: string;
  readonly attempt: number;
  /** It only called our tools, and no text of it reached the client. If told nothing, its worker would conclude that it is not charged. */
  readonly isUnseen: boolean;
}

class Rounds {
  private readonly shown: Shown;
  private readonly activity: Activity;
  /** Attempts that answered the rounds so far; their workers have not been told yet. */
  private readonly answered: Answered[] = [];
  private readonly figures = new RoundFigures();
  private before: readonly AttemptReport[] = [];
  /** Rounds that answered are not charged, since the request itself made a later one fail. */
  private isWasted = false;
  private readonly isHealed: boolean;
  private readonly calls: ToolCalls;
  /** JSON was asked for, but the client has got text of an earlier round, so the whole text is not JSON. */
  private isJsonSpoiled = false;
  private heartbeat: Timer | undefined;
  private tending: Timer | undefined;

  constructor(private readonly options: RoundsOptions) {
    const { clock, turn } = options;
    this.isHealed = healingTermsOf(turn.request) !== undefined;
    this.calls = new ToolCalls(options.tools, (nanoUsd) => this.figures.spent(nanoUsd));
    const lastSentMs = turn.silentSinceMs ?? clock.monotonicMs();
    this.shown = { hasContent: false, hasRole: false, clientCalls: 0, route: undefined, isEnding: false, lastSentMs };
    this.activity = { lastSentMs };
  }

  async run(): Promise<Conducted> {
    if (this.options.turn.request.stream) this.beat();
    try {
      return await this.rounds();
    } catch (error) {
      // For example: quota is away between two rounds.
      return await this.failed(toFault(error));
    } finally {
      this.heartbeat?.cancel();
      if (this.figures.hasUnpaid || this.isWasted) this.options.onWaste();
      this.tending?.cancel();
    }
  }

  private async rounds(): Promise<Conducted> {
    const { turn, tools, dispatch, clock } = this.options;
    const { answer } = turn;
    let { request } = turn;
    let fees: CardFees = { feeNanoUsd: turn.feeNanoUsd ?? 0n, bought: [] };
    let latest: RoundAnswer | undefined;
    for (let round = 1; ; round += 1) {
      const gathering = new RoundAnswer(answer, tools.names, this.shown, () => clock.monotonicMs(), this.isHealed);
      const conducted = await dispatch({ ...turn, request, answer: gathering }, this.startOf(round, request), fees);
      // Only rounds after the first ask for room.
      if (conducted === 'no-room') return this.stopForCap(latest);
      latest = gathering;
      this.before = conducted.attempts;
      const { end } = gathering;
      if (conducted.result === 'gone' && this.shown.isEnding && !answer.isGone()) return this.stopped(conducted);
      if (conducted.result === 'gone' || end === undefined) return this.left(conducted.isCutOff === true, this.isUnderWay(conducted));
      if (end.kind === 'refused') return this.refused(end);
      if (end.kind === 'cut') return this.brokenOff(end, gathering);
      this.note(gathering, end.settlement, conducted);
      const calls = gathering.ourCalls();
      const isCalling = calls.length > 0 && !gathering.hasClientCalls() && !this.isStopped(end);
      if (!isCalling || round > tools.roundsMax) return this.give(gathering, end, calls.length > 0);
      if (this.shown.isEnding) return this.stopped();
      this.isJsonSpoiled ||= this.isHealed && gathering.hasShownWords;
      this.tend();
      const watch = this.watchClient();
      const choice = round === tools.roundsMax ? 'none' : 'auto';
      const previous = request;
      const nextOf = (contents: readonly string[]): ChatRequest =>
        continuedRequest(previous, [gathering.message(), ...contents.map((content, at) => JSON.stringify({ role: 'tool', tool_call_id: calls[at]?.id ?? '', content }))], choice);
      const outcomes = await this.calls.run(calls, conducted.attempts.at(-1)?.byok === true, watch.signal, (contents, spentMax) => {
        const next = nextOf(contents);
        return this.options.hold({ ...turn, request: next }, this.startOf(round + 1, next), spentMax);
      });
      if (answer.isGone()) return this.left(watch.isCutOff(), false);
      if (outcomes === 'no-room') return this.shown.isEnding ? this.stopped() : this.stopForCap(gathering);
      fees = this.figures.ran(outcomes, round);
      if (this.shown.isEnding) return this.stopped();
      request = nextOf(outcomes.map(({ content }) => content));
    }
  }

  /** While tools run: aborts `signal` once their results are no longer needed. */
  private watchClient(): { readonly signal: AbortSignal; readonly isCutOff: () => boolean } {
    const { shown, options: { turn: { answer } } } = this;
    const left = new AbortController();
    let isCutOff = false;
    const onGone = (byItself: boolean): void => {
      isCutOff = !byItself;
      left.abort();
    };
    const onStop = (): boolean => {
      if (!shown.hasContent) return false;
      shown.isEnding = true;
      left.abort();
      return true;
    };
    answer.attend({ onSlow: () => undefined, onDrain: () => undefined, onGone, onStop });
    return { signal: left.signal, isCutOff: () => isCutOff };
  }

  private startOf(round: number, request: ChatRequest): RoundStart {
    const { figures, options: { turn } } = this;
    return {
      round, before: this.before, earlierNanoUsd: figures.earlierNanoUsd, earlierTokens: figures.earlierTokens,
      addedBytes: request.promptBytes - turn.request.promptBytes, addedMessages: request.messageCount - turn.request.messageCount, activity: this.activity,
    };
  }

  private note(gathering: RoundAnswer, { end, provider }: Settlement, conducted: Conducted): void {
    const isUnseen = end.finishReason === 'tool_calls' && !gathering.hasShownWords && !gathering.hasClientCalls();
    this.answered.push({ provider, attempt: conducted.attempts.length, isUnseen });
    this.figures.answered(end, conducted.attempts.at(-1)?.byok === true);
  }

  /** Tells all workers that nothing of the request is charged. `told`: promises for a round that is not among `answered`. */
  private discard(told: readonly Promise<boolean>[] = []): Promise<boolean> {
    this.figures.discard();
    return written([...told, ...this.tellAll('DISCARDED', false)], this.options.clock);
  }

  /** Streams: sends the images, before the last chunk. */
  private showImages(route: Route): void {
    const { figures: { images }, options: { turn: { answer } } } = this;
    if (images.length === 0) return;
    answer.chunk(route, imagesChunk(images, this.shown.hasRole));
    this.shown.hasRole = true;
    this.shown.hasContent = true;
  }

  /** While tools and further rounds run: tells the workers of earlier rounds that edge is alive. */
  private readonly tend = (): void => {
    this.tending?.cancel();
    for (const { provider, attempt } of this.answered) this.options.tend(provider, attempt);
    this.tending = this.options.clock.setTimer(TEND_MS, this.tend);
  };

  /**
   * The client has left. The attempt that is under way ends the hold; if there is none, the last one that answered does.
   * Only its worker knows whether it had begun to answer, so that its fee is charged; what tools bought therefore counts as
   * waste. A client that edge cut off before it got anything pays nothing, and the waste does not count against its account.
   */
  private left(isCutOff: boolean, isUnderWay: boolean): Conducted {
    const last = this.before.at(-1);
    const isOwed = !isCutOff || this.shown.hasContent;
    const outcome = isOwed ? 'DELIVERED' : 'DISCARDED';
    if (isCutOff && isUnderWay && last !== undefined) void this.options.tell(last.provider, this.before.length, outcome, !isOwed && this.answered.length > 0);
    void this.tellAll(outcome, isOwed && isUnderWay);
    if (!isOwed) this.figures.forgiveUnpaid();
    return { attempts: this.before, result: 'gone' };
  }

  private isStopped(end: RoundEnd): boolean {
    return (end.kind === 'stream' || end.kind === 'body') && ['length', 'content_filter', 'error'].includes(end.settlement.end.finishReason);
  }

  private isUnderWay(conducted: Conducted): boolean {
    return conducted.attempts.length > (this.answered.at(-1)?.attempt ?? 0) && conducted.attempts.at(-1)?.failed === undefined;
  }

  /** Tells every worker that answered a round. `isFollowed`: a later attempt ends the hold; otherwise the last of these does. */
  private tellAll(outcome: Outcome, isFollowed: boolean): readonly Promise<boolean>[] {
    return this.answered.map(({ provider, attempt }, at) => this.options.tell(provider, attempt, outcome, isFollowed || at < this.answered.length - 1));
  }

  /**
   * Tells all workers that their rounds were delivered, and resolves once those that would conclude otherwise have written it
   * down. To be awaited before the client gets the end of its answer, since nobody else knows the outcome if this edge
   * crashes. `besides` tells of a round that is not among `answered`; it is awaited, too, unless `isAwaited` is false.
   */
  private deliver(isFollowed: boolean, besides?: () => readonly Promise<boolean>[], isAwaited = true): Promise<boolean> {
    const told = this.tellAll('DELIVERED', isFollowed);
    const toldBesides = besides?.() ?? [];
    return writtenAsGiven(this.options.turn.answer, [...(isAwaited ? toldBesides : []), ...told.filter((_, at) => this.answered[at]?.isUnseen === true)], this.options.clock);
  }

  /** The last round's settlement with the sums of all rounds. `figures` already counts that round. */
  private settled(settlement: Settlement): Settlement {
    const healed = this.isJsonSpoiled ? { healed: HEALING_FAILED } : {};
    const pipeline = this.figures.pipeline();
    return { ...settlement, end: this.figures.totalEnding(settlement.end), attempts: this.before, ...healed, ...(pipeline.length === 0 ? {} : { pipeline }) };
  }

  /** Gives the last round's answer, without the calls of our tools. */
  private async give(gathering: RoundAnswer, end: RoundEnd & { readonly kind: 'stream' | 'body' }, hasOurCalls: boolean, finishReason?: string): Promise<Conducted> {
    const { turn: { answer }, tools } = this.options;
    const reason = finishReason ?? (hasOurCalls && !gathering.hasClientCalls() && !this.isStopped(end) ? 'stop' : undefined);
    const kept = this.deliver(false);
    // A round with text is charged by its worker in any case, so the client need not wait.
    if (this.answered.at(-1)?.isUnseen === true) await kept;
    const settlement = this.settled(reason === undefined ? end.settlement : { ...end.settlement, end: { ...end.settlement.end, finishReason: reason } });
    if (end.kind === 'body') {
      const choices = hasOurCalls ? withoutCalls(end.body.choices, tools.names, reason) : end.body.choices;
      const { images } = this.figures;
      answer.body({ ...end.body, choices: images.length === 0 ? choices : withImages(choices, images) }, settlement);
      return { attempts: this.before, result: 'answered' };
    }
    this.showImages(end.route);
    answer.finish(end.route, Buffer.from(JSON.stringify([{ ...end.choice, delta: this.lastDelta(end.choice['delta']), finish_reason: reason ?? end.finishReason }])), settlement);
    return { attempts: this.before, result: 'answered' };
  }

  private lastDelta(delta: unknown): object {
    return this.shown.hasRole ? (delta as object) : { role: 'assistant', content: '', ...(delta as object) };
  }

  /** The limits leave no room for another round: the answer ends with what there is. */
  private stopForCap(latest: RoundAnswer | undefined): Promise<Conducted> {
    const end = latest?.end;
    if (latest === undefined || end === undefined || (end.kind !== 'stream' && end.kind !== 'body')) throw new TypeError('Only an answered round is followed by another.');
    const stopped = { ...end, settlement: { ...end.settlement, end: { ...end.settlement.end, stoppedBy: 'cost_cap' } } };
    return this.give(latest, stopped, true, 'length');
  }

  /** A fault of ours between rounds, which is never reported as a limit. If the client has seen nothing, it pays nothing. */
  private async failed(fault: Fault): Promise<Conducted> {
    const { turn: { answer } } = this.options;
    const { hasContent, route } = this.shown;
    if (!hasContent || route === undefined) {
      await this.discard();
      answer.refuse({ kind: 'fault', fault });
      return { attempts: this.before, result: 'refused' };
    }
    await this.deliver(false);
    this.showImages(route);
    answer.refuse({ kind: 'fault', fault }, this.lastSettlement());
    return { attempts: this.before, result: 'cut' };
  }

  /** The drain is over, and the client has text of the rounds so far, for which it pays. A round that is under way gave it none and is not charged. */
  private async stopped(conducted?: Conducted): Promise<Conducted> {
    const { turn: { answer }, tell } = this.options;
    const last = this.before.at(-1);
    const isUnderWay = conducted !== undefined && this.isUnderWay(conducted) && last !== undefined;
    this.figures.forgiveUnpaid();
    const discarded = isUnderWay ? [tell(last.provider, this.before.length, 'DISCARDED', true)] : [];
    await this.deliver(false, () => discarded);
    if (answer.isGone()) return { attempts: this.before, result: 'gone' };
    if (this.shown.route !== undefined) this.showImages(this.shown.route);
    answer.refuse({ kind: 'stopping', isCharged: true }, this.lastSettlement());
    return { attempts: this.before, result: 'cut' };
  }

  /** No attempt of a round answered. If the client has seen nothing, it gets an error and pays nothing. */
  private async refused({ refusal }: RoundEnd & { readonly kind: 'refused' }): Promise<Conducted> {
    const { turn: { answer } } = this.options;
    const { hasContent, route } = this.shown;
    const failed = this.before.at(-1)?.failed;
    if (!hasContent || route === undefined) {
      this.isWasted = this.figures.earlierNanoUsd > 0n && REQUEST_FAULTS.has(failed?.class ?? '');
      await this.discard();
      answer.refuse(refusal.kind === 'attempts' ? { ...refusal, attempts: this.before } : refusal);
      return { attempts: this.before, result: 'refused' };
    }
    await this.deliver(false);
    const settlement = this.lastSettlement();
    this.showImages(route);
    if (failed === undefined) answer.refuse(refusal, settlement);
    else answer.cut(route, failed, settlement, this.before);
    return { attempts: this.before, result: 'cut' };
  }

  /** A round broke off in the middle of its answer. If the client has seen nothing, it gets an error and pays nothing. */
  private async brokenOff(end: RoundEnd & { readonly kind: 'cut' }, gathering: RoundAnswer): Promise<Conducted> {
    const { turn: { answer }, tell } = this.options;
    const last = this.before.at(-1);
    const attempt = this.before.length;
    if (!this.shown.hasContent) {
      // It broke off within a call of our tools.
      await this.discard(last === undefined ? [] : [tell(last.provider, attempt, 'DISCARDED', this.answered.length > 0)]);
      this.before = this.before.map((report, at) => (at === attempt - 1 ? { ...report, failed: end.failed } : report));
      answer.refuse({ kind: 'attempts', attempts: this.before });
      return { attempts: this.before, result: 'refused' };
    }
    // Told after the earlier rounds, in one message with them.
    const told = (): readonly Promise<boolean>[] => (last === undefined ? [] : [tell(last.provider, attempt, 'DELIVERED', false)]);
    // If it broke off within calls of our tools, its worker would by itself conclude that it is not charged. (Not awaited for a lost worker, whose cost is not reported.)
    const isUnseen = end.settlement !== undefined && !gathering.hasShownWords && !gathering.hasClientCalls();
    await this.deliver(true, told, isUnseen);
    // What was delivered of it is charged, with the whole fee.
    this.figures.payCalls();
    this.showImages(end.route);
    // A lost worker does not report its cost: the sum of the earlier rounds would be less than the charge, so no figures are given.
    const settlement = end.settlement === undefined ? undefined : { ...end.settlement, end: this.figures.totalWith(end.settlement.end), attempts: this.before, pipeline: this.figures.pipeline() };
    answer.cut(end.route, end.failed, settlement, this.before);
    return { attempts: this.before, result: 'cut' };
  }

  /** The settlement of the rounds that answered; undefined if none did. */
  private lastSettlement(): Settlement | undefined {
    const end = this.figures.total();
    const provider = this.answered.at(-1)?.provider;
    const { model, sunsetDate, dropParams } = this.shown.route ?? {};
    if (end === undefined || provider === undefined || model === undefined) return undefined;
    return { provider, model, sunsetDate, dropParams, end, attempts: this.before, decisionId: this.options.plan.decisionId, pipeline: this.figures.pipeline() };
  }

  /** Heartbeat to the client while tools run and while the model writes their calls. */
  private readonly beat = (): void => {
    const { clock, heartbeatMs, turn: { answer } } = this.options;
    const { shown } = this;
    const nowMs = clock.monotonicMs();
    if (nowMs - shown.lastSentMs >= heartbeatMs && shown.route !== undefined) {
      if (!answer.isGone()) answer.keepAlive(shown.route);
      shown.lastSentMs = nowMs;
    }
    const silentMs = nowMs - shown.lastSentMs;
    this.heartbeat = clock.setTimer(silentMs >= heartbeatMs ? heartbeatMs / 10 : Math.max(1, heartbeatMs - silentMs), this.beat);
  };
}

/** Asks the model in rounds until it answers. Rejects only on a bug: every result goes to `turn.answer`. */
export function conductRounds(options: RoundsOptions): Promise<Conducted> {
  return new Rounds(options).run();
}
