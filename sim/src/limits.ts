/** Limits in an account's terms, for both meters. */
import type { Caller } from '@signalbox/edge/proof';

/** Nano-USD, or tokens of both kinds together. */
export const METERS = ['charge', 'tokens'] as const;
export type Meter = (typeof METERS)[number];

export const isOwn = ({ account }: Caller): boolean => account.providerKeys.length > 0;

/** An account's requests run either all on own credentials, or none. */
export function limitsOf(caller: Caller, meter: Meter): readonly bigint[] {
  const { account, key } = caller;
  const told = meter === 'charge' ? [...account.costCaps.map(({ capNanoUsd }) => capNanoUsd), ...(key.limits?.costCaps ?? []).map(({ capNanoUsd }) => capNanoUsd), isOwn(caller) ? undefined : account.trialCreditNanoUsd] : [isOwn(caller) ? account.byokTokens : undefined, account.hardCap ? account.includedTokens : undefined];
  return told.flatMap((limit) => (limit === undefined ? [] : [BigInt(limit)]));
}

/** The tightest limit; undefined = there is none. */
export function limitOf(caller: Caller, meter: Meter): bigint | undefined {
  return limitsOf(caller, meter).reduce((least: bigint | undefined, limit) => (least === undefined || limit < least ? limit : least), undefined);
}

/** Amounts by meter. */
export type Amounts = Readonly<Record<Meter, bigint>>;
export const NOTHING: Amounts = { charge: 0n, tokens: 0n };
