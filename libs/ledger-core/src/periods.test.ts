import { describe, expect, test } from '@jest/globals';
import { periodEndMs, periodsAt } from './periods.js';

describe('periods', () => {
  test.each([
    ['2026-11-21T14:00:00Z', 0, '2026-11-21', '2026-W47', '2026-11', '2026-11'],
    ['2027-01-01T00:00:00Z', 15, '2027-01-01', '2026-W53', '2027-01', '2026-12'],
    ['2026-12-31T23:59:59.999Z', 28, '2026-12-31', '2026-W53', '2026-12', '2026-12'],
    ['2024-12-30T00:00:00Z', 1, '2024-12-30', '2025-W01', '2024-12', '2024-12'],
    ['2028-02-29T12:00:00Z', 10, '2028-02-29', '2028-W09', '2028-02', '2028-02'],
  ])('at %s with anchor day %s every id is the calendar’s', (text, anchorDay, day, week, month, plan) => {
    expect(periodsAt(Date.parse(text), { anchorDay })).toEqual({ day, week, month, plan, reservedAtMs: Date.parse(text) });
  });

  test('an instant lies before the end of its period and the end begins the next one', () => {
    for (let ms = Date.parse('2026-12-20T05:00:00Z'); ms < Date.parse('2028-03-05T00:00:00Z'); ms += 13 * 3_600_000) {
      for (const anchorDay of [0, 1, 15, 28]) {
        for (const kind of ['day', 'week', 'month', 'plan'] as const) {
          const end = periodEndMs(kind, ms, { anchorDay }) ?? 0;
          expect(end).toBeGreaterThan(ms);
          expect(periodsAt(end - 1, { anchorDay })[kind]).toBe(periodsAt(ms, { anchorDay })[kind]);
          expect(periodsAt(end, { anchorDay })[kind]).not.toBe(periodsAt(ms, { anchorDay })[kind]);
        }
      }
    }
  });

  test('months of a set length are numbered', () => {
    expect(periodsAt(125_000, { anchorDay: 0, periodSeconds: 60 })).toMatchObject({ month: 'p2', plan: 'p2', day: '1970-01-01' });
    expect(periodEndMs('plan', 125_000, { anchorDay: 0, periodSeconds: 60 })).toBe(180_000);
    expect(periodEndMs('total', 1, { anchorDay: 0 })).toBeUndefined();
  });
});
