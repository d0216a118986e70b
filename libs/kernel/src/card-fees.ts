/** Fees of plugins in a price card's id: what of `requestNanoUsd` is no price of the provider's. */

/** What a tool had another provider do, images say: part of the fee, and of that provider's bill. */
export interface Bought {
  /** Lower case letters, digits and hyphens. */
  readonly provider: string;
  /** 0 to 9e15. */
  readonly nanoUsd: bigint;
}

export interface CardFees {
  /** All of it, what was bought included. */
  readonly feeNanoUsd: bigint;
  readonly bought: readonly Bought[];
}

const NO_FEES: CardFees = { feeNanoUsd: 0n, bought: [] };
const MARK = '+plugins.';
const FEES = /\+plugins\.(\d{1,16})((?:\+bought\.[a-z\d-]{1,64}\.\d{1,16})*)$/;
const BOUGHT = /\+bought\.([a-z\d-]{1,64})\.(\d{1,16})/g;

/** The id of a card to whose fee per request these were added. */
export function cardIdWith(id: string, { feeNanoUsd, bought }: CardFees): string {
  return `${id}${MARK}${feeNanoUsd}${bought.map(({ provider, nanoUsd }) => `+bought.${provider}.${nanoUsd}`).join('')}`;
}

/** The fees that a card's id tells of; none where it tells of none. */
export function feesIn(cardId: string): CardFees {
  if (!cardId.includes(MARK)) return NO_FEES;
  const [, fee, bought = ''] = FEES.exec(cardId) ?? [];
  if (fee === undefined) return NO_FEES;
  return { feeNanoUsd: BigInt(fee), bought: [...bought.matchAll(BOUGHT)].map(([, provider = '', nanoUsd = '0']) => ({ provider, nanoUsd: BigInt(nanoUsd) })) };
}

/** What of an attempt's cost are fees: all of the card's, unless it cost nothing. */
export function feesOfAttempt(costNanoUsd: bigint, cardId: string): CardFees {
  if (costNanoUsd <= 0n) return NO_FEES;
  const fees = feesIn(cardId);
  return fees.feeNanoUsd <= costNanoUsd ? fees : { ...fees, feeNanoUsd: costNanoUsd };
}
