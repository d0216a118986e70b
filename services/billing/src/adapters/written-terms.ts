/** The terms of a bill as stored: JSON for people, and a digest that reveals a later change. */
import { createHash } from 'node:crypto';
import type { BillingTerms } from '@signalbox/ledger-core/statement';

export type TermsJson = Readonly<Record<string, unknown>>;

/** A row of `closed_terms`. */
export interface TermsRow {
  readonly account_id: string;
  readonly period: string;
  readonly terms: TermsJson;
  /** Empty in rows that are older than the digests. */
  readonly digest: string;
}

const amount = (value: unknown): bigint | null => (typeof value === 'string' ? BigInt(value) : null);

export function termsText(terms: BillingTerms): string {
  return JSON.stringify(terms, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

export function termsOf(json: TermsJson): BillingTerms {
  return {
    tier: String(json['tier']), variant: String(json['variant']), subscriptionNanoUsd: amount(json['subscriptionNanoUsd']), includedTokens: amount(json['includedTokens']),
    overageNanoUsdPerMillion: amount(json['overageNanoUsdPerMillion']), hardCap: json['hardCap'] === true, ...(typeof json['overshootTokens'] === 'string' ? { overshootTokens: BigInt(json['overshootTokens']) } : {}), trialCreditNanoUsd: amount(json['trialCreditNanoUsd']),
  };
}

/** SHA-256 in hexadecimal of account, period and each field, in this order. The order must never change; a field that was added later comes last, and only if it is present. */
export function termsDigest(accountId: string, period: string, { tier, variant, subscriptionNanoUsd, includedTokens, overageNanoUsdPerMillion, hardCap, overshootTokens, trialCreditNanoUsd }: BillingTerms): string {
  const text = (value: bigint | null): string | null => (value === null ? null : String(value));
  const fields = [accountId, period, tier, variant, text(subscriptionNanoUsd), text(includedTokens), text(overageNanoUsdPerMillion), hardCap, text(trialCreditNanoUsd), ...(overshootTokens === undefined ? [] : [text(overshootTokens)])];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}

/** False if the terms were changed after they were written. */
export function areAsWritten({ account_id, period, terms, digest }: TermsRow): boolean {
  return digest === '' || termsDigest(account_id, period, termsOf(terms)) === digest;
}
