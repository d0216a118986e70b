/** Errors of other services for the operator, with the service's name. */
import { FAULTS, toFault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';

/** A call to that service failed. */
export class NeighbourError extends Error {
  override readonly name = 'NeighbourError';

  constructor(
    readonly service: string,
    cause: unknown,
  ) {
    super(`${service} did not answer`, { cause });
  }
}

/** The same client, whose unary calls reject with a NeighbourError. */
export function naming(service: string, client: RpcClient): RpcClient {
  return {
    unary: async (...args) => {
      try {
        return await client.unary(...args);
      } catch (error) {
        throw new NeighbourError(service, error);
      }
    },
    stream: (...args) => client.stream(...args),
    isConnected: () => client.isConnected(),
    close: () => client.close(),
  };
}

/** What the operator is told: a fixed text, never the fault's own message. */
export function tellFault(error: unknown): { readonly message: string; readonly code: string; readonly status: number } {
  const fault = toFault(error instanceof NeighbourError ? error.cause : error);
  const { publicMessage, publicCode: code, httpStatus: status, retryable } = FAULTS[fault.code];
  const message = error instanceof NeighbourError && retryable ? `${error.service} does not answer (${fault.code}). See whether it is up, and try again.` : publicMessage;
  return { message, code, status };
}
