/** A request that has waited is looked at as one that comes now: its key may have been revoked, and its limits changed, meanwhile. */
import type { Refusal } from './answer.js';
import type { Caller } from './ports.js';
import type { Turn } from './turn.js';

/** The caller's key may ask models. */
export function mayInfer({ key }: Caller): boolean {
  return key.scopes.includes('inference');
}

export type CallerNow = { readonly caller: Caller; readonly refusal?: undefined } | { readonly refusal: Refusal };

/** Throws a Fault while it is not known who calls. */
export async function callerNow({ caller, answer }: Pick<Turn, 'caller' | 'answer'>): Promise<CallerNow> {
  const now = (await answer.callerNow?.()) ?? caller;
  if (typeof now === 'string') return { refusal: { kind: 'caller', state: now } };
  return mayInfer(now) ? { caller: now } : { refusal: { kind: 'scope', scope: 'inference' } };
}
