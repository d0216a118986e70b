/** Price cards as numbers: parsed once each, since the same few cards come with every request. */
import type { PriceCard__Output } from '@signalbox/contracts/common';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import type { PriceCard } from '@signalbox/kernel/tokens';

/** More cards than any catalog prices at a time. */
const KEPT_MAX = 1_024;

/** Throws RangeError on a negative price, SyntaxError on text that is no integer. */
export function cardOf(card: PriceCard__Output): PriceCard {
  return {
    id: card.id,
    inputUncached: asPrice(card.inputUncached),
    cacheRead: asPrice(card.cacheRead),
    cacheWrite: asPrice(card.cacheWrite),
    outputText: asPrice(card.outputText),
    outputReasoning: asPrice(card.outputReasoning),
    audio: asPrice(card.audio),
    image: asPrice(card.image),
    requestNanoUsd: asNanoUsd(card.requestNanoUsd),
  };
}

function isSame(a: PriceCard__Output, b: PriceCard__Output): boolean {
  return (
    a.inputUncached === b.inputUncached &&
    a.cacheRead === b.cacheRead &&
    a.cacheWrite === b.cacheWrite &&
    a.outputText === b.outputText &&
    a.outputReasoning === b.outputReasoning &&
    a.audio === b.audio &&
    a.image === b.image &&
    a.requestNanoUsd === b.requestNanoUsd
  );
}

/** `cardOf` that remembers. A card is known by its id and by every price: an id that comes with another price is parsed anew. */
export function createCardReader(): (card: PriceCard__Output) => PriceCard {
  const known = new Map<string, { readonly message: PriceCard__Output; readonly card: PriceCard }>();
  return (message) => {
    const found = known.get(message.id);
    if (found !== undefined && isSame(found.message, message)) return found.card;
    const card = cardOf(message);
    if (known.size >= KEPT_MAX) known.clear();
    known.set(message.id, { message, card });
    return card;
  };
}
