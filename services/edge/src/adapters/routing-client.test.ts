import { expect, test } from '@jest/globals';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createRoutingClient } from './routing-client.js';

const PLAN = { decisionId: 'dec_1' } as DecideResponse__Output;

/** Routing of which each ask takes a second and ends as `ends` says. */
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
  ['nobody else is there', ['link_lost', 'peer_unavailable'], 2],
  ['the other dies too', ['link_lost', 'link_lost'], 2],
  ['one was silent, and another was asked by the call itself', ['deadline_exceeded'], 1],
  ['it found fault with the question', ['bad_message'], 1],
])('routing is unavailable when %s', async (_case, ends, asks) => {
  const { asked, decide } = routing(...ends);
  await expect(decide()).rejects.toMatchObject({ code: 'routing_unavailable' });
  expect(asked).toHaveLength(asks);
});
