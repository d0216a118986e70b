/** Last days of endpoints. */
import type { EndpointRow, ModelRow, ProviderRow } from './schema.js';

/** ISO date from which an endpoint serves no more: the earlier of its own and the model's, which is its maker's, since others go on with weights that are open. Null = none is known. */
export function sunsetOf(model: ModelRow, row: EndpointRow, provider: ProviderRow | undefined): string | null {
  const dates = [row.deprecation_date, provider?.kind === 'first_party' || model.open_weights !== true ? model.deprecation_date : null];
  return dates.filter((date) => typeof date === 'string').sort()[0] ?? null;
}
