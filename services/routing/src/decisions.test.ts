import { describe, expect, test } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import type { Clock } from '@signalbox/kernel/clock';
import type { Snapshot } from '@signalbox/router-core/catalog';
import { decide, type Plan, type Refusal } from '@signalbox/router-core/decide';
import { EXPLORATION_COST_SHARE, EXPLORATION_SHARE } from '@signalbox/router-core/exploration';
import type { QualityArtefact } from '@signalbox/router-core/quality-artefact';
import type { DecisionRecord } from '@signalbox/router-core/record';
import { plainRequest, type RouteRequest } from '@signalbox/router-core/request';
import { createCatalogFiles } from './adapters/catalog/files.js';
import { createQualityFile } from './adapters/quality-file.js';
import { createDecisions, type Decided, type Decisions, type RecordedDecision } from './domain/decisions.js';
import { createExplorationBudget, type ExplorationBudget } from './domain/exploration-budget.js';
import { createQualityHolder } from './domain/quality-holder.js';
import type { QualitySource } from './domain/ports.js';

const SHIPPED = fileURLToPath(new URL('../quality/quality.bin', import.meta.url));

interface HandClock extends Clock {
  advance(ms: number): void;
  /** Like `advance`, but fires only the first due timer. */
  turn(ms: number): void;
}

/** Fires all due timers, in the order in which they were set. */
function handClock(): HandClock {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly fire: () => void }[] = [];
  return {
    nowMs: () => 1_795_200_000_000 + nowMs,
    monotonicMs: () => nowMs,
    setTimer: (delayMs, fire) => {
      const timer = { atMs: nowMs + delayMs, fire };
      timers.push(timer);
      return { cancel: () => { timers = timers.filter((each) => each !== timer); } };
    },
    turn: (ms) => {
      nowMs += ms;
      const fired = timers.find(({ atMs }) => atMs <= nowMs);
      timers = timers.filter((each) => each !== fired);
      fired?.fire();
    },
    advance: (ms) => {
      nowMs += ms;
      for (let due = timers.find(({ atMs }) => atMs <= nowMs); due !== undefined; due = timers.find(({ atMs }) => atMs <= nowMs)) {
        const fired = due;
        timers = timers.filter((each) => each !== fired);
        fired.fire();
      }
    },
  };
}

const snapshots = new Map<string, Promise<Snapshot>>();

function snapshotOf(providers: readonly string[]): Promise<Snapshot> {
  const key = providers.join(',');
  const read = snapshots.get(key) ?? readSnapshot(providers);
  snapshots.set(key, read);
  return read;
}

async function readSnapshot(providers: readonly string[]): Promise<Snapshot> {
  const { loaded } = await createCatalogFiles({ directory: '', withSimulator: false, terms: { managedProviders: new Set(providers), byokProviders: new Set(), zdrAgreements: new Set(), offeredModels: new Map() } }).read('2026-11-21');
  if (loaded === undefined) throw new Error('no catalog');
  const quality = createQualityHolder(createQualityFile(SHIPPED, 'QUALITY_FILE'));
  expect(await quality.reload()).toEqual([]);
  return { catalog: loaded.catalog, live: new Map(), quality: quality.for(loaded.catalog) };
}

function decidedOn(snapshot: Snapshot, over: Partial<Decided> = {}, request: Partial<RouteRequest> = {}): Decided {
  const asked: RouteRequest = { ...plainRequest('auto'), promptTokens: 20, promptText: 'a secret prompt', ...request };
  return { id: 'dec_1', requestId: 'chatcmpl-1', accountId: 'acct_1', atMs: 5, viaAuto: asked.model === 'auto', request: { ...asked, promptText: '' }, snapshot, seed: 7, result: decide(asked, snapshot, 7), ...over };
}

/** Notes a decision as the service does. */
function noteIn(decisions: Decisions, decided: Decided): void {
  if (decisions.takes(decided.request, decided.viaAuto)) decisions.note(decided);
}

