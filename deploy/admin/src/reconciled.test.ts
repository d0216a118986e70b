import { expect, test } from '@jest/globals';
import { readable } from './readable.js';
import { reconciled, type Reconciled } from './reconciled.js';

test('accounts that match are counted; whatever differs, and every day of a provider, is shown', () => {
  const matched = Array.from({ length: 10_000 }, (_, index) => ({ kind: 'account', subject: `acct_${index}`, difference_nano_usd: '0', status: 'matched' }));
  const differs = { kind: 'account', subject: 'acct_x', difference_nano_usd: '7', status: 'differs' };
  const days = ['matched', 'unreported'].map((status) => ({ kind: 'provider', subject: 'openai', status }));
  const writer = { kind: 'writer', subject: 'w', status: 'unbooked' };
  const answer: Reconciled & { readonly unreconciled_nano_usd: string } = { unreconciled_nano_usd: '7', rows: [...days, writer, ...matched, differs] };
  expect(reconciled(answer)).toEqual({ unreconciled_nano_usd: '7', accounts_matched: 10_000, rows: [...days, writer, differs] });
  expect(readable(reconciled(answer)).split('\n').length).toBeLessThan(30);
});
