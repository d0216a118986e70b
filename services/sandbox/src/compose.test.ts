import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { RunRequest, RunResponse__Output } from '@signalbox/contracts/sandbox';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog, type Log } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { composeSandbox } from './compose.js';
import { loadSandboxConfig } from './config.js';

let service: Service;
let client: RpcClient;
const killed: string[] = [];

beforeAll(async () => {
  const processes = {
    isNetworkFenced: true,
    start: () => {
      let running = '';
      let end: () => void = () => undefined;
      return {
        isOver: false,
        run: (code: string, { timeoutMs }: { readonly timeoutMs: number }) => {
          running = code;
          if (code !== 'hang') return Promise.resolve({ status: 'COMPLETED' as const, output: code, result: String(timeoutMs), error: '' });
          return new Promise<never>((_, reject) => {
            end = () => reject(new Error('killed'));
          }).catch(() => ({ status: 'CRASHED' as const, output: '', result: '', error: 'killed' }));
        },
        kill: () => {
          if (running !== '') killed.push(running);
          end();
        },
      };
    },
  };
  service = composeSandbox(loadSandboxConfig({}), { clock: systemClock, randomBytes, log: silentLog, withProcessMetrics: false }, { processes });
  await service.start();
  client = createRpcClient({ area: 'sandbox', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000 });
});
afterAll(async () => {
  await client.close();
  await service.stop();
});

const run = (request: RunRequest, signal?: AbortSignal): Promise<RunResponse__Output> => client.unary('Run', { accountId: 'acct_1', language: 'javascript', ...request }, signal === undefined ? {} : { signal });

test('runs a program within the time it was given, at most five seconds', async () => {
  expect(await run({ code: 'a', timeoutMs: 300 })).toMatchObject({ status: 'COMPLETED', output: 'a', result: '300', error: '' });
  expect(await run({ code: 'a' })).toMatchObject({ result: '5000' });
  expect(await run({ code: 'a', timeoutMs: 60_000 })).toMatchObject({ result: '5000' });
});

test('a caller that hangs up ends its program', async () => {
  const leaving = new AbortController();
  const running = run({ code: 'hang' }, leaving.signal);
  setImmediate(() => leaving.abort());
  await expect(running).rejects.toThrow('cancelled');
  await run({ code: 'next' });
  expect(killed).toContain('hang');
});

describe('where the kernel does not take the network from programs', () => {
  const unfenced = { isNetworkFenced: false, start: (): never => { throw new Error('nobody asks for a program'); } };
  const begin = async (environment: Record<string, string>): Promise<readonly string[]> => {
    const told: string[] = [];
    const log: Log = { ...silentLog, warn: (message) => void told.push(message) };
    const starting = composeSandbox(loadSandboxConfig(environment), { clock: systemClock, randomBytes, log, withProcessMetrics: false }, { processes: unfenced });
    await starting.start().finally(() => starting.stop());
    return told;
  };

  test('it says so at its start, once', async () => {
    expect(await begin({})).toEqual([expect.stringContaining('without a network namespace')]);
  });
  test('and nothing where the container has none', async () => {
    expect(await begin({ SANDBOX_NETWORK_FENCE: 'outside' })).toEqual([]);
  });
  test('and does not start where that is required', async () => {
    await expect(begin({ SANDBOX_NETWORK_FENCE: 'required' })).rejects.toThrow(/^SANDBOX_NETWORK_FENCE: required, and /);
  });
});
