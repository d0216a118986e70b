/** Checks the caller of a request that has waited again: its key may have been revoked, and its limits changed, meanwhile. */
import type { Refusal } from './answer.js';
import type { Caller } from './ports.js';
import type { Turn } from './turn.js';

/** True when the caller's key may use models. */
export function mayInfer({ key }: Caller): boolean {
  return key.scopes.includes('inference');
}

export type CallerNow = { readonly caller: Caller; readonly refusal?: undefined } | { readonly refusal: Refusal };

/** The caller as it is now, or why it is refused. Throws a Fault if accounts cannot be asked. */
export async function callerNow({ caller, answer }: Pick<Turn, 'caller' | 'answer'>): Promise<CallerNow> {
  const now = (await answer.callerNow?.()) ?? caller;
  if (typeof now === 'string') return { refusal: { kind: 'caller', state: now } };
  return mayInfer(now) ? { caller: now } : { refusal: { kind: 'scope', scope: 'inference' } };
}
