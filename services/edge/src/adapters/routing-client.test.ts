import { expect, test } from '@jest/globals';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createRoutingClient } from './routing-client.js';

const PLAN = { decisionId: 'dec_1' } as DecideResponse__Output;

/** A routing service whose answers take a second each and end as `ends` says. */
function routing(...ends: readonly (FaultCode | 'plan')[]) {
  const clock = createFakeClock();
  const asked: (number | undefined)[] = [];
  const client = {
    unary: (_method: string, _request: object, { deadlineMs }: CallOptions) => {
      const end = ends[asked.length] ?? 'internal_error';
      asked.push(deadlineMs);
      clock.advance(1_000);
      return end === 'plan' ? Promise.resolve(PLAN) : Promise.reject(new Fault(end, 'test'));
    },
  } as unknown as RpcClient;
  return { asked, decide: () => createRoutingClient(client, clock).decide({ requestId: 'chatcmpl-0001' }) };
}

test('a replica that dies during a decision does not fail the request if another one decides', async () => {
  const { asked, decide } = routing('link_lost', 'plan');
  expect(await decide()).toBe(PLAN);
  expect(asked).toEqual([5_000, 4_000]);
});

test.each<[string, readonly FaultCode[], number]>([
  ['there is no other replica', ['link_lost', 'peer_unavailable'], 2],
  ['the other replica dies, too', ['link_lost', 'link_lost'], 2],
  ['a replica was silent, and the call itself asked another', ['deadline_exceeded'], 1],
  ['it rejects the question', ['bad_message'], 1],
])('routing is unavailable when %s', async (_case, ends, asks) => {
  const { asked, decide } = routing(...ends);
  await expect(decide()).rejects.toMatchObject({ code: 'routing_unavailable' });
  expect(asked).toHaveLength(asks);
});
