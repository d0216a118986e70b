/** How a page learns that the ledger has a request that has just ended. */
import { ApiError, call, queryText } from './api.js';
import type { Page, RequestRow } from './types.js';

/** Clocks of the gateway's processes may differ by less. */
const SLACK_SECONDS = 60;
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** Ends in a ULID, whose first ten digits are milliseconds. */
const MADE_AT = /([0-9A-HJKMNP-TV-Z]{10})[0-9A-HJKMNP-TV-Z]{16}$/;

/** Unix seconds at which the gateway made this id; undefined of an id of another form. */
export function madeAtSeconds(id: string): number | undefined {
  const digits = MADE_AT.exec(id)?.[1];
  return digits === undefined ? undefined : Math.floor([...digits].reduce((ms, digit) => ms * DIGITS.length + DIGITS.indexOf(digit), 0) / 1_000);
}

/**
 * The row of a request that has ended, out of the list of the latest: asked for by its id it would be a 404 until it is
 * booked, which browsers report as a failure of the page. Rejects with such a 404, made here, while it is not there.
 */
export async function bookedRow(id: string, signal: AbortSignal): Promise<RequestRow> {
  const madeAt = madeAtSeconds(id);
  const page = await call<Page<RequestRow>>(`/api/requests${queryText({ from: madeAt === undefined ? undefined : madeAt - SLACK_SECONDS, limit: 100 })}`, { signal });
  const row = page.data.find((each) => each.id === id);
  if (row !== undefined) return row;
  // It may stand behind a hundred others of the same minute.
  if (page.has_more) return call<RequestRow>(`/api/requests/${encodeURIComponent(id)}`, { signal });
  throw new ApiError(404, 'request_not_found', 'The request is not booked yet.', null);
}
