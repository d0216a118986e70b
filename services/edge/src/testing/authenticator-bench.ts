/** An authenticator with an accounts service in memory that a test fills and changes. */
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { KeyInvalidated, KeyInvalidated__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { makeApiKey } from '@signalbox/kernel/api-key';
import { Secret } from '@signalbox/runtime/secret';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { randomBytes } from 'node:crypto';
import { createAuthenticator, type Authentication, type Authenticator } from '../adapters/authenticator.js';
import { createFakeAccounts, PEPPER, type FakeAccounts } from './accounts.js';
import { accountWith, keyWith } from './callers.js';

const codec = messageCodec<KeyInvalidated, KeyInvalidated__Output>('signalbox.events.v1.KeyInvalidated');

export interface Bench {
  readonly clock: FakeClock;
  readonly bus: MemoryBus;
  readonly accounts: FakeAccounts;
  readonly authenticator: Authenticator;
  readonly key: string;
  /** Keys for which `onCompromised` was called. */
  readonly cut: readonly string[];
  /** The kind or state of the answer, or `fault`. */
  ask(key?: string): Promise<string>;
  invalidate(event: KeyInvalidated): Promise<void>;
}

export async function bench(keysMax?: number, isServing?: () => boolean, isRunning?: (keyId: string) => boolean): Promise<Bench> {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const accounts = createFakeAccounts();
  const key = makeApiKey(randomBytes);
  accounts.add(key, { key: keyWith(), account: accountWith() });
  const cut: string[] = [];
  const authenticator = createAuthenticator({ accounts, bus, clock, pepper: new Secret(PEPPER), variant: 'A', onCompromised: (keyId) => void cut.push(keyId), ...(keysMax === undefined ? {} : { keysMax }), ...(isServing === undefined ? {} : { isServing }), ...(isRunning === undefined ? {} : { isRunning }) });
  await authenticator.start();
  // Until the first list of changes was answered.
  await clock.advanceAsync(1);
  const told = (found: Authentication): string => (found.kind === 'refused' ? found.state : found.kind);
  return {
    clock,
    bus,
    accounts,
    authenticator,
    key,
    cut,
    ask: (asked = key) => Promise.resolve(authenticator.authenticate(asked)).then(told, () => 'fault'),
    invalidate: async (event) => {
      bus.announce('keys.v1.revoked', codec.encode(event));
      await clock.settle();
    },
  };
}

/** The record of the key after it was revoked. */
export const revoked = { key: keyWith({ status: 'revoked' }), account: accountWith() };
