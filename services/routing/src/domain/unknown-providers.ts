/** Names within a request that stand for no provider here: what they were to leave out or to prefer is not, and nobody else would say so. */
import type { DecideRequest__Output } from '@signalbox/contracts/routing';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';

/** Such as `provider.ignore.[0]`. `known`: ids of the catalog. */
export function unknownProviders(wishes: DecideRequest__Output['provider'], known: ReadonlySet<string>): string[] {
  if (wishes === null) return [];
  const among = (list: 'order' | 'only' | 'ignore', idsOf: typeof providersNamed): readonly string[] =>
    wishes[list].flatMap((name, index) => (idsOf([name]).some((id) => known.has(id)) ? [] : [`provider.${list}.[${String(index)}]`]));
  return [...among('order', providersNamed), ...among('only', providersNamed), ...among('ignore', providersForbidden)];
}
