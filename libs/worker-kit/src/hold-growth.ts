/** The hold of an answer that grows while it is streamed (BILLING, section 4): when to ask for more, and where to stop. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { asPrice, reservationCost } from '@signalbox/kernel/money';
import { outputTokensMax } from './charge.js';

/** Output tokens that a hold grows by. */
const TRANCHE_TOKENS = 1_024;
/** More is asked for when so many are left: a quarter of a tranche. */
const ASK_LEFT_TOKENS = TRANCHE_TOKENS / 4;
/** A stream whose hold does not grow stops so many tokens before the hold's end: the provider goes on until it hears of it. */
export const STOP_LEFT_TOKENS = 64;
/** After a refusal more is asked for again once so many tokens have come: others may have ended meanwhile. */
const ASK_AGAIN_TOKENS = 64;
/** Bytes of text in a token where nothing better is known: few enough that ordinary text is not longer than it is counted. */
const BYTES_PER_TOKEN_MIN = 3;

/** No tokenizer averages more bytes a token over a long text. */
export const LONGEST_BYTES_PER_TOKEN = 16;
/** Short texts may: a run of blanks is one token. */
const LONG_TOKENS_BYTES = 2_048;

/** Makes a hold grow to these amounts. False = refused. */
export type ExtendHold = (accountId: string, requestId: string, toNanoUsd: bigint, toTokens: bigint) => Promise<boolean>;

/** `wait`: read nothing more until `onAnswer`. `stop`: the hold is used up. */
export type ReadVerdict = 'go' | 'wait' | 'stop';

export class HoldGrowth {
  /** Output tokens that the hold pays for. */
  private covered: number;
  private readonly whole: number;
  private isAsking = false;
  /** Output tokens when more was refused last. */
  private refusedAt = -Infinity;
  private onAnswer: () => void = () => undefined;

  private constructor(
    private readonly request: DispatchRequest__Output,
    private readonly extendHold: ExtendHold,
  ) {
    this.covered = request.heldOutputTokens;
    this.whole = outputTokensMax(request);
  }

  /** Undefined when the hold covers the whole answer, or nobody watches it. */
  static of(request: DispatchRequest__Output, extendHold: ExtendHold): HoldGrowth | undefined {
    return request.heldOutputTokens > 0 && request.maxTokens !== undefined ? new HoldGrowth(request, extendHold) : undefined;
  }

  /** `listener` is called each time an extension was answered. */
  attend(listener: () => void): void {
    this.onAnswer = listener;
  }

  /** What to do when `outputBytes` of text have come. */
  after(outputBytes: number): ReadVerdict {
    // The provider was told where to end. One that goes on regardless is stopped once its tokens cannot be so few.
    if (this.covered >= this.whole) return outputBytes > this.whole * LONGEST_BYTES_PER_TOKEN + LONG_TOKENS_BYTES ? 'stop' : 'go';
    const used = Math.ceil(outputBytes / BYTES_PER_TOKEN_MIN);
    const stopAt = this.covered - STOP_LEFT_TOKENS;
    const isAtStop = used >= stopAt;
    const isDue = used >= this.covered - ASK_LEFT_TOKENS && used >= this.refusedAt + (isAtStop ? 1 : ASK_AGAIN_TOKENS);
    if (isDue && !this.isAsking) void this.ask(used);
    if (!isAtStop) return 'go';
    return this.isAsking ? 'wait' : 'stop';
  }

  private async ask(used: number): Promise<void> {
    this.isAsking = true;
    const { accountId, requestId, heldNanoUsd, heldTokens, heldOutputTokens, outputPriceMax, wholeNanoUsd } = this.request;
    const tranches = Math.max(1, Math.ceil((used + ASK_LEFT_TOKENS - this.covered) / TRANCHE_TOKENS));
    const to = Math.min(this.covered + tranches * TRANCHE_TOKENS, this.whole);
    const more = BigInt(to - heldOutputTokens);
    const grown = BigInt(heldNanoUsd) + reservationCost(more * asPrice(outputPriceMax));
    // Rounding must not ask for more than the limits were found to leave.
    const amount = grown < BigInt(wholeNanoUsd) ? grown : BigInt(wholeNanoUsd);
    const isGranted = await this.extendHold(accountId, requestId, amount, BigInt(heldTokens) + more).catch(() => false);
    this.isAsking = false;
    if (isGranted) this.covered = to;
    else this.refusedAt = used;
    this.onAnswer();
  }
}
