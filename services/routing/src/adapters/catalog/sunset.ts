/** Shutdown dates of endpoints. */
import type { EndpointRow, ModelRow, ProviderRow } from './schema.js';

/** ISO date from which an endpoint no longer serves: the earlier of its own date and the model's. The model's date is the maker's; other hosts go on serving open weights. Null = none is known. */
export function sunsetOf(model: ModelRow, row: EndpointRow, provider: ProviderRow | undefined): string | null {
  const dates = [row.deprecation_date, provider?.kind === 'first_party' || model.open_weights !== true ? model.deprecation_date : null];
  return dates.filter((date) => typeof date === 'string').sort()[0] ?? null;
}
