/** Amounts as the interface tells them: JSON numbers with at most nine decimals, summed as whole nano-USD. */

const NANO = 1_000_000_000n;

/** Nano-USD of a number with at most nine decimals, exact below 2^23: its digits, since a product would be rounded once more. */
export function nanoOf(usd: number): bigint {
  return BigInt(usd.toFixed(9).replace('.', ''));
}

/** Nano-USD, not negative, as the decimal text of dollars with no zero too many: `2.5`. */
export function decimalOf(nano: bigint): string {
  const fraction = String(nano % NANO).padStart(9, '0').replace(/0+$/, '');
  return `${nano / NANO}${fraction === '' ? '' : `.${fraction}`}`;
}

export function sumUsd(amounts: readonly number[]): bigint {
  return amounts.reduce((sum, amount) => sum + nanoOf(amount), 0n);
}

/** What the account was charged, corrections included: less than the cost where requests ran on its own keys at providers. 0 for a day without any. */
export function spentUsd(row: { readonly charge_usd: number } | undefined): number {
  return row?.charge_usd ?? 0;
}

const grouped = (whole: string): string => whole.replace(/\B(?=(\d{3})+$)/g, ',');

/** Nano-USD of a request's first ledger line: what is told as charged has the corrections in it. */
export function bookedFirst({ amount_usd: charged, adjustments }: { readonly amount_usd: number; readonly adjustments: readonly { readonly amount_usd: number }[] }): bigint {
  return nanoOf(charged) - sumUsd(adjustments.map(({ amount_usd: amount }) => amount));
}

/** `$1,234.50`; small amounts keep what tells them apart: `$0.0000146`. */
export function formatUsd(amount: number | bigint | null | undefined): string {
  if (amount === null || amount === undefined) return '–';
  const nano = typeof amount === 'bigint' ? amount : nanoOf(amount);
  const sign = nano < 0n ? '−' : '';
  const positive = nano < 0n ? -nano : nano;
  const whole = positive / NANO;
  const fraction = String(positive % NANO).padStart(9, '0');
  if (positive === 0n) return '$0.00';
  // Three figures that mean something, at least cents.
  const firstFigure = fraction.search(/[1-9]/);
  const digits = whole > 0n ? 2 : Math.min(9, Math.max(2, firstFigure + 3));
  const scale = 10n ** BigInt(9 - digits);
  const rounded = (positive + scale / 2n) / scale;
  const text = String(rounded).padStart(digits + 1, '0');
  const head = grouped(text.slice(0, -digits));
  const tail = text.slice(-digits).replace(/0+$/, '').padEnd(2, '0');
  return `${sign}$${head}.${tail}`;
}

/** Every decimal: for statements and ledgers. */
export function exactUsd(amount: number | bigint): string {
  const nano = typeof amount === 'bigint' ? amount : nanoOf(amount);
  const positive = nano < 0n ? -nano : nano;
  return `${nano < 0n ? '−' : ''}$${grouped(String(positive / NANO))}.${String(positive % NANO).padStart(9, '0').replace(/0{1,7}$/, '')}`;
}

/** Share in percent, 0 to 100, of a limit; 100 when the limit is 0. */
export function shareOf(part: number, limit: number): number {
  if (limit <= 0) return 100;
  return Math.min(100, Math.max(0, (part / limit) * 100));
}
