/**
 * Faults: failures of the environment. One closed table of codes. Adapters throw them, only libs/rpc carries them
 * between services, only edge renders them. Expected outcomes are answers (values), not faults.
 */

interface FaultMeaning {
  /** Number of the gRPC status that carries the code between services. */
  readonly grpcStatus: number;
  /** Status that a client sees. Never 401, 402, 403 or 429: a failure on our side is not the client's fault. */
  readonly httpStatus: 500 | 503 | 408 | 413;
  /** Public `code` of the OpenAI-shaped error body. */
  readonly publicCode: string;
  /** True if the same call may be retried, provided that it did no work yet. */
  readonly retryable: boolean;
  readonly publicMessage: string;
}

export const FAULTS = {
  routing_unavailable: { grpcStatus: 14, httpStatus: 500, publicCode: 'routing_unavailable', retryable: true, publicMessage: 'The routing service is unavailable. Please retry.' },
  quota_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'quota_unavailable', retryable: true, publicMessage: 'Limits cannot be checked right now. Please retry.' },
  accounts_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'accounts_unavailable', retryable: true, publicMessage: 'The key cannot be checked right now. Please retry.' },
  /** Accounts cannot say who owns an Idempotency-Key, so nothing runs under it. */
  claims_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'accounts_unavailable', retryable: true, publicMessage: 'The Idempotency-Key cannot be looked up right now, and nothing runs under it until it can. Please retry.' },
  billing_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'billing_unavailable', retryable: true, publicMessage: 'Billing data cannot be read right now. Please retry.' },
  overloaded: { grpcStatus: 8, httpStatus: 503, publicCode: 'overloaded', retryable: true, publicMessage: 'The service is overloaded. Please retry.' },
  /** The peer is unreachable, or went away; it is unknown whether a sent call did work. */
  peer_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'overloaded', retryable: true, publicMessage: 'A service is unavailable. Please retry.' },
  /** The link broke after the call was sent: it may or may not have run. */
  link_lost: { grpcStatus: 14, httpStatus: 503, publicCode: 'overloaded', retryable: false, publicMessage: 'A service is unavailable. Please retry.' },
  deadline_exceeded: { grpcStatus: 4, httpStatus: 503, publicCode: 'overloaded', retryable: false, publicMessage: 'A service took too long. Please retry.' },
  cancelled: { grpcStatus: 1, httpStatus: 503, publicCode: 'overloaded', retryable: false, publicMessage: 'The request was cancelled.' },
  /** Like `cancelled`, for the one reason that matters for billing: the client of the request hung up by itself. */
  client_left: { grpcStatus: 1, httpStatus: 503, publicCode: 'overloaded', retryable: false, publicMessage: 'The request was cancelled.' },
  store_unavailable: { grpcStatus: 14, httpStatus: 503, publicCode: 'overloaded', retryable: true, publicMessage: 'A store is unavailable. Please retry.' },
  /** A message exceeded a bound or could not be read. */
  bad_message: { grpcStatus: 3, httpStatus: 500, publicCode: 'internal_error', retryable: false, publicMessage: 'The request could not be processed.' },
  unknown_method: { grpcStatus: 12, httpStatus: 500, publicCode: 'internal_error', retryable: false, publicMessage: 'The request could not be processed.' },
  /** A service's certificate does not permit the call: a mistake in the deployment, never a client's. */
  caller_refused: { grpcStatus: 7, httpStatus: 500, publicCode: 'internal_error', retryable: false, publicMessage: 'The request could not be processed.' },
  internal_error: { grpcStatus: 13, httpStatus: 500, publicCode: 'internal_error', retryable: false, publicMessage: 'An internal error occurred.' },
} as const satisfies Record<string, FaultMeaning>;

export type FaultCode = keyof typeof FAULTS;

/** An error without stack frames, unless it keeps them. If `Error.stackTraceLimit` is read-only, as with frozen intrinsics, it has frames all the same. */
class StacklessError extends Error {
  constructor(message: string, options: ErrorOptions | undefined, keepsStack: boolean) {
    const limit = keepsStack ? undefined : Error.stackTraceLimit;
    const isLimited = limit !== undefined && Reflect.set(Error, 'stackTraceLimit', 0);
    try {
      super(message, options);
    } finally {
      if (isLimited) Error.stackTraceLimit = limit;
    }
  }
}

/**
 * Thrown by adapters. `message` is internal; it must never hold a secret, prompt or completion.
 * Expected faults have no stack frames, which cost ten times as much as the rest: an unreachable store may cause thousands
 * of faults a second. A cause keeps its frames, and so does an `internal_error` without a cause, since it is a bug to be found.
 */
export class Fault extends StacklessError {
  override readonly name = 'Fault';
  readonly code: FaultCode;
  /** Hint to callers, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: FaultCode, message: string, options: { readonly cause?: unknown; readonly retryAfterMs?: number } = {}) {
    super(`${code}: ${message}`, options.cause === undefined ? undefined : { cause: options.cause }, code === 'internal_error' && options.cause === undefined);
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export function isFaultCode(text: string): text is FaultCode {
  return Object.hasOwn(FAULTS, text);
}

/** Converts anything thrown to a Fault: unknown errors are bugs and become `internal_error`. */
export function toFault(error: unknown): Fault {
  return error instanceof Fault ? error : new Fault('internal_error', error instanceof Error ? error.name : 'unknown', { cause: error });
}
