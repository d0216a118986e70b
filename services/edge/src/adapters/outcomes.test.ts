import { expect, test } from '@jest/globals';
import type { OutcomeRequest, OutcomesRequest } from '@signalbox/contracts/worker';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import type { CallOptions, RpcClient } from '@signalbox/rpc/call';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createOutcomes } from './outcomes.js';

const PEER = { name: 'a' };

/** Outcomes, and the worker that gets them. `fails`: how a message fails, by its method and the number of earlier ones. */
function story(fails: (method: string, count: number) => FaultCode | undefined = () => undefined) {
  const clock = createFakeClock();
  const startMs = clock.monotonicMs();
  /** Messages sent: after how many milliseconds, to which replica, and the requests named. */
  const sent: string[] = [];
  const heard = new Set<string>();
  let count = 0;
  const client: RpcClient = {
    unary: (method: string, message: OutcomeRequest & OutcomesRequest, options?: CallOptions) => {
      const names = (method === 'Outcomes' ? (message.outcomes ?? []) : [message]).map(({ requestId = '' }) => requestId);
      sent.push(`${String(clock.monotonicMs() - startMs)} ${(options?.peer as { name?: string } | undefined)?.name ?? '-'} ${method} ${names.length > 4 ? String(names.length) : names.join(',')}`);
      const code = fails(method, count++);
      if (code !== undefined) return Promise.reject(new Fault(code, 'test'));
      for (const name of names) heard.add(name);
      return Promise.resolve({} as never);
    },
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined, peer: () => undefined }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  };
  const outcomes = createOutcomes(clock);
  const tell = (requestId: string, over: Partial<OutcomeRequest> = {}, ...peers: readonly (object | undefined)[]): Promise<boolean> => outcomes.tell(client, { requestId, attempt: 1, outcome: 'DELIVERED', followed: false, reserve: false, ...over }, peers.length === 0 ? PEER : peers[0]);
  const tellGoingOn = (requestId: string): void => void outcomes.tell(client, { requestId, attempt: 1, outcome: 'DELIVERED', followed: false, reserve: false }, PEER, true);
  return { clock, sent, heard, outcomes, tell, tellGoingOn };
}

test('in a busy moment the first outcome is sent at once, and the following ones together with the first that comes 10 ms later', async () => {
  const { clock, sent, tell } = story();
  const told = ['r1', 'r2', 'r3'].map((id) => tell(id));
  expect(sent).toEqual(['0 a Outcome r1']);
  await clock.advanceAsync(9);
  told.push(tell('r4'));
  await clock.advanceAsync(1);
  expect(sent).toEqual(['0 a Outcome r1']);
  told.push(tell('r5'));
  await Promise.all(told);
  expect(sent).toEqual(['0 a Outcome r1', '10 a Outcomes r2,r3,r4,r5']);
});

test('gathered outcomes are sent after 20 ms if no other comes, and one that comes 10 ms after the last is sent at once', async () => {
  const { clock, sent, tell } = story();
  for (const id of ['r1', 'r2', 'r3']) void tell(id);
  await clock.advanceAsync(29);
  void tell('r4');
  await clock.advanceAsync(30);
  void tell('r5');
  expect(sent).toEqual(['0 a Outcome r1', '20 a Outcomes r2,r3', '49 a Outcome r4', '59 a Outcome r5']);
});

test.each<[string, Partial<OutcomeRequest>]>([
  ['that its worker would not conclude by itself', { outcome: 'DISCARDED' }],
  ['of an answer that was superseded', { outcome: 'SUPERSEDED' }],
  ['of an answer that was kept in reserve', { reserve: true }],
  ['of a failed round after an answered one', { outcome: 'DISCARDED', followed: true }],
])('an outcome that somebody may wait for is sent at once: an outcome %s', (_which, over) => {
  const { sent, tell } = story();
  void tell('r1');
  void tell('r2', over);
  expect(sent).toEqual(['0 a Outcome r1', '0 a Outcome r2']);
});

test('all rounds of a request are told in one message, at once, together with the waiting outcomes', async () => {
  const { clock, sent, tell } = story();
  const tellRounds = (id: string): Promise<boolean>[] => [tell(id, { attempt: 1, followed: true }), tell(id, { attempt: 2, followed: true }), tell(id, { attempt: 3 })];
  expect(await Promise.all(tellRounds('r1'))).toEqual([true, true, true]);
  for (const id of ['r2', 'r3']) void tell(id);
  await clock.advanceAsync(1);
  await Promise.all(tellRounds('r4'));
  await clock.advanceAsync(30);
  // The last round belongs to another worker, or is told by another method.
  await tell('r5', { followed: true });
  expect(sent).toEqual(['0 a Outcomes r1,r1,r1', '1 a Outcomes 5', '31 a Outcome r5']);
});

test('this holds also for a replica with several links', async () => {
  const { sent, tell } = story();
  const replica = {};
  await Promise.all([tell('r1', { followed: true }, { name: 'first', replica }), tell('r1', { attempt: 2 }, { name: 'second', replica }), tell('r2', { followed: true }, { name: 'other', replica: {} })]);
  expect(sent).toEqual(['0 first Outcomes r1,r1', '0 other Outcome r2']);
});

