/** Failures of an attempt that its worker did not report itself, and what each may have left at the worker. */
import type { Failed__Output } from '@signalbox/contracts/worker';
import type { Fault, FaultCode } from '@signalbox/kernel/fault';

/**
 * What a failed attempt left at its worker: `none` = nothing is journaled, so nobody there ends the hold; `journaled`;
 * `lost` = the link broke and the worker, if it lives, goes on or concludes without us.
 */
export type AttemptTrace = 'none' | 'journaled' | 'lost';

const NO_TEXT = { publicMessage: '', publicParam: '' } as const;

const UNJOURNALED: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['RATE_LIMITED', 'BAD_REQUEST']);
const LOST: ReadonlySet<FaultCode> = new Set<FaultCode>(['link_lost', 'deadline_exceeded', 'cancelled']);

/** A worker cannot write its log, is not known to billing yet, or has too much in work: another replica of it may do better. */
export const REPLICAS_OWN: ReadonlySet<FaultCode> = new Set<FaultCode>(['store_unavailable', 'billing_unavailable', 'overloaded']);

/** Without a credential there is nothing to send. */
const UNARMED: ReadonlySet<Failed__Output['class']> = new Set<Failed__Output['class']>(['NO_CREDENTIAL', 'ACCOUNTS_AWAY']);

/** Without a free credential, or a way to say the request on its wire, the worker refuses before it writes anything down. */
export const traceOf = ({ class: failureClass, status }: Failed__Output): AttemptTrace => (UNARMED.has(failureClass) || (status === 0 && UNJOURNALED.has(failureClass)) ? 'none' : 'journaled');
export const traceOfFault = (fault: Fault | undefined): AttemptTrace => (fault === undefined || LOST.has(fault.code) ? 'lost' : 'none');

export function failureOf(failureClass: Failed__Output['class'], isRetryable: boolean): Failed__Output {
  return { class: failureClass, status: 0, retryAfterMs: 0, retryable: isRetryable, ...NO_TEXT };
}

export function failureOfFault(fault: Fault | undefined): Failed__Output {
  if (fault === undefined) return failureOf('DISCONNECTED', true);
  // The worker did not start, since what was held is not known to be held any more: so would any other.
  if (fault.code === 'quota_unavailable') return failureOf('QUOTA_AWAY', false);
  return failureOf(fault.code === 'deadline_exceeded' ? 'TIMEOUT_IDLE' : fault.code === 'link_lost' ? 'DISCONNECTED' : 'CONNECT', true);
}

/** 200 that is not what was asked for. */
export const NOT_HEALED: Failed__Output = { ...failureOf('GARBAGE', true), status: 200 };
