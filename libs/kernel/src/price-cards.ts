/** Parses price cards of messages. */
import { asNanoUsd, asPrice } from './money.js';
import type { PriceCard } from './tokens.js';

/** Decimal strings of nano-USD, as in the contract's PriceCard. */
export type PriceCardText = { readonly [Field in keyof PriceCard]: string };

/** A few thousand cards are in use at once; beyond this the cache is cleared. */
const CARDS_MAX = 8_192;

interface Known {
  readonly text: PriceCardText;
  readonly card: PriceCard;
}

const cards = new Map<string, Known>(); // kept: by card; only cleared as a whole.

function isSame(a: PriceCardText, b: PriceCardText): boolean {
  return (
    a.inputUncached === b.inputUncached && a.cacheRead === b.cacheRead && a.cacheWrite === b.cacheWrite && a.outputText === b.outputText && a.outputReasoning === b.outputReasoning
    && a.audio === b.audio && a.image === b.image && a.requestNanoUsd === b.requestNanoUsd
  );
}

/**
 * The card of a message, parsed once per id and content: equal cards are the same object.
 * Throws RangeError for a negative price, SyntaxError for text that is not a number.
 */
export function priceCardOf(text: PriceCardText): PriceCard {
  const known = cards.get(text.id);
  if (known !== undefined && isSame(known.text, text)) return known.card;
  const card: PriceCard = {
    id: text.id,
    inputUncached: asPrice(text.inputUncached),
    cacheRead: asPrice(text.cacheRead),
    cacheWrite: asPrice(text.cacheWrite),
    outputText: asPrice(text.outputText),
    outputReasoning: asPrice(text.outputReasoning),
    audio: asPrice(text.audio),
    image: asPrice(text.image),
    requestNanoUsd: asNanoUsd(text.requestNanoUsd),
  };
  if (cards.size >= CARDS_MAX) cards.clear();
  cards.set(text.id, { text, card });
  return card;
}
