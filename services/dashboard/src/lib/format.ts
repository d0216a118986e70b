/** Words and figures of the pages. Times are Unix seconds, shown in the reader's own zone. */

export function formatCount(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US');
}

/** 950, 12.3K, 4.56M. */
export function formatShort(value: number): string {
  const steps: readonly (readonly [number, string])[] = [[1e9, 'B'], [1e6, 'M'], [1e3, 'K']];
  for (const [size, letter] of steps) if (value >= size) return `${(value / size).toFixed(value >= size * 100 ? 0 : value >= size * 10 ? 1 : 2)}${letter}`;
  return String(value);
}

/** `1 request`, `12.3K requests`. */
export function formatCounted(value: number, one: string): string {
  return `${formatShort(value)} ${one}${value === 1 ? '' : 's'}`;
}

export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const instant = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' });

export function formatTime(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? '–' : dateTime.format(new Date(seconds * 1_000));
}

/** To the second: of requests, of which there may be many in a minute. */
export function formatInstant(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? '–' : instant.format(new Date(seconds * 1_000));
}

export function formatDate(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? '–' : date.format(new Date(seconds * 1_000));
}

const utcDate = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });

/** The day in UTC: of periods, which begin and end there wherever the reader is. */
export function formatUtcDate(seconds: number): string {
  return utcDate.format(new Date(seconds * 1_000));
}

/** First instant of a day of the reader's own zone, `2026-11-21`, or of the one `daysLater`, in Unix seconds; '' for no day. */
export function startOfDay(day: string, daysLater = 0): number | '' {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return day === '' ? '' : Math.floor(new Date(year, month - 1, date + daysLater).getTime() / 1_000);
}

/** `2026-11-21`, in UTC, as sums of days are named. */
export function utcDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The days from `fromMs` to `toMs`, both included. */
export function utcDays(fromMs: number, toMs: number): readonly string[] {
  const days: string[] = [];
  for (let ms = Math.floor(fromMs / 86_400_000) * 86_400_000; ms <= toMs; ms += 86_400_000) days.push(utcDay(ms));
  return days;
}

/** Price of a million tokens. */
export function formatPrice(usd: number | null | undefined): string {
  return usd === null || usd === undefined ? '–' : `$${usd.toLocaleString('en-US', { maximumFractionDigits: 4, minimumFractionDigits: 2 })}`;
}
