/** Extends the hold of an answer while it is streamed: when to ask for more, and where to stop (ADR 11). */
import type { Draw__Output } from '@signalbox/contracts/common';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { asPrice, reservationCost } from '@signalbox/kernel/money';
import { spreadMs } from '@signalbox/kernel/spread';
import { failure, type Failure } from '@signalbox/wires/canonical';
import { outputTokensMax } from './charge.js';

/** Output tokens by which a hold is extended. */
const TRANCHE_TOKENS = 1_024;
/** An extension is requested when this many tokens are left: a quarter of a tranche. */
const ASK_LEFT_TOKENS = TRANCHE_TOKENS / 4;
/** A stream whose hold cannot grow stops this many tokens before the end of the hold, but not before half of it: the provider goes on generating until the stop reaches it. */
const STOP_LEFT_TOKENS = 64;
/** After a refusal, half as much is requested once this many more tokens have arrived: there may be room for less, and other requests may have ended. */
const ASK_AGAIN_TOKENS = 64;
const STEP_TOKENS_MIN = 64;
/** While quota is away, an answer at the end of its hold asks again at this interval, for at most `AWAY_PATIENCE_MS`. */
const AWAY_AGAIN_MS = 250;
const AWAY_PATIENCE_MS = 5_000;
/** Retry-After in that case: 2 to 5 s, spread by request. */
const QUOTA_AWAY_MS = 2_000;
const QUOTA_AWAY_SPREAD_MS = 3_000;
/** Assumed bytes of text per token: so few that ordinary text has no more tokens than this gives. */
const BYTES_PER_TOKEN_MIN = 3;

/** No tokenizer averages more bytes per token over a long text. */
const LONGEST_BYTES_PER_TOKEN = 16;
const ENDLESS_BYTES_MARGIN = 65_536;
/** Allowance for short texts, which may have longer tokens: a run of blanks is one token. */
const LONG_TOKENS_BYTES = 2_048;

/** Bytes of text after which a stream is considered endless. */
export function answerBytesMax({ maxTokens, maxOutputTokens, fields }: Pick<DispatchRequest__Output, 'maxTokens' | 'maxOutputTokens' | 'fields'>): number {
  const eachMax = maxTokens ?? maxOutputTokens;
  return eachMax > 0 ? outputTokensMax({ maxTokens: eachMax, fields }) * LONGEST_BYTES_PER_TOKEN + ENDLESS_BYTES_MARGIN : Infinity;
}

/** The failure of an answer whose hold is used up while quota cannot be asked for more. */
export const quotaAway = (requestId: string, status: number): Failure => ({ ...failure('QUOTA_AWAY', false, status), retryAfterMs: spreadMs(requestId, QUOTA_AWAY_MS, QUOTA_AWAY_SPREAD_MS) });

/** Extends a hold to these amounts. False = the account's limits leave no room. Rejects if that is unknown, because quota is away or lost the hold. `epoch`: that of quota's store in which the hold exists. `draw`: the part of an advance that served the request. */
export type ExtendHold = (accountId: string, requestId: string, toNanoUsd: bigint, toTokens: bigint, epoch: string, draw?: Draw__Output | null) => Promise<boolean>;

/** `wait`: read nothing more until the listener of `attend` is called. `stop`: the hold is used up. `away`: it is used up, and quota cannot be asked for more. */
export type ReadVerdict = 'go' | 'wait' | 'stop' | 'away';

export class HoldGrowth {
  /** Output tokens that the hold pays for. */
  private covered: number;
  private readonly whole: number;
  /** Output tokens to request next. */
  private step = TRANCHE_TOKENS;
  private isAsking = false;
  /** Output tokens at the last request that was not granted. */
  private refusedAt = -Infinity;
  /** Quota did not answer the last request. */
  private isAway = false;
  /** Since when the answer has been waiting at the end of its hold for quota to come back; monotonic. */
  private waitingSinceMs: number | undefined;
  private again: Timer | undefined;
  private isOver = false;
  private onAnswer: () => void = () => undefined;

  private constructor(
    private readonly request: DispatchRequest__Output,
    private readonly extendHold: ExtendHold,
    private readonly clock: Clock,
  ) {
    this.covered = request.heldOutputTokens;
    this.whole = outputTokensMax(request);
  }

