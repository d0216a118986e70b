/** Books all logs to their end before a worker starts, also logs of providers that are no longer configured: their charges are money, and no running edge knows of them. */
import type { Bus } from '@signalbox/bus/bus';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Log } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { recoverDirectories } from '@signalbox/worker-kit/wal-recover';

const DEADLINE_MS = 5_000;

export interface RecoverOptions {
  readonly walDir: string;
  readonly quotaAddress: string;
  readonly billingAddress: string;
  readonly bus: Bus;
  readonly log: Log;
}

export async function recoverLeftDirectories({ walDir, quotaAddress, billingAddress, bus, log }: RecoverOptions): Promise<void> {
  const client = (area: 'quota' | 'billing', address: string) => createRpcClient({ area, addresses: [address], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: DEADLINE_MS });
  const quota = client('quota', quotaAddress);
  const billing = client('billing', billingAddress);
  try {
    await recoverDirectories(walDir, { clock: systemClock, randomBytes, log, bus, quota, billing });
  } finally {
    await Promise.all([quota.close(), billing.close()]);
  }
}
