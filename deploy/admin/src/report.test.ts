import { expect, test } from '@jest/globals';
import { UsageError } from './commands.js';
import { parseReport } from './report.js';

const day = { day: '2026-11-01', cost_usd: '12.345678901', tokens: 7 };

test.each([
  ['CSV', 'day,cost_usd,tokens\n2026-11-01,12.345678901,7\n'],
  ['CSV of another order, with quotes and a byte-order mark', '\uFEFFTokens,"Cost_USD",model,day\r\n7,"12.345678901","a, ""b""",2026-11-01T00:00:00Z\r\n\r\n'],
  ['CSV whose first column has no name and is empty', ',day,cost_usd,tokens\n,2026-11-01,12.345678901,7\n'],
  ['CSV with more digits than nano-dollars have', 'day,cost_usd,tokens\n2026-11-01,12.34567890149999,7'],
  ['CSV with an exponent', 'day,cost_usd,tokens\n2026-11-01,$1.2345678901e1,7'],
  ['JSON with more digits, as text', '[{"day":"2026-11-01","cost_usd":"12.3456789005","tokens":7}]'],
  ['JSON with more digits, as a number', '[{"day":"2026-11-01","cost_usd":12.3456789005,"tokens":7}]'],
  ['CSV with a line for each model', 'day,model,cost_usd,tokens\n2026-11-01,a,12.3,4\n2026-11-01,b,0.045678901,3\n'],
  ['JSON with parts of a day', '[{"day":"2026-11-01","cost_usd":"12","tokens":7},{"day":"2026-11-01T12:00:00Z","cost_usd":"0.345678901"}]'],
  ['JSON', '[{"day":"2026-11-01","cost_usd":"12.345678901","tokens":7}]'],
  ['JSON with a head', '{"days":[{"day":"2026-11-01","cost_usd":"12.345678901","tokens":7}]}'],
])('%s is read to the nano', (_kind, text) => {
  expect(parseReport(text)).toEqual([day]);
});

test('days stay apart, and in their order', () => {
  expect(parseReport('day,cost_usd\n2026-11-02,1\n2026-11-01,2\n2026-11-02,0.5').map(({ day: of, cost_usd: cost }) => [of, cost])).toEqual([['2026-11-02', '1.500000000'], ['2026-11-01', '2.000000000']]);
});

test.each(['', '[]', '{"days":[]}', 'day,cost_usd\n\n', 'day\n2026-11-01', 'day,cost_usd\n2026-11-01,-1', 'day,cost_usd\n2026-11-01,1.2.3', 'day,cost_usd\n2026-11-01,', 'day,cost_usd\nyesterday,1', '[{"day":"2026-11-01"}]', '{"days":1}', '[', 'day,cost_usd,tokens\n2026-11-01,1,x'])('%j is refused', (text) => {
  let problem: unknown;
  try {
    parseReport(text);
  } catch (error) {
    problem = error;
  }
  expect(problem).toBeInstanceOf(UsageError);
  expect(problem).toHaveProperty('hint', expect.stringMatching(/^A report is CSV with the columns day, /));
});