  /** Undefined when the hold covers the whole answer, or no limit watches it. */
  static of(request: DispatchRequest__Output, extendHold: ExtendHold, clock: Clock): HoldGrowth | undefined {
    return request.heldOutputTokens > 0 && request.maxTokens !== undefined ? new HoldGrowth(request, extendHold, clock) : undefined;
  }

  /** Output tokens that the hold pays for now. */
  get coveredTokens(): number {
    return Math.min(this.covered, this.whole);
  }

  /** Output tokens after which nothing more is read unless the hold grows. Above 0, so that a charged prompt has at least some answer. */
  private get stopAt(): number {
    return this.covered - Math.min(STOP_LEFT_TOKENS, Math.floor(this.covered / 2));
  }

  /** `listener` is called each time an extension was answered. */
  attend(listener: () => void): void {
    this.onAnswer = listener;
  }

  /** What to do when `outputBytes` of text have arrived. */
  after(outputBytes: number): ReadVerdict {
    // The provider was given a limit. If it goes on regardless, it is stopped once the text cannot be within that many tokens.
    if (this.covered >= this.whole) return outputBytes > this.whole * LONGEST_BYTES_PER_TOKEN + LONG_TOKENS_BYTES ? 'stop' : 'go';
    const used = Math.ceil(outputBytes / BYTES_PER_TOKEN_MIN);
    const isAtStop = used >= this.stopAt;
    const isDue = used >= this.covered - ASK_LEFT_TOKENS && used >= this.refusedAt + (isAtStop ? 1 : ASK_AGAIN_TOKENS);
    if (isDue && !this.isAsking && this.again === undefined) void this.ask(used);
    if (!isAtStop) return 'go';
    if (this.isAsking || this.again !== undefined) return 'wait';
    return this.isAway ? this.outwait(used) : 'stop';
  }

  /** The attempt is over: request nothing more. */
  close(): void {
    this.isOver = true;
    this.again?.cancel();
  }

  /** Quota is away, which is our fault and no refusal: wait a while, so that a short outage does not end the answer. */
  private outwait(used: number): ReadVerdict {
    this.waitingSinceMs ??= this.clock.monotonicMs();
    if (this.clock.monotonicMs() - this.waitingSinceMs >= AWAY_PATIENCE_MS) return 'away';
    this.again = this.clock.setTimer(AWAY_AGAIN_MS, () => {
      this.again = undefined;
      void this.ask(used);
    }, { unref: true });
    return 'wait';
  }

  private async ask(used: number): Promise<void> {
    this.isAsking = true;
    let isGranted = await this.askOnce(used);
    // At the end of the hold, even a small extension is better than stopping.
    while (!isGranted && !this.isAway && !this.isOver && used >= this.stopAt && this.step > STEP_TOKENS_MIN) {
      this.step /= 2;
      isGranted = await this.askOnce(used);
    }
    this.isAsking = false;
    if (this.isOver) return;
    if (!this.isAway) this.waitingSinceMs = undefined;
    if (isGranted) {
      this.step = Math.min(TRANCHE_TOKENS, this.step * 2);
      // If the grant is too small to go on, another request at this same position must be possible.
      this.refusedAt = Math.min(this.refusedAt, used - 1);
    } else {
      this.refusedAt = used;
      if (!this.isAway) this.step = Math.max(STEP_TOKENS_MIN, this.step / 2);
    }
    this.onAnswer();
  }

  private async askOnce(used: number): Promise<boolean> {
    const { accountId, requestId, heldNanoUsd, heldTokens, heldOutputTokens, outputPriceMax, wholeNanoUsd, holdEpoch, draw } = this.request;
    const steps = this.step < TRANCHE_TOKENS ? 1 : Math.max(1, Math.ceil((used + ASK_LEFT_TOKENS - this.covered) / TRANCHE_TOKENS));
    const to = Math.min(this.covered + steps * this.step, this.whole);
    const more = BigInt(to - heldOutputTokens);
    const grown = BigInt(heldNanoUsd) + reservationCost(more * asPrice(outputPriceMax));
    // Rounding up must not exceed the hold of the whole answer, which the limits were checked for.
    const amount = grown < BigInt(wholeNanoUsd) ? grown : BigInt(wholeNanoUsd);
    try {
      const isGranted = await this.extendHold(accountId, requestId, amount, BigInt(heldTokens) + more, holdEpoch, draw);
      this.isAway = false;
      if (isGranted) this.covered = to;
      return isGranted;
    } catch {
      this.isAway = true;
      return false;
    }
  }
}
