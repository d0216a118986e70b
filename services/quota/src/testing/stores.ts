/** The stores of quota, opened for one suite that all of them pass, on a clock that a test may move. */
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
/** Of a request that asks for nothing and that nothing limits. */
export const command = (requestId: string, more: Partial<AdmitCommand> = {}): AdmitCommand => ({
  requestId, keyId: 'key_1', counter: 'chat', amount: 0n, minAmount: 0n, tokens: 0n, minTokens: 0n, byok: false, requestsPerMinute: undefined, burstPerSecond: undefined,
  keyRequestsPerMinute: undefined, walls: [], anchorDay: 0, periodSeconds: undefined, needsTotals: false, ...more,
});
export const verdict = (answer: AdmitAnswer): AdmitVerdict => {
  if (typeof answer === 'string') throw new Error(`expected a verdict, not ${answer}`);
  return answer;
};

/** Of quota's user at the Redis of `deployedRedis`. */
export const PASSWORD = '0e1a2b';

/** A Redis with the users of deploy/redis, their file made by the command that compose starts it with. Here it stays whoever's runs the test: the image's user is on few machines, and only root gives files away. */
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

/** A started store whose time is the real one and `skewMs`. */
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
