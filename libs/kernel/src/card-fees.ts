/** Plugin fees, encoded in a price card's id: the part of `requestNanoUsd` that is not the provider's price. */

/** What a tool bought from another provider, such as images: part of the fee, and on that provider's bill. */
export interface Bought {
  /** Lower case letters, digits and hyphens. */
  readonly provider: string;
  /** 0 to 9e15. */
  readonly nanoUsd: bigint;
}

export interface CardFees {
  /** The whole fee, including what was bought. */
  readonly feeNanoUsd: bigint;
  readonly bought: readonly Bought[];
}

const NO_FEES: CardFees = { feeNanoUsd: 0n, bought: [] };
const MARK = '+plugins.';
const FEES = /\+plugins\.(\d{1,16})((?:\+bought\.[a-z\d-]{1,64}\.\d{1,16})*)$/;
const BOUGHT = /\+bought\.([a-z\d-]{1,64})\.(\d{1,16})/g;

/** The id of a card after these fees were added to its fee per request. */
export function cardIdWith(id: string, { feeNanoUsd, bought }: CardFees): string {
  return `${id}${MARK}${feeNanoUsd}${bought.map(({ provider, nanoUsd }) => `+bought.${provider}.${nanoUsd}`).join('')}`;
}

/** Reads the fees from a card's id; zero if it has none. */
export function feesIn(cardId: string): CardFees {
  if (!cardId.includes(MARK)) return NO_FEES;
  const [, fee, bought = ''] = FEES.exec(cardId) ?? [];
  if (fee === undefined) return NO_FEES;
  return { feeNanoUsd: BigInt(fee), bought: [...bought.matchAll(BOUGHT)].map(([, provider = '', nanoUsd = '0']) => ({ provider, nanoUsd: BigInt(nanoUsd) })) };
}

/** The part of an attempt's cost that is fees: all of the card's, unless the attempt cost nothing. */
export function feesOfAttempt(costNanoUsd: bigint, cardId: string): CardFees {
  if (costNanoUsd <= 0n) return NO_FEES;
  const fees = feesIn(cardId);
  return fees.feeNanoUsd <= costNanoUsd ? fees : { ...fees, feeNanoUsd: costNanoUsd };
}
