/** Sums over the rounds of one request: tokens, cost, plugin stages, images, and money spent that nobody pays. */
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

/** Tokens and amounts summed over all rounds; everything else is that of the last one. */
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
 * The sums for one request, in nano-USD. The fee of a tool call is charged with the round after it, so until that round has
 * answered, nobody pays for the call. On the account's own credentials (`byok`) rounds cost it nothing here.
 */
export class RoundFigures {
  private readonly ends: End__Output[] = [];
  private readonly stages: PipelineStage[] = [];
  /** How many of the first stages are charged with a round that answered. */
  private paidStages = 0;
  /** Images whose fee is charged with a round that answered: the client gets them. */
  private readonly paidImages: ToolImage[] = [];
  /** Images of the calls before the present round, whose fee it carries. */
  private unpaidImages: readonly ToolImage[] = [];
  /** What calls spent, or may have spent, without a round that charges it yet. */
  private unpaidNanoUsd = 0n;
  /** What calls spent and a round charges. */
  private paidNanoUsd = 0n;
  private chargedNanoUsd = 0n;
  private usedTokens = 0;

  /** Charges of the rounds that answered. */
  get earlierNanoUsd(): bigint {
    return this.chargedNanoUsd;
  }

  /** Tokens of the rounds that answered. */
  get earlierTokens(): number {
    return this.usedTokens;
  }

  /** Images that the client gets. */
  get images(): readonly ToolImage[] {
    return this.paidImages;
  }

  /** True when money was spent that nobody pays. */
  get hasUnpaid(): boolean {
    return this.unpaidNanoUsd > 0n;
  }

  /** A round answered: it is charged, and with it the calls before it. */
  answered(end: End__Output, byok: boolean): void {
    this.ends.push(end);
    if (!byok) this.chargedNanoUsd += BigInt(end.costNanoUsd);
    this.usedTokens += totalTokens(end.tokens ?? NO_TOKENS);
    this.payCalls();
  }

  /** The round after the calls is charged, and with it their fees. */
  payCalls(): void {
    this.paidImages.push(...this.unpaidImages);
    this.unpaidImages = [];
    this.paidStages = this.stages.length;
    this.paidNanoUsd += this.unpaidNanoUsd;
    this.unpaidNanoUsd = 0n;
  }

  /** Sets what the calls of the present round spend outside: first the most that they may, then what they did. */
  spent(nanoUsd: bigint): void {
    this.unpaidNanoUsd = nanoUsd;
  }

  /** Notes the calls of a round (from 1). Returns the fees that the next round carries. */
  ran(outcomes: readonly ToolOutcome[], round: number): CardFees {
    this.stages.push(...outcomes.map(({ stage }) => ({ ...stage, detail: { ...stage.detail, round } })));
    this.unpaidImages = outcomes.flatMap(({ images }) => images);
    return { feeNanoUsd: feesOf(outcomes), bought: boughtOf(outcomes) };
  }

  /** Nothing of the request is charged: what its tools spent counts as unpaid. */
  discard(): void {
    this.unpaidNanoUsd += this.paidNanoUsd;
  }

  /** A round is not asked after its tools spent money: that is the operator's loss and does not count against the account. */
  forgiveUnpaid(): void {
    this.unpaidNanoUsd = 0n;
  }

  /** Sum of the rounds that answered; undefined if none did. */
  total(): End__Output | undefined {
    const last = this.ends.at(-1);
    return last === undefined ? undefined : this.totalEnding(last);
  }

  /** As `total`, with the last round replaced by `last`. */
  totalEnding(last: End__Output): End__Output {
    return summed(this.ends.slice(0, -1), last);
  }

  /** Sum of the rounds that answered and of one more, which broke off. */
  totalWith(broken: End__Output): End__Output {
    return summed(this.ends, broken);
  }

  /** The stages that ran, with the charged fees: 0 for calls after which no round answered. */
  pipeline(): readonly PipelineStage[] {
    return this.stages.map((stage, at) => {
      if (at < this.paidStages) return stage;
      const { bought: _bought, ...rest } = stage;
      return { ...rest, feeNanoUsd: 0n };
    });
  }
}