describe('the recorder of decisions', () => {
  const make = (perSecondMax = 50): { clock: HandClock; handed: RecordedDecision[]; batches: number[]; skipped: () => number; decisions: Decisions } => {
    const clock = handClock();
    const handed: RecordedDecision[] = [];
    const batches: number[] = [];
    let skipped = 0;
    return { clock, handed, batches, skipped: () => skipped, decisions: createDecisions({ clock, perSecondMax, handOn: (records) => {
      handed.push(...records);
      batches.push(records.length);
    }, onSkipped: () => { skipped += 1; } }) };
  };

  test('hands on a record a moment later, without the prompt', async () => {
    const { clock, handed, decisions } = make();
    noteIn(decisions, decidedOn(await snapshotOf(['openai'])));
    expect(handed).toEqual([]);
    clock.advance(1_000);
    expect(handed).toHaveLength(1);
    const record = JSON.parse(handed[0]?.record.toString() ?? '') as DecisionRecord;
    expect(record.attempts.length).toBeGreaterThan(0);
    expect(handed[0]?.record.toString()).not.toContain('secret');
    decisions.flush();
    expect(handed).toHaveLength(1);
  });

  test('hands on what a second brought in one message, made in parts of the loop', async () => {
    const { clock, batches, decisions } = make();
    const snapshot = await snapshotOf(['openai']);
    for (let i = 0; i < 20; i += 1) {
      noteIn(decisions, decidedOn(snapshot, { id: `dec_${String(i)}`, requestId: `chatcmpl-${String(i)}` }));
      clock.advance(49);
    }
    expect(batches).toEqual([]);
    clock.advance(20);
    expect(batches).toEqual([20]);
  });

  test('hands on also what was made before a question took the rest', async () => {
    const { handed, clock, decisions } = make();
    const snapshot = await snapshotOf(['openai']);
    for (let i = 0; i < 9; i += 1) noteIn(decisions, decidedOn(snapshot, { id: `dec_${String(i)}`, requestId: `chatcmpl-${String(i)}` }));
    clock.turn(1_000);
    expect(handed).toHaveLength(0);
    expect(decisions.find({ accountId: 'acct_1', id: 'dec_8', requestId: '' })?.id).toBe('dec_8');
    decisions.flush();
    expect(handed.map(({ id }) => id).sort()).toEqual(Array.from({ length: 9 }, (_, i) => `dec_${String(i)}`));
  });

  test('keeps no memory beyond the bytes of a record', async () => {
    const { clock, handed, decisions } = make();
    noteIn(decisions, decidedOn(await snapshotOf(['openai'])));
    clock.advance(1_000);
    const [recorded] = handed;
    expect(recorded?.record.buffer.byteLength).toBe(recorded?.record.length);
  });

  test('finds a decision at once, by its id or its request, for its account alone', async () => {
    const { clock, handed, decisions } = make();
    noteIn(decisions, decidedOn(await snapshotOf(['openai'])));
    expect(decisions.find({ accountId: 'acct_2', id: 'dec_1', requestId: '' })).toBeUndefined();
    expect(decisions.find({ accountId: 'acct_1', id: 'dec_1', requestId: '' })?.requestId).toBe('chatcmpl-1');
    expect(handed).toHaveLength(1);
    clock.advance(1_000);
    expect(handed).toHaveLength(1);
    expect(decisions.find({ accountId: 'acct_1', id: '', requestId: 'chatcmpl-1' })?.id).toBe('dec_1');
    expect(decisions.find({ accountId: 'acct_2', id: 'dec_1', requestId: '' })).toBeUndefined();
    expect(decisions.find({ accountId: 'acct_2', id: '', requestId: 'chatcmpl-1' })).toBeUndefined();
  });

  test.each([{ zdr: true }, { denyDataCollection: true }])('keeps nothing of a request with %j', async (wish) => {
    const { clock, handed, decisions } = make();
    noteIn(decisions, decidedOn(await snapshotOf(['openai', 'mistral', 'ollama']), {}, wish));
    clock.advance(1_000);
    expect(handed).toEqual([]);
    expect(decisions.find({ accountId: 'acct_1', id: 'dec_1', requestId: '' })).toBeUndefined();
  });

  test('is bounded: a burst, then the rate; pinned models have a fifth of it for themselves', async () => {
    const { clock, handed, decisions, skipped } = make(5);
    const snapshot = await snapshotOf(['openai']);
    for (let i = 0; i < 100; i += 1) noteIn(decisions, decidedOn(snapshot, { id: `dec_${String(i)}` }));
    expect(skipped()).toBe(50);
    for (let i = 0; i < 100; i += 1) noteIn(decisions, decidedOn(snapshot, { id: `dec_p${String(i)}` }, { model: 'openai/gpt-4o-mini' }));
    expect(skipped()).toBe(140);
    clock.advance(2_000);
    expect(handed).toHaveLength(60);
    for (let i = 0; i < 100; i += 1) noteIn(decisions, decidedOn(snapshot, { id: `dec_q${String(i)}` }));
    decisions.flush();
    expect(handed).toHaveLength(70);
    expect(decisions.find({ accountId: 'acct_1', id: 'dec_99', requestId: '' })).toBeUndefined();
  });

  test('remembers the latest, and no more than a megabyte of them', async () => {
    const { handed, decisions } = make(1_000);
    const snapshot = await snapshotOf(['openai', 'mistral', 'groq']);
    for (let i = 0; i < 900; i += 1) noteIn(decisions, decidedOn(snapshot, { id: `dec_${String(i)}` }));
    decisions.flush();
    const bytes = handed.reduce((sum, { record }) => sum + record.length, 0);
    expect(bytes).toBeGreaterThan(2 * 1024 * 1024);
    const found = handed.filter(({ id }) => decisions.find({ accountId: 'acct_1', id, requestId: '' }) !== undefined);
    expect(found).toEqual(handed.slice(-found.length));
    const foundBytes = found.reduce((sum, { record }) => sum + record.length, 0);
    expect(foundBytes).toBeLessThanOrEqual(1024 * 1024);
    expect(foundBytes).toBeGreaterThan(1024 * 1024 - 2 * (bytes / handed.length));
  });

  test('of no rate at all records nothing', async () => {
    const { clock, handed, decisions } = make(0);
    noteIn(decisions, decidedOn(await snapshotOf(['openai'])));
    clock.advance(10_000);
    expect(handed).toEqual([]);
  });
});

