/** Parses dates and times in ISO 8601. */

const ISO = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Milliseconds since the Unix epoch; NaN for text that is not an ISO 8601 date or time, or names a day that its month lacks. Without an offset it is UTC, whatever the local time zone. */
export function parseIsoTime(text: string): number {
  const [, day = '', time, offset] = ISO.exec(text) ?? [];
  const midnight = Date.parse(day);
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return NaN;
  return time === undefined ? midnight : Date.parse(offset === undefined ? `${text}Z` : text);
}
