/** Notices about a valid catalog that an operator should look at: one line per kind. */
import type { CatalogRows, EndpointRow, ModelRow } from './schema.js';
import { sunsetOf } from './sunset.js';

const NAMES_MAX = 20;
/** Retirement of a model is announced this many days ahead. */
const SOON_DAYS = 30;
const DAY_MS = 86_400_000;

function line(names: readonly string[], what: string): string[] {
  if (names.length === 0) return [];
  const more = names.length > NAMES_MAX ? ` and ${String(names.length - NAMES_MAX)} more` : '';
  return [`${String(names.length)} ${what}: ${names.slice(0, NAMES_MAX).join(', ')}${more}.`];
}

const isUnset = (value: unknown): boolean => value === null || value === undefined;

/** `today` is an ISO date. */
export function noticesOf(rows: CatalogRows, today: string): string[] {
  const soon = new Date(Date.parse(today) + SOON_DAYS * DAY_MS).toISOString().slice(0, 10);
  const endpoints = rows.models.flatMap((model) => model.endpoints.map((endpoint) => ({ model, endpoint }))).filter(({ endpoint }) => endpoint.status === 'active');
  const endpointsWhere = (test: (endpoint: EndpointRow, model: ModelRow) => boolean): string[] => endpoints.filter(({ endpoint, model }) => test(endpoint, model)).map(({ endpoint }) => endpoint.id);
  const providers = new Map(rows.providers.map((provider) => [provider.id, provider]));
  const goes = (after: string, until: string): string[] =>
    endpointsWhere((endpoint, model) => {
      const date = sunsetOf(model, endpoint, providers.get(endpoint.provider));
      return date !== null && date > after && date <= until;
    });
  return [
    ...line(endpointsWhere((endpoint) => endpoint.pricing_disputed === true), 'endpoints have a price that sources dispute'),
    ...line(endpointsWhere((endpoint, model) => isUnset(endpoint.context_window) && isUnset(model.context_window)), 'endpoints have no context window, so no prompt is too long for them'),
    ...line(endpointsWhere((endpoint) => isUnset(endpoint.pricing.cached_input)), 'endpoints have no price of cached prompts and take the full one'),
    ...line(rows.providers.filter(({ data_policy: policy }) => isUnset(policy.trains_on_data)).map(({ id }) => id), 'providers do not say whether they train on data, which counts as yes'),
    ...line(rows.models.filter((model) => isUnset(model.simulated_ability) && isUnset(model.priors?.quality)).map(({ id }) => id), 'models have no public score'),
    ...line(goes('', today), 'endpoints are shut down by their date'),
    ...line(goes(today, soon), `endpoints shut down within ${String(SOON_DAYS)} days`),
  ];
}