test('the rounds of a request stay in one message, however many outcomes wait, and at an edge that stops', async () => {
  const { clock, sent, outcomes, tell } = story();
  for (let at = 0; at < 128; at += 1) void tell(`w${String(at)}`);
  await Promise.all([tell('r1', { followed: true }), tell('r1', { attempt: 2, followed: true }), tell('r1', { attempt: 3 })]);
  await clock.advanceAsync(30);
  const settled = outcomes.settle(1_000);
  await Promise.all([tell('r2', { followed: true }), tell('r2', { attempt: 2 }), tell('r3')]);
  expect(await settled).toBe(0);
  // 127 had gathered behind the first.
  expect(sent).toEqual(['0 a Outcome w0', '0 a Outcomes 130', '30 a Outcomes r2,r2,r3']);
});

test('an outcome whose worker answers only after the attempt has ended delays no other', async () => {
  const { clock, sent, tellGoingOn, tell } = story();
  void tell('r1');
  void tell('r2');
  tellGoingOn('left');
  await clock.advanceAsync(20);
  expect(sent).toEqual(['0 a Outcome r1', '0 a Outcome left', '20 a Outcome r2']);
});

test('if a message fails, each outcome is told again over the link of its own attempt', async () => {
  const { clock, sent, tell } = story((_method, count) => (count === 0 ? 'deadline_exceeded' : undefined));
  const replica = {};
  const told = [tell('r1', { followed: true }, { name: 'dead', replica }), tell('r1', { attempt: 2 }, { name: 'alive', replica })];
  await clock.advanceAsync(250);
  expect([await Promise.all(told), sent]).toEqual([[true, true], ['0 dead Outcomes r1,r1', '250 dead Outcome r1', '250 alive Outcome r1']]);
});

test('rounds are told one by one to an older worker, and again if the message fails', async () => {
  const old = story((method) => (method === 'Outcomes' ? 'unknown_method' : undefined));
  await Promise.all([old.tell('r1', { followed: true }), old.tell('r1', { attempt: 2 })]);
  expect(old.sent).toEqual(['0 a Outcomes r1,r1', '0 a Outcome r1', '0 a Outcome r1']);
  const away = story((_method, count) => (count === 0 ? 'link_lost' : undefined));
  const told = [away.tell('r1', { followed: true }), away.tell('r1', { attempt: 2 })];
  await away.clock.advanceAsync(1_000);
  expect([await Promise.all(told), [...away.heard]]).toEqual([[true, true], ['r1']]);
});

test('each replica is told its own outcomes, and an outcome that may have reached no replica is not delayed', async () => {
  const { clock, sent, tell } = story();
  const other = { name: 'b' };
  for (const id of ['r1', 'r2', 'r3']) void tell(id);
  for (const id of ['s1', 's2', 's3']) void tell(id, {}, other);
  for (const id of ['t1', 't2']) void tell(id, {}, undefined);
  await clock.advanceAsync(20);
  expect(sent.sort()).toEqual(['0 - Outcome t1', '0 - Outcome t2', '0 a Outcome r1', '0 b Outcome s1', '20 a Outcomes r2,r3', '20 b Outcomes s2,s3']);
});

test('a message holds at most 128 outcomes, and is sent as soon as it is full', () => {
  const { sent, tell } = story();
  for (let n = 0; n < 129; n += 1) void tell(`r${String(n)}`);
  expect(sent).toEqual(['0 a Outcome r0', '0 a Outcomes 128']);
});

test('an older worker is told outcomes one by one, and is not sent a batch again', async () => {
  const { clock, sent, tell } = story((method) => (method === 'Outcomes' ? 'unknown_method' : undefined));
  const told = ['r1', 'r2', 'r3'].map((id) => tell(id));
  await clock.advanceAsync(20);
  await Promise.all(told);
  for (const id of ['r4', 'r5']) void tell(id);
  expect(sent).toEqual(['0 a Outcome r1', '20 a Outcomes r2,r3', '20 a Outcome r2', '20 a Outcome r3', '20 a Outcome r4', '20 a Outcome r5']);
});

test.each<FaultCode>(['link_lost', 'deadline_exceeded', 'peer_unavailable', 'store_unavailable'])('if a message fails by %s, each of its outcomes is told again', async (code) => {
  const { clock, heard, tell } = story((_method, count) => (count === 1 || count === 2 ? code : undefined));
  const told = ['r1', 'r2', 'r3'].map((id) => tell(id));
  await clock.advanceAsync(20);
  expect([...heard]).toEqual(['r1']);
  await clock.advanceAsync(1_000);
  await Promise.all(told);
  expect([...heard].sort()).toEqual(['r1', 'r2', 'r3']);
});

test('an outcome that could not be told is not reported as told, alone or in a batch', async () => {
  const { clock, tell, heard } = story((_method, count) => (count > 0 ? 'peer_unavailable' : undefined));
  const told = [tell('r1'), tell('r2'), tell('r3'), tell('r4', { outcome: 'DISCARDED' })];
  await clock.advanceAsync(1_200_000);
  expect([await Promise.all(told), [...heard]]).toEqual([[true, false, false, false], ['r1']]);
});

test('a stopping edge sends gathered outcomes at once, and counts each that it could not tell', async () => {
  const { sent, tell, outcomes } = story();
  for (const id of ['r1', 'r2', 'r3']) void tell(id);
  await expect(outcomes.settle(5_000)).resolves.toBe(0);
  expect(sent).toEqual(['0 a Outcome r1', '0 a Outcomes r2,r3']);
  const away = story((_method, count) => (count > 0 ? 'peer_unavailable' : undefined));
  for (const id of ['r1', 'r2', 'r3']) void away.tell(id);
  const settled = away.outcomes.settle(5_000);
  await away.clock.advanceAsync(5_000);
  await expect(settled).resolves.toBe(2);
});
