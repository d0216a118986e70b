/** In the deployed Redis, quota's user may do what the store needs and nothing else. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { command, deployedRedis, fresh, PASSWORD, redisStore, verdict } from '../testing/stores.js';

let deployed: Awaited<ReturnType<typeof deployedRedis>>;
let redis: Redis;
beforeAll(async () => {
  deployed = await deployedRedis();
  redis = new Redis(deployed.url, { lazyConnect: true });
  await redis.connect();
});
afterAll(async () => {
  redis.disconnect();
  await deployed.stop();
});

test('quota’s user lets the store read the time of Redis, and send a script that was forgotten', async () => {
  const store = redisStore(deployed.url);
  await store.start();
  expect(verdict(await store.admit(fresh(), command('a', { requestsPerMinute: 1 }))).decision).toBe('admitted');
  expect(await redis.eval("return redis.call('HSET', KEYS[1], 'a', 1)", 1, 'q:{acct_eval}')).toBe(1);
  await store.stop();
});

test.each([['FLUSHALL'], ['FLUSHDB'], ['SCRIPT', 'FLUSH'], ['CONFIG', 'GET', '*'], ['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru'], ['KEYS', '*'], ['ACL', 'LIST'], ['DEL', 'epoch'], ['SHUTDOWN'], ['MONITOR'], ['REPLICAOF', 'localhost', '1'], ['PUBLISH', 'x', 'y'], ['SET', 'other', '1'], ['HGETALL', 'other']])('quota’s user is refused %s', async (name, ...args) => {
  await expect(redis.call(name, ...args)).rejects.toThrow(/^NOPERM/);
});

test('quota’s user is refused other keys and commands inside a script too', async () => {
  await expect(redis.eval("return redis.call('SET', 'other', 1)", 0)).rejects.toThrow(/user executing the script can't access/);
  await expect(redis.eval("return redis.call('FLUSHALL')", 0)).rejects.toThrow(/user executing the script can't run this command/);
});

test('who starts without a password, or with a wrong one, is told so, and not the password', async () => {
  const saidTo = async (user: string): Promise<string> => {
    const store = redisStore(`redis://${user}127.0.0.1:${deployed.port}`);
    try {
      await store.start();
      return 'started';
    } catch (error) {
      return String(error);
    } finally {
      await store.stop();
    }
  };
  expect(await saidTo('')).toBe('Fault: quota_unavailable: Redis at REDIS_URL refused (it wants a password, as in redis://user:password@host:port, NOAUTH).');
  expect(await saidTo('quota:wrong@')).toBe('Fault: quota_unavailable: Redis at REDIS_URL refused (wrong user or password, WRONGPASS).');
});

test('quota’s user is the only one: nobody comes without a name, or by another password', async () => {
  const socket = connect(deployed.port, '127.0.0.1');
  for (const [said, expected] of [['GET epoch', '-NOAUTH'], [`AUTH ${PASSWORD}`, '-WRONGPASS'], ['AUTH quota wrong', '-WRONGPASS'], ['AUTH default x', '-WRONGPASS'], [`AUTH quota ${PASSWORD}`, '+OK']] as const) {
    socket.write(`${said}\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect({ said, answer: answer.toString() }).toEqual({ said, answer: expect.stringMatching(new RegExp(`^\\${expected}`)) as unknown });
  }
  socket.destroy();
});
