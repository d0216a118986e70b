/** Neighbours as an operator knows them: what fails there is told with the service's name. */
import { FAULTS, toFault } from '@signalbox/kernel/fault';
import type { RpcClient } from '@signalbox/rpc/call';

/** A call of that service that failed. */
export class NeighbourError extends Error {
  override readonly name = 'NeighbourError';

  constructor(
    readonly service: string,
    cause: unknown,
  ) {
    super(`${service} did not answer`, { cause });
  }
}

/** The same client, whose plain calls reject with a NeighbourError. */
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

/** What is wrong, for a person: never what a fault says of itself. */
export function tellFault(error: unknown): { readonly message: string; readonly code: string; readonly status: number } {
  const fault = toFault(error instanceof NeighbourError ? error.cause : error);
  const { publicMessage, publicCode: code, httpStatus: status, retryable } = FAULTS[fault.code];
  const message = error instanceof NeighbourError && retryable ? `${error.service} does not answer (${fault.code}). See whether it is up, and try again.` : publicMessage;
  return { message, code, status };
}
