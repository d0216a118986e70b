/** Periods of limits and bills, in UTC. The period of a request is fixed when it is admitted and travels with it. */
import { assert } from '@signalbox/kernel/assert';

/** Ids of the periods an instant falls in; the same fields as the contract's PeriodSet. */
export interface Periods {
  /** `2026-11-21`. */
  readonly day: string;
  /** `2026-W47`: ISO week, Monday first. */
  readonly week: string;
  /** `2026-11`, or `p<index>` when months have a set length. */
  readonly month: string;
  /** The allotment's month, named after the calendar month it starts in; differs from `month` under an anchor day. */
  readonly plan: string;
  /** Milliseconds since the epoch. */
  readonly reservedAtMs: number;
}

/** What decides where a request counts. */
export type CountedPeriods = Omit<Periods, 'reservedAtMs'>;

export interface PeriodRules {
  /** Day of the month on which the allotment starts anew, 1–28; 0 or 1 = calendar month. */
  readonly anchorDay: number;
  /** Length of month and plan periods in seconds, for tests; absent = calendar. */
  readonly periodSeconds?: number | undefined;
}

export type PeriodKind = 'day' | 'week' | 'month' | 'plan' | 'total';

const DAY_MS = 86_400_000;

const two = (value: number): string => String(value).padStart(2, '0');
const monthId = (year: number, month: number): string => `${year}-${two(month + 1)}`;

function planStart(date: Date, anchorDay: number): Date {
  const anchor = Math.max(anchorDay, 1);
  const month = date.getUTCMonth() - (date.getUTCDate() < anchor ? 1 : 0);
  return new Date(Date.UTC(date.getUTCFullYear(), month, anchor));
}

function isoWeek(ms: number): string {
  const days = Math.floor(ms / DAY_MS);
  // The week belongs to the year of its Thursday; 1970-01-01 was one.
  const thursday = days - ((days + 3) % 7) + 3;
  const year = new Date(thursday * DAY_MS).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0, 1) / DAY_MS) / 7) + 1;
  return `${year}-W${two(week)}`;
}

/** Ids that all instants of one UTC day share under one anchor day. */
interface DayIds {
  readonly days: number;
  readonly day: string;
  readonly week: string;
  readonly month: string;
  readonly plan: string;
}

function readDay(days: number, anchorDay: number): DayIds {
  const date = new Date(days * DAY_MS);
  const month = monthId(date.getUTCFullYear(), date.getUTCMonth());
  const start = planStart(date, anchorDay);
  return { days, day: `${month}-${two(date.getUTCDate())}`, week: isoWeek(days * DAY_MS), month, plan: monthId(start.getUTCFullYear(), start.getUTCMonth()) };
}

/** By anchor day, what was worked out last: nearly all instants asked about are of today. */
const latestDays = new Map<number, DayIds>(); // kept: one a day on which months begin.

/** Periods at an instant (milliseconds since the epoch, ≥ 0). */
export function periodsAt(ms: number, { anchorDay, periodSeconds }: PeriodRules): Periods {
  const days = Math.floor(ms / DAY_MS);
  let ids = latestDays.get(anchorDay);
  if (ids?.days !== days) latestDays.set(anchorDay, (ids = readDay(days, anchorDay)));
  const { day, week, month, plan } = ids;
  if (periodSeconds === undefined) return { day, week, month, plan, reservedAtMs: ms };
  const numbered = `p${Math.floor(ms / (periodSeconds * 1_000))}`;
  return { day, week, month: numbered, plan: numbered, reservedAtMs: ms };
}

/** First instant after the period of that kind around `ms`; undefined for `total`, which has no end. */
export function periodEndMs(kind: PeriodKind, ms: number, { anchorDay, periodSeconds }: PeriodRules): number | undefined {
  if (kind === 'total') return undefined;
  const days = Math.floor(ms / DAY_MS);
  if (kind === 'day') return (days + 1) * DAY_MS;
  if (kind === 'week') return (days - ((days + 3) % 7) + 7) * DAY_MS;
  if (periodSeconds !== undefined) {
    const length = periodSeconds * 1_000;
    return (Math.floor(ms / length) + 1) * length;
  }
  const date = new Date(ms);
  if (kind === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  const start = planStart(date, anchorDay);
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, start.getUTCDate());
}

/** Id as totals name it: `day:2026-11-21`, `plan:2026-11`, `total`. */
export function qualifiedPeriodId(kind: PeriodKind, periods: CountedPeriods): string {
  return kind === 'total' ? 'total' : `${kind}:${periods[kind]}`;
}

/** A bill's period: half open, in milliseconds since the epoch. */
export interface PeriodSpan {
  readonly id: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** Where a month's id begins and ends: `2026-11`, or `p<index>` when months have a set length. Undefined when the id is of the other kind or none. */
export function periodSpan(id: string, periodSeconds?: number): PeriodSpan | undefined {
  if (periodSeconds !== undefined) {
    const index = /^p(\d{1,12})$/.exec(id)?.[1];
    const length = periodSeconds * 1_000;
    return index === undefined ? undefined : { id, startMs: Number(index) * length, endMs: (Number(index) + 1) * length };
  }
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(id) ?? [];
  return year === undefined || month === undefined ? undefined : { id, startMs: Date.UTC(Number(year), Number(month) - 1, 1), endMs: Date.UTC(Number(year), Number(month), 1) };
}

/** The bill's period around an instant. */
export function periodAt(ms: number, periodSeconds?: number): PeriodSpan {
  const id = periodsAt(ms, { anchorDay: 0, periodSeconds }).month;
  const span = periodSpan(id, periodSeconds);
  assert(span !== undefined, 'A period that was made can be read.');
  return span;
}
