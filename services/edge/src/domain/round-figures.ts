/** What the rounds of one request come to: their tokens and their cost, what their tools ran and gave, and what of it nobody pays. */
import type { End__Output } from '@signalbox/contracts/worker';
import type { CardFees } from '@signalbox/kernel/card-fees';
import { NO_TOKENS, totalTokens, type TokenCounts } from '@signalbox/kernel/tokens';
import type { PipelineStage } from './answer.js';
import { boughtOf, feesOf } from './tool-calls.js';
import type { ToolImage, ToolOutcome } from './turn.js';

const added = (a: TokenCounts, b: TokenCounts): TokenCounts => ({
  inputUncached: a.inputUncached + b.inputUncached, cacheRead: a.cacheRead + b.cacheRead, cacheWrite: a.cacheWrite + b.cacheWrite, outputText: a.outputText + b.outputText,
  outputReasoning: a.outputReasoning + b.outputReasoning, audio: a.audio + b.audio, image: a.image + b.image,
});

/** Tokens and amounts of all rounds together; everything else is the last one's. */
function summed(earlier: readonly End__Output[], last: End__Output): End__Output {
  const all = [...earlier, last];
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

/**
 * The running account of one request's rounds, in nano-USD. The fee of a tool call stands in the round that follows it, so
 * that until that round has answered nobody pays for the call. On the account's own credentials (`byok`) rounds cost it nothing here.
 */
export class RoundFigures {
  private readonly ends: End__Output[] = [];
  private readonly stages: PipelineStage[] = [];
  /** Of the stages, the first so many stand in a round that answered. */
  private paidStages = 0;
  /** Images whose fee stands in a round that answered: they are the client's. */
  private readonly paidImages: ToolImage[] = [];
  /** Those of the calls before the present round, which is to pay for them. */
  private unpaidImages: readonly ToolImage[] = [];
  /** What calls spent, or may have, that no round has paid for. */
  private unpaidNanoUsd = 0n;
  /** What they did spend, and a round has paid for. */
  private paidNanoUsd = 0n;
  private chargedNanoUsd = 0n;
  private usedTokens = 0;

  /** What the rounds that answered are charged. */
  get earlierNanoUsd(): bigint {
    return this.chargedNanoUsd;
  }

  /** Tokens of the rounds that answered. */
  get earlierTokens(): number {
    return this.usedTokens;
  }

  /** Images for the client. */
  get images(): readonly ToolImage[] {
    return this.paidImages;
  }

  /** Money was spent that nobody pays. */
  get hasUnpaid(): boolean {
    return this.unpaidNanoUsd > 0n;
  }

  /** A round answered: it is charged, and the calls before it with it. */
  answered(end: End__Output, byok: boolean): void {
    this.ends.push(end);
    if (!byok) this.chargedNanoUsd += BigInt(end.costNanoUsd);
    this.usedTokens += totalTokens(end.tokens ?? NO_TOKENS);
    this.payCalls();
  }

  /** The round that followed the calls is charged, and their fees with it. */
  payCalls(): void {
    this.paidImages.push(...this.unpaidImages);
    this.unpaidImages = [];
    this.paidStages = this.stages.length;
    this.paidNanoUsd += this.unpaidNanoUsd;
    this.unpaidNanoUsd = 0n;
  }

  /** What the calls of the present round spend outside: the most that they may, and what they did once that is known. */
  spent(nanoUsd: bigint): void {
    this.unpaidNanoUsd = nanoUsd;
  }

  /** Calls of a round (from 1) ran. Answers the fees that the next round is to pay for them. */
  ran(outcomes: readonly ToolOutcome[], round: number): CardFees {
    this.stages.push(...outcomes.map(({ stage }) => ({ ...stage, detail: { ...stage.detail, round } })));
    this.unpaidImages = outcomes.flatMap(({ images }) => images);
    return { feeNanoUsd: feesOf(outcomes), bought: boughtOf(outcomes) };
  }

  /** Nothing of the request is charged: what its tools spent is lost. */
  discard(): void {
    this.unpaidNanoUsd += this.paidNanoUsd;
  }

  /** What was bought for a round that is not asked any more is our loss, and not to be held against the account. */
  forgiveUnpaid(): void {
    this.unpaidNanoUsd = 0n;
  }

  /** Of the rounds that answered; undefined where none did. */
  total(): End__Output | undefined {
    const last = this.ends.at(-1);
    return last === undefined ? undefined : this.totalEnding(last);
  }

  /** As `total`, where the last of them is told as `last`. */
  totalEnding(last: End__Output): End__Output {
    return summed(this.ends.slice(0, -1), last);
  }

  /** Of the rounds that answered and of one more, which broke off. */
  totalWith(broken: End__Output): End__Output {
    return summed(this.ends, broken);
  }

  /** What ran, at what is charged for it: calls that no round followed are charged nothing. */
  pipeline(): readonly PipelineStage[] {
    return this.stages.map((stage, at) => {
      if (at < this.paidStages) return stage;
      const { bought: _bought, ...rest } = stage;
      return { ...rest, feeNanoUsd: 0n };
    });
  }
}
