/** The money terms of a dispatch request, read and checked before the provider is called. */
import type { PeriodSet__Output, PriceCard__Output } from '@signalbox/contracts/common';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { Fault } from '@signalbox/kernel/fault';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, type PriceStep } from '@signalbox/kernel/tokens';
import { outputTokensMax, type Cards } from './charge.js';

/** Price cards, with the messages they were read from. */
export interface SentCards extends Cards {
  readonly cardMessage: PriceCard__Output;
  readonly referenceMessage: PriceCard__Output | null;
}

/** What an attempt needs from its request, checked. */
export interface Terms {
  /** Ascending; the first starts at 0 tokens. */
  readonly steps: readonly PriceStep<SentCards>[];
  readonly periods: PeriodSet__Output;
}

/** The cards for a prompt of that many tokens. */
function readCards({ card, referenceCard, steps, referenceSteps }: DispatchRequest__Output, prompt: number): SentCards {
  const cardMessage = steps.length === 0 ? card : cardFor(steps, prompt);
  const reference = referenceSteps.length === 0 ? referenceCard : cardFor(referenceSteps, prompt);
  if (cardMessage === null || cardMessage === undefined) throw new RangeError('no price card for every length of prompt');
  const referenceMessage = reference === null || reference === undefined || reference.id === '' ? null : reference;
  return { card: priceCardOf(cardMessage), reference: referenceMessage === null ? undefined : priceCardOf(referenceMessage), cardMessage, referenceMessage };
}

/** Throws a Fault `bad_message`. */
export function readTerms(request: DispatchRequest__Output): Terms {
  const { card, periods, steps, referenceSteps } = request;
  if (card === null || periods === null || request.requestId === '' || request.attempt < 1) throw new Fault('bad_message', 'dispatch without id, attempt, card or periods');
  try {
    if (steps.length === 0 && referenceSteps.length === 0) return { steps: [{ fromPromptTokens: 0, card: readCards(request, 0) }], periods };
    const froms = new Set([0, ...steps.map(({ fromPromptTokens }) => fromPromptTokens), ...referenceSteps.map(({ fromPromptTokens }) => fromPromptTokens)]);
    return { steps: [...froms].sort((a, b) => a - b).map((from) => ({ fromPromptTokens: from, card: readCards(request, from) })), periods };
  } catch (cause) {
    throw new Fault('bad_message', 'price card', { cause });
  }
}

/** The hold as reported after quota's store was lost: for the whole answer, since the limits are lost and it cannot grow any more. A hold that no limit watched is reported too, since a limit may have been set by then. */
export function wholeHold(request: DispatchRequest__Output): { readonly amountNanoUsd: string; readonly tokens: string } {
  const { heldNanoUsd, heldTokens, heldOutputTokens, wholeNanoUsd, unwatchedTokens } = request;
  if (heldOutputTokens === 0) return { amountNanoUsd: heldNanoUsd, tokens: heldTokens === '0' ? unwatchedTokens : heldTokens };
  return { amountNanoUsd: BigInt(wholeNanoUsd) > BigInt(heldNanoUsd) ? wholeNanoUsd : heldNanoUsd, tokens: String(BigInt(heldTokens) + BigInt(Math.max(0, outputTokensMax(request) - heldOutputTokens))) };
}
