/** Reads a provider's usage report, JSON or CSV, for the admin API. Lines of the same UTC day, such as one for each model, are added up. */
import { asNanoUsd, formatUsd, roundedUsd, type NanoUsd } from '@signalbox/kernel/money';
import { UsageError } from './commands.js';

/** The correct form. */
const HINT = 'A report is CSV with the columns day, cost_usd and tokens (or not), or the same as JSON.';
const wrong = (message: string): UsageError => new UsageError(message, HINT);

export interface ReportDay {
  readonly day: string;
  readonly cost_usd: string;
  readonly tokens: number;
}

interface Line {
  readonly day: string;
  readonly costNanoUsd: NanoUsd;
  readonly tokens: number;
}

const DAY = /^\d{4}-\d{2}-\d{2}/;

/** The amount in whole nano-dollars, rounded half up; text is never converted through a float. */
function costOf(value: unknown, line: string): NanoUsd {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim().replace(/^\$/, '') : '';
  try {
    return roundedUsd(text);
  } catch {
    throw wrong(`${line}: cost_usd must be a decimal amount of US dollars, 0 or more.`);
  }
}

function lineOf(day: unknown, cost: unknown, tokens: unknown, line: string): Line {
  const text = typeof day === 'string' ? day.trim() : '';
  if (!DAY.test(text)) throw wrong(`${line}: day must be a date as 2026-11-21.`);
  const count = tokens === undefined || tokens === '' || tokens === null ? 0 : Number(tokens);
  if (!Number.isSafeInteger(count) || count < 0) throw wrong(`${line}: tokens must be a whole number.`);
  return { day: text.slice(0, 10), costNanoUsd: costOf(cost, line), tokens: count };
}

/** In the order of their first lines. */
function daysOf(lines: readonly Line[]): readonly ReportDay[] {
  const days = new Map<string, Line>();
  for (const { day, costNanoUsd, tokens } of lines) {
    const before = days.get(day);
    days.set(day, { day, costNanoUsd: asNanoUsd((before?.costNanoUsd ?? 0n) + costNanoUsd), tokens: (before?.tokens ?? 0) + tokens });
  }
  return [...days.values()].map(({ day, costNanoUsd, tokens }) => ({ day, cost_usd: formatUsd(costNanoUsd), tokens }));
}

/** Fields of one line of CSV, unquoted. */
function fieldsOf(line: string): string[] {
  const fields: string[] = [];
  for (const [, quoted, plain = '', end] of line.matchAll(/(?:"((?:[^"]|"")*)"|([^,]*))(,|$)/g)) {
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === '') break;
  }
  return fields;
}

/** JSON: an array of, or an object with `days` of, `{day, cost_usd, tokens?}`. CSV: a head line with those names. Throws UsageError. */
export function parseReport(text: string): readonly ReportDay[] {
  const trimmed = text.replace(/^\uFEFF/, '').trim();
  if (trimmed.startsWith('[') || trimmed.startsWith('{')) {
    let parsed: unknown;
    try {
      parsed = JSON.parse(trimmed);
    } catch {
      throw wrong('The report is not valid JSON.');
    }
    const days: unknown = Array.isArray(parsed) ? parsed : (parsed as { readonly days?: unknown }).days;
    if (!Array.isArray(days) || days.length === 0) throw wrong('The report has no days.');
    return daysOf(
      days.map((entry: unknown, index) => {
        const { day, cost_usd: cost, tokens } = (typeof entry === 'object' && entry !== null ? entry : {}) as Readonly<Record<string, unknown>>;
        return lineOf(day, cost, tokens, `days[${index}]`);
      }),
    );
  }
  const [head = '', ...lines] = trimmed.split(/\r?\n/);
  const names = fieldsOf(head).map((name) => name.trim().toLowerCase());
  const [dayAt, costAt, tokensAt] = [names.indexOf('day'), names.indexOf('cost_usd'), names.indexOf('tokens')];
  if (dayAt < 0 || costAt < 0) throw wrong('The first line of the report must name the columns day and cost_usd.');
  const days = lines
    .filter((line) => line.trim() !== '')
    .map((line, index) => {
      const fields = fieldsOf(line);
      return lineOf(fields[dayAt], fields[costAt], tokensAt < 0 ? undefined : fields[tokensAt], `line ${index + 2}`);
    });
  if (days.length === 0) throw wrong('The report has no days.');
  return daysOf(days);
}
