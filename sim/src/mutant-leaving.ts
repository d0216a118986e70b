/** Broken variants of a worker whose client leaves before an answer has begun, for the mutation run. */
import { Fault } from '@signalbox/kernel/fault';
import type { Upstream } from '@signalbox/worker-kit/proof';

/** Treats a client that hung up by itself as one that was cut off. */
export const takenForCancelled = (reason: Fault): Fault => (reason.code === 'client_left' ? new Fault('cancelled', 'left') : reason);

/** Treats a client that was cut off as one that hung up by itself. */
export const takenForLeft = (reason: Fault): Fault => (reason.code === 'cancelled' ? new Fault('client_left', 'cut off') : reason);

/** Treats a request that waits for its connection as received by the provider. */
export function takenForSent(upstream: Upstream): Upstream {
  return {
    ...upstream,
    post: (request, requestId, listener) => {
      const call = upstream.post(request, requestId, listener);
      return { pause: () => call.pause(), resume: () => call.resume(), release: () => call.release(), abort: () => call.abort(), isSent: () => true };
    },
  };
}
