/** Faults on the wire: FaultDetail on the Link, status and metadata on plain RPCs. The message of a bug is never sent. */
import { Metadata, status, type ServiceError, type StatusObject } from '@grpc/grpc-js';
import { FAULTS, Fault, isFaultCode, type FaultCode } from '@signalbox/kernel/fault';
import type { FaultDetail } from './link-item.js';

const CODE_KEY = 'fault-code';
const RETRY_AFTER_KEY = 'retry-after-ms';

/** Text of a fault without its code in front; empty for bugs, whose text may contain private data. */
function innerMessage(fault: Fault): string {
  if (fault.code === 'internal_error') return '';
  const prefix = `${fault.code}: `;
  return (fault.message.startsWith(prefix) ? fault.message.slice(prefix.length) : fault.message).slice(0, 512);
}

/** Whole milliseconds in 0..2^32−1, as uint32 fields hold them. */
export function toUint32(ms: number): number {
  return Number.isFinite(ms) && ms > 0 ? Math.min(Math.ceil(ms), 0xffffffff) : 0;
}

export function faultToDetail(fault: Fault): FaultDetail {
  return { code: fault.code, message: innerMessage(fault), retryAfterMs: toUint32(fault.retryAfterMs ?? 0) };
}

/** An unknown code of a newer peer becomes `internal_error`. */
export function detailToFault(detail: FaultDetail | undefined): Fault {
  if (detail === undefined) return new Fault('internal_error', 'the peer reported a fault without its details');
  return makeFault(isFaultCode(detail.code) ? detail.code : 'internal_error', detail.message, detail.retryAfterMs);
}

export function clientLeft(): Fault {
  return new Fault('client_left', 'the client of the call hung up');
}

function makeFault(code: FaultCode, message: string, retryAfterMs: number): Fault {
  return new Fault(code, message, retryAfterMs > 0 ? { retryAfterMs } : {});
}

export function faultToStatus(fault: Fault): StatusObject {
  const metadata = new Metadata();
  metadata.set(CODE_KEY, fault.code);
  if (fault.retryAfterMs !== undefined && fault.retryAfterMs > 0) metadata.set(RETRY_AFTER_KEY, String(toUint32(fault.retryAfterMs)));
  return { code: FAULTS[fault.code].grpcStatus, details: innerMessage(fault).replace(/[^\x20-\x7e]/g, '?'), metadata };
}

/** grpc-js gives these details for a call that never left the client. */
const NEVER_SENT = /^(No connection established|Name resolution failed|Channel has been shut down)/;

const BY_STATUS: Readonly<Partial<Record<number, FaultCode>>> = {
  // A call that our caller cancelled is over already, so the peer must have cut this one.
  [status.CANCELLED]: 'link_lost',
  [status.INVALID_ARGUMENT]: 'bad_message',
  [status.DEADLINE_EXCEEDED]: 'deadline_exceeded',
  [status.RESOURCE_EXHAUSTED]: 'overloaded',
  [status.UNIMPLEMENTED]: 'unknown_method',
};

export function statusToFault(error: ServiceError): Fault {
  // Errors that grpc-js makes itself may lack metadata, whatever their type says.
  const metadata = error.metadata as Metadata | undefined;
  const code = metadata?.get(CODE_KEY)[0];
  if (typeof code === 'string' && isFaultCode(code)) return makeFault(code, error.details, Number(metadata?.get(RETRY_AFTER_KEY)[0] ?? 0));
  if (error.code === status.UNAVAILABLE) {
    return NEVER_SENT.test(error.details) ? new Fault('peer_unavailable', 'no connection to the peer') : new Fault('link_lost', 'the connection broke during the call');
  }
  const byStatus = BY_STATUS[error.code];
  return byStatus === undefined ? new Fault('internal_error', `grpc status ${String(error.code)}`) : new Fault(byStatus, `grpc status ${String(error.code)}`);
}
