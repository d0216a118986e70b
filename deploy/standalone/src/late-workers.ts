/**
 * Workers of providers for which the operator has no credential. Their addresses are fixed at the start, but each worker is
 * started only when the first account has its own credential there. Until then a worker costs only a port number.
 */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { ListProviderKeysRequest, ListProviderKeysResponse__Output } from '@signalbox/contracts/accounts';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { RpcClient } from '@signalbox/rpc/call';
import type { ProcessDoors } from '@signalbox/runtime/lifecycle';
import type { Log } from '@signalbox/runtime/log';
import { openAccountsClient } from './accounts-client.js';

const PAGE = 1_000;

export interface LateWorkersOptions {
  readonly accounts: RpcClient;
  readonly bus: Bus;
  readonly log: Log;
  /** Providers whose worker may be started. */
  readonly providers: ReadonlySet<string>;
  /** Starts the worker of a provider; called once, and again only after a failure. */
  readonly start: (provider: string) => Promise<void>;
}

export interface LateWorkers {
  /** Starts the workers that accounts need already, and watches for more. */
  begin(): Promise<void>;
  /** Stops watching; starts no more workers. */
  stop(): Promise<void>;
}

export function createLateWorkers({ accounts, bus, log, providers, start }: LateWorkersOptions): LateWorkers {
  const started = new Map<string, Promise<void>>();
  const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');
  let subscription: Subscription | undefined;
  let unwatch: (() => void) | undefined;
  let isStopped = false;

  const ensure = (provider: string): Promise<void> => {
    let starting = started.get(provider);
    if (starting === undefined) {
      starting = start(provider).catch((error: unknown) => {
        started.delete(provider);
        log.error('A worker for own credentials could not be started.', { provider }, error);
      });
      started.set(provider, starting);
    }
    return starting;
  };

  /** `accountId` empty = all accounts. */
  const look = async (accountId: string): Promise<void> => {
    const wanted = new Set<string>();
    let after = '';
    for (;;) {
      const page = await accounts.unary<ListProviderKeysRequest, ListProviderKeysResponse__Output>('ListProviderKeys', { accountId, limit: PAGE, after });
      for (const { provider } of page.providerKeys) if (providers.has(provider)) wanted.add(provider);
      const last = page.providerKeys.at(-1);
      if (!page.hasMore || last === undefined) break;
      after = last.handle;
    }
    if (!isStopped) await Promise.all([...wanted].map(ensure));
  };
  const lookLater = (accountId: string): void => {
    look(accountId).catch((error: unknown) => log.warn('Own credentials could not be listed.', { error: error instanceof Error ? error.name : 'unknown' }));
  };

  return {
    begin: async () => {
      if (providers.size === 0) return;
      subscription = await bus.listen('keys.v1.revoked', ({ payload }) => {
        let event: KeyInvalidated__Output;
        try {
          event = codec.decode(payload);
        } catch {
          return;
        }
        if (event.reason === 'provider_key') lookLater(event.accountId);
      });
      // Events may have been missed while the connection was down.
      unwatch = bus.onConnectionChange((isConnected) => {
        if (isConnected) lookLater('');
      });
      await look('');
    },
    stop: async () => {
      isStopped = true;
      unwatch?.();
      await subscription?.stop();
      await Promise.all(started.values());
    },
  };
}

/** Begins with its own client of accounts; returns a function that stops it. */
export async function beginLateWorkers(accountsAddress: string, bus: Bus, log: Log, providers: ReadonlySet<string>, start: (provider: string) => Promise<void>, doors?: ProcessDoors): Promise<() => Promise<void>> {
  const accounts = await openAccountsClient(accountsAddress, doors);
  const late = createLateWorkers({ accounts, bus, log, providers, start });
  const stop = async (): Promise<void> => {
    await late.stop();
    await accounts.close();
  };
  try {
    await late.begin();
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}