describe('exploration', () => {
  const serve = (budget: ExplorationBudget, seed: number, result: Plan | Refusal): void => {
    budget.note(`dec_${String(seed)}`, 'acct_1', result);
    budget.hearAnswer(`dec_${String(seed)}`);
  };

  test('takes at most 2 % of an account’s requests and 1 % of its cost, and does take place', async () => {
    const snapshot = await snapshotOf(['openai', 'anthropic', 'mistral', 'groq', 'together']);
    const budget = createExplorationBudget();
    const base = { ...plainRequest('auto'), promptTokens: 200, promptText: 'Tell me a story about a fox.', mode: 'economy' as const };
    let [spent, extra, explored] = [0, 0, 0];
    for (let seed = 0; seed < 4_000; seed += 1) {
      const result = decide({ ...base, explorationRoomNanoUsd: budget.roomOf('acct_1') }, snapshot, seed);
      budget.note(`dec_${String(seed)}`, 'acct_1', result);
      budget.hearAnswer(`dec_${String(seed)}`);
      if (result.kind !== 'plan' || result.auto === undefined) throw new Error('no plan');
      const { groups, peers, reason, floor } = result.auto;
      spent += groups[0]?.cost ?? 0;
      if (reason !== 'explored') continue;
      explored += 1;
      extra += (groups[0]?.cost ?? 0) - (peers[0]?.cost ?? 0);
      expect(groups[0]?.quality).toBeGreaterThanOrEqual(floor);
      expect(explored).toBeLessThanOrEqual((seed + 1) * EXPLORATION_SHARE);
      expect(extra).toBeLessThanOrEqual(spent * EXPLORATION_COST_SHARE);
    }
    expect(explored).toBeGreaterThan(0);
  });

  test('does not count what `auto` chose as the fallback of a named model: the account has not spent it', async () => {
    const snapshot = await snapshotOf(['openai', 'anthropic']);
    const budget = createExplorationBudget();
    const asked = { ...plainRequest('openai/gpt-4o-mini'), models: ['auto'], promptTokens: 200 };
    for (let seed = 0; seed < 100; seed += 1) serve(budget, seed, decide(asked, snapshot, seed));
    expect(budget.roomOf('acct_1')).toBeUndefined();
    for (let seed = 0; seed < 100; seed += 1) serve(budget, seed, decide({ ...asked, model: 'auto', models: [] }, snapshot, seed));
    expect(budget.roomOf('acct_1')).toBeGreaterThan(0);
  });

  test('has no room from requests that were refused or failed, and counts an answer once', async () => {
    const snapshot = await snapshotOf(['openai', 'anthropic']);
    const result = decide({ ...plainRequest('auto'), promptTokens: 200 }, snapshot, 1);
    const cost = result.kind === 'plan' ? (result.auto?.groups[0]?.cost ?? 0) : 0;
    const budget = createExplorationBudget();
    for (let at = 0; at < 100; at += 1) budget.note(`dec_${String(at)}`, 'acct_1', result);
    expect(budget.roomOf('acct_1')).toBeUndefined();
    // 49 are answered: the fiftieth may be the one of which 2 % explores.
    for (let at = 0; at < 48; at += 1) budget.hearAnswer(`dec_${String(at)}`);
    for (const heard of ['dec_0', 'dec_of_another_replica', '']) budget.hearAnswer(heard);
    expect(budget.roomOf('acct_1')).toBeUndefined();
    budget.hearAnswer('dec_48');
    expect(budget.roomOf('acct_1')).toBeCloseTo(49 * cost * EXPLORATION_COST_SHARE, 3);
  });

  test('waits for the answers of the last 10,000 decisions at least, and of 20,000 at most', async () => {
    const snapshot = await snapshotOf(['openai', 'anthropic']);
    const result = decide({ ...plainRequest('auto'), promptTokens: 200 }, snapshot, 1);
    const cost = result.kind === 'plan' ? (result.auto?.groups[0]?.cost ?? 0) : 0;
    const budget = createExplorationBudget();
    const roomAfter = (from: number, to: number): number => {
      for (let at = from; at < to; at += 1) budget.hearAnswer(`dec_${String(at)}`);
      return budget.roomOf('acct_1') ?? 0;
    };
    for (let at = 0; at < 35_000; at += 1) budget.note(`dec_${String(at)}`, 'acct_1', result);
    expect(roomAfter(0, 15_000)).toBe(0);
    // Noted and heard twice: still one answer.
    budget.note('dec_29999', 'acct_1', result);
    expect(roomAfter(25_000, 35_000)).toBeCloseTo(10_000 * cost * EXPLORATION_COST_SHARE, 0);
    expect(roomAfter(29_999, 30_000)).toBeCloseTo(10_000 * cost * EXPLORATION_COST_SHARE, 0);
  });

  test('has no room for an account nobody knows yet', () => {
    const budget = createExplorationBudget();
    expect([budget.roomOf('acct_new'), budget.roomOf('')]).toEqual([undefined, undefined]);
  });
});

