/** A store that loses the draws of requests on advances. */
import type { QuotaStore } from '@signalbox/quota/proof';

/** The first report of a request takes its draw out of the advance, but creates no hold. */
export function losingDraws(store: QuotaStore): QuotaStore {
  return {
    ...store,
    heartbeat: async (accountId, requestId, toAmount, toTokens, writer, draw) => {
      if (draw !== undefined) await store.release(accountId, `${requestId} lost`, draw);
      return store.heartbeat(accountId, requestId, toAmount, toTokens, writer);
    },
    confirm: async (accountId, requestId, draw) => {
      if (draw !== undefined) await store.release(accountId, `${requestId} lost`, draw);
      return (await store.confirm(accountId, requestId)) || draw !== undefined;
    },
  };
}
