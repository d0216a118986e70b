/** Finds names of unknown providers in a request's preferences. They have no effect, and without this the client would not be told. */
import type { DecideRequest__Output } from '@signalbox/contracts/routing';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';

/** Such as `provider.ignore.[0]`. `known`: ids of the catalog's providers. */
export function unknownProviders(wishes: DecideRequest__Output['provider'], known: ReadonlySet<string>): string[] {
  if (wishes === null) return [];
  const among = (list: 'order' | 'only' | 'ignore', idsOf: typeof providersNamed): readonly string[] =>
    wishes[list].flatMap((name, index) => (idsOf([name]).some((id) => known.has(id)) ? [] : [`provider.${list}.[${String(index)}]`]));
  return [...among('order', providersNamed), ...among('only', providersNamed), ...among('ignore', providersForbidden)];
}
