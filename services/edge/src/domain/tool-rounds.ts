/** The model calls tools of ours: each round is one more dispatch of the request, with what the tools gave (contract, section 9). */
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { End__Output, Outcome } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { NO_TOKENS, totalTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { AttemptReport, PipelineStage, Settlement } from './answer.js';
import { RoundAnswer, withoutCalls, type RoundEnd, type Shown } from './round-answer.js';
import { continuedRequest } from './tool-request.js';
import type { ServerTools, ToolOutcome, Turn } from './turn.js';

/** Calls of one round that are run; the others are told that there were too many. */
const CALLS_MAX = 16;

/** What is behind a round when it is dispatched. */
export interface RoundStart {
  /** From 1. */
  readonly round: number;
  /** Attempts of the rounds before. */
  readonly before: readonly AttemptReport[];
  /** What they are charged. */
  readonly earlierNanoUsd: bigint;
  readonly earlierTokens: number;
  /** Bytes and messages that the prompt has grown by since admission. */
  readonly addedBytes: number;
  readonly addedMessages: number;
}

export interface Conducted {
  readonly attempts: readonly AttemptReport[];
  readonly result: 'answered' | 'cut' | 'gone' | 'refused';
}

export interface RoundsOptions {
  readonly turn: Turn;
  readonly tools: ServerTools;
  readonly plan: DecideResponse__Output;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  /**
   * Dispatches one round; its answer ends in `turn.answer`. `no-room`: the account's limits leave nothing for it. It
   * tells of its own attempts that failed, and of one whose client left, but not of the one that answered.
   */
  readonly dispatch: (turn: Turn, start: RoundStart, feeNanoUsd: bigint) => Promise<Conducted | 'no-room'>;
  readonly tell: (provider: string, attempt: number, outcome: Outcome, isFollowed: boolean) => void;
}

/** An attempt that answered a round. */
interface Answered {
  readonly provider: string;
  readonly attempt: number;
}

const added = (a: TokenCounts, b: TokenCounts): TokenCounts => ({
  inputUncached: a.inputUncached + b.inputUncached, cacheRead: a.cacheRead + b.cacheRead, cacheWrite: a.cacheWrite + b.cacheWrite, outputText: a.outputText + b.outputText,
  outputReasoning: a.outputReasoning + b.outputReasoning, audio: a.audio + b.audio, image: a.image + b.image,
});

/** Figures of all rounds together; the rest is the last one's. */
function summed(ends: readonly End__Output[], last: End__Output): End__Output {
  const all = [...ends, last];
  return {
    ...last,
    tokens: all.reduce((sum: TokenCounts, { tokens }) => added(sum, tokens ?? NO_TOKENS), NO_TOKENS),
    costNanoUsd: String(all.reduce((sum, { costNanoUsd }) => sum + BigInt(costNanoUsd), 0n)),
    savingsNanoUsd: String(all.reduce((sum, { savingsNanoUsd }) => sum + BigInt(savingsNanoUsd), 0n)),
    source: all.find(({ source }) => source !== 'PROVIDER')?.source ?? last.source,
    flags: [...new Set(all.flatMap(({ flags }) => flags))],
    cachedKnown: all.every(({ cachedKnown }) => cachedKnown),
    reasoningKnown: all.every(({ reasoningKnown }) => reasoningKnown),
  };
}

class Rounds {
  private readonly shown: Shown;
  /** Attempts that answered the rounds so far; nobody has been told of them. */
  private readonly answered: Answered[] = [];
  private readonly ends: End__Output[] = [];
  private readonly stages: PipelineStage[] = [];
  private before: readonly AttemptReport[] = [];
  private earlierNanoUsd = 0n;
  private earlierTokens = 0;
  private heartbeat: Timer | undefined;

  constructor(private readonly options: RoundsOptions) {
    const { clock, turn } = options;
    this.shown = { hasContent: false, hasRole: false, clientCalls: 0, route: undefined, lastSentMs: turn.silentSinceMs ?? clock.monotonicMs() };
  }

  async run(): Promise<Conducted> {
    if (this.options.turn.request.stream) this.beat();
    try {
      return await this.rounds();
    } finally {
      this.heartbeat?.cancel();
    }
  }

  private async rounds(): Promise<Conducted> {
    const { turn, tools, dispatch, clock } = this.options;
    const { answer } = turn;
    let { request } = turn;
    let feeNanoUsd = turn.feeNanoUsd ?? 0n;
    let latest: RoundAnswer | undefined;
    for (let round = 1; ; round += 1) {
      const gathering = new RoundAnswer(answer, tools.names, this.shown, () => clock.monotonicMs());
      const start: RoundStart = {
        round, before: this.before, earlierNanoUsd: this.earlierNanoUsd, earlierTokens: this.earlierTokens,
        addedBytes: request.promptBytes - turn.request.promptBytes, addedMessages: request.messageCount - turn.request.messageCount,
      };
      const conducted = await dispatch({ ...turn, request, answer: gathering }, start, feeNanoUsd);
      // Only rounds after the first ask for room.
      if (conducted === 'no-room') return this.stopForCap(latest);
      latest = gathering;
      this.before = conducted.attempts;
      const { end } = gathering;
      if (conducted.result === 'gone' || end === undefined) {
        // The attempt that was under way ends the hold; where none was, the last one that answered does.
        this.tellAll('DELIVERED', this.isUnderWay(conducted));
        return { attempts: this.before, result: 'gone' };
      }
      if (end.kind === 'refused' || end.kind === 'cut') return this.broken(end, conducted);
      this.note(end.settlement, conducted);
      const calls = gathering.ourCalls();
      const isCalling = calls.length > 0 && !gathering.hasClientCalls() && !this.isStopped(end);
      if (!isCalling || round > tools.roundsMax) return this.give(gathering, end, calls.length > 0);
      const left = new AbortController();
      answer.attend({ onSlow: () => undefined, onDrain: () => undefined, onGone: () => left.abort() });
      const outcomes = await Promise.all(calls.map((call, at) => (at < CALLS_MAX ? this.runTool(call, left.signal) : tooMany(call.name))));
      if (answer.isGone()) {
        this.tellAll('DELIVERED', false);
        return { attempts: this.before, result: 'gone' };
      }
      this.stages.push(...outcomes.map(({ stage }) => ({ ...stage, detail: { ...stage.detail, round } })));
      feeNanoUsd = outcomes.reduce((sum, { stage }) => sum + stage.feeNanoUsd, 0n);
      const results = outcomes.map(({ content }, at) => JSON.stringify({ role: 'tool', tool_call_id: calls[at]?.id ?? '', content }));
      request = continuedRequest(request, [gathering.message(), ...results], round === tools.roundsMax ? 'none' : 'auto');
    }
  }

  /** Never rejects: a service that is away is told to the model. */
  private async runTool(call: Parameters<ServerTools['run']>[0], signal: AbortSignal): Promise<ToolOutcome> {
    try {
      return await this.options.tools.run(call, signal);
    } catch {
      return { content: 'Error: the tool is not available at the moment.', stage: { stage: call.name, plugin: '', status: 'failed', durationMs: 0, feeNanoUsd: 0n, detail: { reason: 'unavailable' } } };
    }
  }

  private note({ end, provider }: Settlement, conducted: Conducted): void {
    this.answered.push({ provider, attempt: conducted.attempts.length });
    this.ends.push(end);
    if (conducted.attempts.at(-1)?.byok !== true) this.earlierNanoUsd += BigInt(end.costNanoUsd);
    this.earlierTokens += totalTokens(end.tokens ?? NO_TOKENS);
  }

  private isStopped(end: RoundEnd): boolean {
    return (end.kind === 'stream' || end.kind === 'body') && ['length', 'content_filter', 'error'].includes(end.settlement.end.finishReason);
  }

  private isUnderWay(conducted: Conducted): boolean {
    return conducted.attempts.length > (this.answered.at(-1)?.attempt ?? 0) && conducted.attempts.at(-1)?.failed === undefined;
  }

  /** `isFollowed`: a later attempt ends the hold, else the last of these does. */
  private tellAll(outcome: Outcome, isFollowed: boolean): void {
    for (const [at, { provider, attempt }] of this.answered.entries()) this.options.tell(provider, attempt, outcome, isFollowed || at < this.answered.length - 1);
  }

  /** The figures of all rounds. `ends` holds the last one's already. */
  private settled(settlement: Settlement): Settlement {
    return { ...settlement, end: summed(this.ends.slice(0, -1), settlement.end), attempts: this.before, ...(this.stages.length === 0 ? {} : { pipeline: this.stages }) };
  }

  /** The last round's answer, without calls that the client knows nothing of. */
  private give(gathering: RoundAnswer, end: RoundEnd & { readonly kind: 'stream' | 'body' }, hasOurCalls: boolean, finishReason?: string): Conducted {
    const { turn: { answer }, tools } = this.options;
    const reason = finishReason ?? (hasOurCalls && !gathering.hasClientCalls() && !this.isStopped(end) ? 'stop' : undefined);
    this.tellAll('DELIVERED', false);
    const settlement = this.settled(reason === undefined ? end.settlement : { ...end.settlement, end: { ...end.settlement.end, finishReason: reason } });
    if (end.kind === 'body') answer.body(hasOurCalls ? { ...end.body, choices: withoutCalls(end.body.choices, tools.names, reason) } : end.body, settlement);
    else answer.finish(end.route, Buffer.from(JSON.stringify([{ ...end.choice, delta: this.lastDelta(end.choice['delta']), finish_reason: reason ?? end.finishReason }])), settlement);
    return { attempts: this.before, result: 'answered' };
  }

  private lastDelta(delta: unknown): object {
    return this.shown.hasRole ? (delta as object) : { role: 'assistant', content: '', ...(delta as object) };
  }

  /** The limits leave no room for another round: what there is of the answer is all. */
  private stopForCap(latest: RoundAnswer | undefined): Conducted {
    const end = latest?.end;
    if (latest === undefined || end === undefined || (end.kind !== 'stream' && end.kind !== 'body')) throw new TypeError('Only an answered round is followed by another.');
    const stopped = { ...end, settlement: { ...end.settlement, end: { ...end.settlement.end, stoppedBy: 'cost_cap' } } };
    return this.give(latest, stopped, true, 'length');
  }

  /** A round failed or broke off. Where the client has seen nothing, it gets an error and pays nothing. */
  private broken(end: RoundEnd & { readonly kind: 'refused' | 'cut' }, conducted: Conducted): Conducted {
    const { turn: { answer }, tell } = this.options;
    const last = this.before.at(-1);
    if (end.kind === 'refused' && (!this.shown.hasContent || this.shown.route === undefined)) {
      this.tellAll('DISCARDED', false);
      answer.refuse(end.refusal.kind === 'attempts' ? { kind: 'attempts', attempts: this.before } : end.refusal);
      return { attempts: this.before, result: 'refused' };
    }
    if (end.kind === 'refused') {
      this.tellAll('DELIVERED', false);
      const settlement = this.lastSettlement();
      const failed = last?.failed;
      if (failed === undefined || this.shown.route === undefined) answer.refuse(end.refusal);
      else answer.cut(this.shown.route, failed, settlement);
      return { attempts: this.before, result: 'cut' };
    }
    const attempt = conducted.attempts.length;
    if (!this.shown.hasContent) {
      // It broke off within a call of our tools.
      if (last !== undefined) tell(last.provider, attempt, 'DISCARDED', this.answered.length > 0);
      this.tellAll('DISCARDED', false);
      this.before = this.before.map((report, at) => (at === attempt - 1 ? { ...report, failed: end.failed } : report));
      answer.refuse({ kind: 'attempts', attempts: this.before });
      return { attempts: this.before, result: 'refused' };
    }
    if (last !== undefined) tell(last.provider, attempt, 'DELIVERED', false);
    this.tellAll('DELIVERED', true);
    const { settlement } = end;
    answer.cut(end.route, end.failed, settlement === undefined ? this.lastSettlement() : { ...settlement, end: summed(this.ends, settlement.end), attempts: this.before, pipeline: this.stages });
    return { attempts: this.before, result: 'cut' };
  }

  /** What the rounds that answered come to; undefined when none did. */
  private lastSettlement(): Settlement | undefined {
    const last = this.ends.at(-1);
    const provider = this.answered.at(-1)?.provider;
    const model = this.shown.route?.model;
    if (last === undefined || provider === undefined || model === undefined) return undefined;
    return { provider, model, end: summed(this.ends.slice(0, -1), last), attempts: this.before, decisionId: this.options.plan.decisionId, pipeline: this.stages };
  }

  /** The client hears something while tools run and while their calls are written. */
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

function tooMany(name: string): ToolOutcome {
  return { content: `Error: not run, since there were more than ${CALLS_MAX} calls at once.`, stage: { stage: name, plugin: '', status: 'failed', durationMs: 0, feeNanoUsd: 0n, detail: { reason: 'too_many_calls' } } };
}

/** Asks the model in rounds until it answers. Never rejects but on a bug: whatever happens is told to `turn.answer`. */
export function conductRounds(options: RoundsOptions): Promise<Conducted> {
  return new Rounds(options).run();
}

