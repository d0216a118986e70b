/** Opens each of quota's stores for the suite that all of them must pass, with a clock that the test can shift. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Wall } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitCommand, AdmitVerdict } from '@signalbox/ledger-core/admission';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { ownRedis, testRedisUrl } from '@signalbox/testkit/stores';
import { parse } from 'yaml';
import { createMemoryStore } from '../adapters/memory-store.js';
import { createRedisStore } from '../adapters/redis-store.js';
import type { QuotaStore } from '../domain/ports.js';

/** An account that no store has heard of. */
export const fresh = (): string => `acct_${Buffer.from(randomBytes(8)).toString('hex')}`;
export const cap = (limit: bigint, more: Partial<Wall> = {}): Wall => ({ scope: 'account', period: 'total', meter: 'charge', limit, ...more });
/** Admission of a request that asks for nothing and has no limits. */
export const command = (requestId: string, more: Partial<AdmitCommand> = {}): AdmitCommand => ({
  requestId, keyId: 'key_1', counter: 'chat', amount: 0n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false, ...more,
});
export const verdict = (answer: AdmitAnswer): AdmitVerdict => {
  if (typeof answer === 'string') throw new Error(`expected a verdict, not ${answer}`);
  return answer;
};

/** Password of quota's user in the Redis of `deployedRedis`. */
export const PASSWORD = '0e1a2b';

/** A Redis with the users of deploy/redis, whose file is created by the start command of docker-compose.yml. The `chown` is left out: few machines have the image's user, and only root may run it. */
export async function deployedRedis(): ReturnType<typeof ownRedis> {
  const root = fileURLToPath(new URL('../../../..', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-acl-'));
  const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8')) as { readonly services: { readonly redis: { readonly command: readonly [string, string, string] } } };
  const [shell, flag, script] = services.redis.command;
  const [make = '', start = ''] = script.replaceAll('$$', '$').replaceAll('/etc/signalbox', join(root, 'deploy/redis')).replaceAll('/tmp/users.acl', join(folder, 'users.acl')).split(/ && (?:chown redis \S+ && )?exec /);
  if (!start.includes(`--aclfile ${join(folder, 'users.acl')}`)) throw new Error(`compose starts Redis without its users: ${start}`);
  execFileSync(shell, [flag, make], { env: { PATH: process.env['PATH'], QUOTA_REDIS_PASSWORD: PASSWORD } });
  const server = await ownRedis({ aclFile: join(folder, 'users.acl') });
  rmSync(folder, { recursive: true });
  return { ...server, url: `redis://quota:${PASSWORD}@127.0.0.1:${server.port}` };
}

const noMetrics = { storeTook: () => undefined, storeFailed: () => undefined };
export const redisStore = (url: string, fixed: { readonly fixedNowMs?: () => number } = {}): QuotaStore => createRedisStore({ url, clock: systemClock, randomBytes, log: silentLog, metrics: noMetrics, commandTimeoutMs: 5_000, ...fixed });

export const STORE_KINDS = ['memory', 'redis', 'redis as deployed'] as const;

export interface OpenedStore {
  readonly store: QuotaStore;
  close(): Promise<void>;
}

/** A started store whose time is the real time plus `skewMs`. */
export async function openStore(kind: (typeof STORE_KINDS)[number], skewMs: () => number): Promise<OpenedStore> {
  const nowMs = (): number => systemClock.nowMs() + skewMs();
  const deployed = kind === 'redis as deployed' ? await deployedRedis() : undefined;
  const store = kind === 'memory' ? createMemoryStore({ clock: { nowMs } }) : redisStore(deployed?.url ?? (await testRedisUrl()), { fixedNowMs: nowMs });
  await store.start();
  return {
    store,
    close: async () => {
      await store.stop();
      await deployed?.stop();
    },
  };
}
