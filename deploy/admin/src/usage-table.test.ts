import { expect, test } from '@jest/globals';
import { usageTable } from './usage-table.js';

const sums = { requests: 3, prompt_tokens: 1_200, completion_tokens: 80, cost_usd: 12.3456789, charge_usd: 0.0000004, savings_usd: -1 };
const row = { ...sums, latency_ms_p50: 812.4, latency_ms_p95: null };

test('a line for each group and one for their sum', () => {
  expect(usageTable({ rows: [{ model: 'm/long-name', ...row }, { model: 'm', ...row, requests: 12 }], total: { ...sums, requests: 15 }, has_more: false })).toBe(
    [
      'model        requests  prompt tokens  completion tokens      cost USD   charge USD   savings USD  ms p50  p95',
      'm/long-name         3           1200                 80  12.345678900  0.000000400  -1.000000000     812    -',
      'm                  12           1200                 80  12.345678900  0.000000400  -1.000000000     812    -',
      'sum                15           1200                 80  12.345678900  0.000000400  -1.000000000',
      '',
    ].join('\n'),
  );
});

test('accounts are told by id and name, which steer nothing; that there are more is said', () => {
  const text = usageTable({ rows: [{ account: 'acct_1', name: 'a\u001b[2J\nb', ...row }, { account: 'acct_2', name: null, ...row }], total: sums, has_more: true });
  expect(text.split('\n').map((line) => line.split('  ')[0])).toEqual(['account', 'acct_1 a\\u001b[2J\\u000ab', 'acct_2', 'sum of these', 'There are more: --limit N shows up to 1000.', '']);
});

test('nothing', () => {
  expect(usageTable({ rows: [], total: sums, has_more: false })).toBe('Nothing was used.\n');
});
