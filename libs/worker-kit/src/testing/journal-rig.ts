/** Test helper: a write-ahead log in its own directory, with an in-memory bus and with a ledger and a quota that record their calls. */
import { afterEach } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DeregisterRequest } from '@signalbox/contracts/billing';
import type { UsageRecorded__Output } from '@signalbox/contracts/events';
import { Fault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { RpcClient } from '@signalbox/rpc/call';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { AttemptEnd, AttemptStart, EarlierRounds } from '../journal.js';
import { usageCodec } from '../shipping.js';
import { localDisk } from '../wal-disk.js';
import { FrameBuffer, type FrameKind } from '../wal-frame.js';
import { openJournal, type OpenJournal } from '../wal.js';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** The ledger commits whatever the bus delivers, and quota accepts everything. */
export async function journalRig() {
  const clock = createFakeClock();
  const newDirectory = (): string => {
    const made = mkdtempSync(join(tmpdir(), 'signalbox-wal-'));
    directories.push(made);
    return made;
  };
  const directory = newDirectory();
  const bus = createMemoryBus({ clock });
  const usage: UsageRecorded__Output[] = [];
  const finished: unknown[] = [];
  const alive: string[] = [];
  const connection = { isBillingUp: true, isBooking: true };
  const told: unknown[] = [];
  const store = { epoch: 'life 1', unheld: [] as string[], repliesToLose: 0 };
  let mark = 0n;
  const ranges: { readonly first: bigint; readonly last: bigint }[] = [];
  await bus.consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, async (messages) => {
    if (!connection.isBooking) return messages.map(() => 'again' as const);
    for (const message of messages) {
      const event = usageCodec.decode(message.payload);
      usage.push(event);
      ranges.push({ first: BigInt(event.firstSeq), last: BigInt(event.lastSeq) });
      for (let before = -1n; before < mark; ) {
        before = mark;
        for (const { first, last } of ranges) if (first <= mark + 1n && last > mark) mark = last;
      }
    }
    return messages.map(() => 'done' as const);
  });
  const client = (answer: (method: string, request: never) => object): RpcClient => ({
    unary: async (method, request) => Promise.resolve(answer(method, request as never) as never),
    stream: () => ({ cancel: () => undefined, pause: () => undefined, resume: () => undefined }),
    isConnected: () => true,
    close: () => Promise.resolve(),
  });
  const ends = { told: [] as DeregisterRequest[], reports: 0, named: true, isTaken: true };
  const billing = client((method, request) => {
    if (!connection.isBillingUp) throw new Fault('billing_unavailable', 'away');
    if (method === 'Deregister') {
      ends.told.push(request);
      return { ended: ends.isTaken };
    }
    ends.reports += 1;
    return { ledgerSeq: String(mark), reportId: ends.named ? `report ${ends.reports}` : '' };
  });
  const quota = client((method, request: { finished?: unknown[]; holds?: { requestId: string }[] }) => {
    if (method === 'Reregister') {
      told.push(request);
      if (store.repliesToLose > 0) {
        store.repliesToLose -= 1;
        throw new Fault('link_lost', 'the reply');
      }
      return {};
    }
    if (method === 'Finish') finished.push(...(request.finished ?? []));
    const named = (request.holds ?? []).map(({ requestId }) => requestId);
    alive.push(...named);
    return { epoch: store.epoch, unheldRequestIds: named.filter((requestId) => store.unheld.includes(requestId)) };
  });
  const restoreLedger = (): void => {
    mark = 0n;
    ranges.length = 0;
  };
  /** Recovers a journal as if no edge were left. */
  const recover = async (journal: OpenJournal): Promise<void> => {
    const recovered = journal.recover();
    await clock.advanceAsync(3_000);
    await recovered;
  };
  /** Start of a request that was admitted `agoMs` ago. */
  const startOf = (requestId: string, agoMs = 0): AttemptStart => ({ ...start(requestId), periods: { day: 'd', week: 'w', month: 'm', plan: 'p', reservedAtMs: String(clock.nowMs() - agoMs) } });
  return { clock, directory, bus, usage, finished, alive, connection, ends, told, store, restoreLedger, recover, startOf, newDirectory, open: (at = directory, disk = localDisk(at)) => openJournal({ directory: at, disk, provider: 'sim', clock, randomBytes, log: silentLog, bus, quota, billing }) };
}

export const outcomesIn = (usage: readonly UsageRecorded__Output[]): string[] => usage.flatMap((event) => event.outcomes).map(({ requestId, outcome, toldByEdge }) => `${requestId} ${outcome} ${String(toldByEdge)}`);
const price = '1000000';
export const start = (requestId: string): AttemptStart => ({
  requestId, attempt: 1, retryOf: [], accountId: 'acct', keyId: 'key', model: 'm', provider: 'sim', endpointId: 'e',
  card: { id: 'c', inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: '0' },
  referenceCard: null, periods: { day: 'd', week: 'w', month: 'm', plan: 'p', reservedAtMs: '1' }, byok: false, routedFrom: '', decisionId: '', startedAtMs: 1, promptTokens: 7,
});
export const frame = (kind: FrameKind, seq: number, payload: Buffer): Buffer => {
  const frames = new FrameBuffer();
  frames.add(kind, seq, payload);
  return frames.bytes();
};
export const END: AttemptEnd = { tokens: { ...NO_TOKENS, inputUncached: 3, outputText: 4 }, costNanoUsd: asNanoUsd(7n), savingsNanoUsd: asNanoUsd(0n), source: 'PROVIDER', flags: [], status: 200, failure: 'FAILURE_CLASS_UNSPECIFIED', ttftMs: 1, totalMs: 2, finishReason: 'stop', endedAtMs: 2 };
/** A round that called tools. */
export const CALLS_END: AttemptEnd = { ...END, finishReason: 'tool_calls', callsOnly: true };
export const FIRST_ROUND: EarlierRounds = { earlierNanoUsd: 0n, earlierTokens: 0n };
/** A second round, after a first that ended with `END`. */
export const SECOND_ROUND: EarlierRounds = { earlierNanoUsd: 7n, earlierTokens: 7n };
