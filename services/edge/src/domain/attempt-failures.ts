/** Failures of an attempt that its worker did not report itself, and what each may have left at the worker. */
import type { Failed__Output } from '@signalbox/contracts/worker';
import type { Fault, FaultCode } from '@signalbox/kernel/fault';

/**
 * What a failed attempt left at its worker: `none` = nothing is in its journal, so the worker does not end the hold;
 * `journaled` = the worker ends the hold; `lost` = the link broke, and the worker, if it runs, goes on or concludes by itself.
 */
export type AttemptTrace = 'none' | 'journaled' | 'lost';

const NO_TEXT = { publicMessage: '', publicParam: '' } as const;

const UNJOURNALED: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['RATE_LIMITED', 'BAD_REQUEST']);
const LOST: ReadonlySet<FaultCode> = new Set<FaultCode>(['link_lost', 'deadline_exceeded', 'cancelled']);

/** Faults of one replica: it cannot write its log, is not known to billing yet, or is overloaded. Another replica may serve. */
export const REPLICAS_OWN: ReadonlySet<FaultCode> = new Set<FaultCode>(['store_unavailable', 'billing_unavailable', 'overloaded']);

/** Failures before anything was sent, for lack of a credential. */
const UNARMED: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['NO_CREDENTIAL', 'ACCOUNTS_AWAY']);

/** A worker that has no free credential, or cannot express the request in its provider's protocol, refuses before it writes to its journal. */
export const traceOf = ({ class: failureClass, status }: Failed__Output): AttemptTrace => (UNARMED.has(failureClass) || (status === 0 && UNJOURNALED.has(failureClass)) ? 'none' : 'journaled');
export const traceOfFault = (fault: Fault | undefined): AttemptTrace => (fault === undefined || LOST.has(fault.code) ? 'lost' : 'none');

export function failureOf(failureClass: Failed__Output['class'], isRetryable: boolean): Failed__Output {
  return { class: failureClass, status: 0, retryAfterMs: 0, retryable: isRetryable, ...NO_TEXT };
}

export function failureOfFault(fault: Fault | undefined): Failed__Output {
  if (fault === undefined) return failureOf('DISCONNECTED', true);
  // The worker did not start, since it could not confirm that the hold still exists. Other workers could not either.
  if (fault.code === 'quota_unavailable') return failureOf('QUOTA_AWAY', false);
  return failureOf(fault.code === 'deadline_exceeded' ? 'TIMEOUT_IDLE' : fault.code === 'link_lost' ? 'DISCONNECTED' : 'CONNECT', true);
}

/** The model came to its end without a word, and another may say more. */
export const NOTHING_SAID: Failed__Output = { ...failureOf('EMPTY', true), status: 200 };

/** The provider answered 200, but not with the JSON that was asked for. */
export const NOT_HEALED: Failed__Output = { ...failureOf('GARBAGE', true), status: 200 };