describe('an artefact on trial', () => {
  async function shipped(): Promise<QualityArtefact> {
    const read = await createQualityFile(SHIPPED, 'QUALITY_FILE').read();
    if (read.kind === 'refused') throw new Error(read.problem);
    return read.artefact;
  }
  const changed = (artefact: QualityArtefact, id: string, apgr: number): QualityArtefact => ({ ...artefact, id, header: { ...artefact.header, metrics: Object.fromEntries(Object.entries(artefact.header.metrics).map(([set, figures]) => [set, { ...figures, apgr: (figures['apgr'] ?? 0) + apgr }])) } });
  const sourceOf = (current: () => QualityArtefact): QualitySource => ({ read: () => Promise.resolve({ kind: 'artefact', artefact: current() } as Awaited<ReturnType<QualitySource['read']>>) });
  const CATALOG = { id: 'cat_test', models: [], endpoints: [], names: new Map<string, number>() };

  test('serves its share of conversations, each always the same way, until it is rolled back', async () => {
    const stable = await shipped();
    const holder = createQualityHolder(sourceOf(() => stable), { source: sourceOf(() => changed(stable, 'qua_canary', 0.01)), share: 0.2 });
    expect(await holder.reload()).toEqual([]);
    expect(holder.state()).toMatchObject({ artefactId: stable.id, canaryId: 'qua_canary', canaryShare: 0.2 });
    const idsOf = (): (string | undefined)[] => Array.from({ length: 2_000 }, (_, i) => holder.for(CATALOG, `conversation ${String(i)}`)?.id);
    const ids = idsOf();
    expect(idsOf()).toEqual(ids);
    const share = ids.filter((id) => id === 'qua_canary').length / ids.length;
    expect(Math.abs(share - 0.2)).toBeLessThan(0.04);
    expect(holder.rollback()).toMatchObject({ artefactId: stable.id, canaryId: undefined });
    expect(new Set(idsOf())).toEqual(new Set([stable.id]));
  });

  test('is refused when its validation says worse, and the one in force stays', async () => {
    const stable = await shipped();
    const holder = createQualityHolder(sourceOf(() => stable), { source: sourceOf(() => changed(stable, 'qua_worse', -0.02)), share: 1 });
    expect((await holder.reload())[0]).toMatch(/^The canary is worse on /);
    expect(holder.state()).toMatchObject({ artefactId: stable.id, canaryId: undefined });
    expect(holder.for(CATALOG, 'any')?.id).toBe(stable.id);
  });

  test('a rollback brings the artefact before the present one back', async () => {
    const first = await shipped();
    let present = first;
    const holder = createQualityHolder(sourceOf(() => present));
    await holder.reload();
    present = changed(first, 'qua_next', 0);
    await holder.reload();
    expect(holder.state()).toMatchObject({ artefactId: 'qua_next', previousId: first.id });
    expect(holder.rollback()).toMatchObject({ artefactId: first.id, previousId: undefined });
    expect(holder.rollback()).toMatchObject({ artefactId: first.id });
  });
});
