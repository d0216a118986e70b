/** How a running service reacts to a new day and to changed files. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@signalbox/bus/memory';
import type { CatalogReloadRequest, CatalogReloadResponse__Output, CatalogShowResponse__Output, DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { createRpcClient } from '@signalbox/rpc/client';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { oneTurn } from '@signalbox/testkit/until';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { composeRouting } from './compose.js';
import { loadRoutingConfig } from './config.js';

const SHIPPED = fileURLToPath(new URL('../catalog', import.meta.url));
/** A second before the day as of which claude-sonnet-4 is shut down. */
const EVE_MS = Date.parse('2026-05-13T23:59:59Z');
const DAY_MS = 86_400_000;
const MINI = { model: 'openai/gpt-4o-mini', promptTokens: 10 };
const SONNET = { model: 'anthropic/claude-sonnet-4', promptTokens: 10 };

interface Replica {
  readonly warnings: readonly string[];
  decide(request: DecideRequest): Promise<DecideResponse__Output>;
  reload(request?: CatalogReloadRequest): Promise<CatalogReloadResponse__Output>;
  snapshotId(): Promise<string>;
  stop(): Promise<void>;
}

let directory: string;
let clock: FakeClock;
let bus: MemoryBus;
const running: Replica[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-catalog-'));
  for (const name of ['providers.json', 'models.json']) copyFileSync(join(SHIPPED, name), join(directory, name));
  clock = createFakeClock(EVE_MS);
  bus = createMemoryBus({ clock });
});
afterEach(async () => {
  for (const replica of running.splice(0)) await replica.stop();
  rmSync(directory, { recursive: true, force: true });
});

function edit(from: string, to: string): void {
  const path = join(directory, 'models.json');
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(from);
  writeFileSync(path, text.replace(from, to));
}
const PRICES = '"input":0.15,"output":0.6,"cached_input":0.075';
const DEARER = '"input":0.31,"output":0.6,"cached_input":0.075';

async function start(environment: Record<string, string> = {}): Promise<Replica> {
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
  const service: Service = composeRouting(loadRoutingConfig({ PROVIDERS: 'openai,anthropic', CATALOG_DIR: directory, ...environment }), { clock, randomBytes, log, withProcessMetrics: false }, { bus });
  await service.start();
  const client: RpcClient = createRpcClient({ area: 'routing', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 5_000 });
  const replica: Replica = {
    warnings,
    decide: (request) => client.unary('Decide', request),
    reload: (request = {}) => client.unary('CatalogReload', request),
    snapshotId: async () => (await client.unary<object, CatalogShowResponse__Output>('CatalogShow', {})).snapshotId,
    stop: async () => {
      await client.close();
      await service.stop();
    },
  };
  running.push(replica);
  return replica;
}

const priceOf = async (replica: Replica): Promise<string | undefined> => (await replica.decide(MINI)).attempts[0]?.card?.inputUncached;

test('a model is shut down as its day begins, without a reload', async () => {
  const replica = await start();
  const before = await replica.snapshotId();
  expect((await replica.decide(SONNET)).attempts[0]).toMatchObject({ provider: 'anthropic', sunsetDate: '2026-05-14' });
  await clock.advanceAsync(1_000);
  while ((await replica.snapshotId()) === before) await oneTurn();
  const refused = await replica.decide(SONNET);
  expect(refused.refusal).toBe('MODEL_DEPRECATED');
  expect(refused.fallbackModels.length).toBeGreaterThan(0);
  expect(replica.warnings).toEqual([]);
});

test('a clock that is set over midnight is noticed within the hour', async () => {
  const replica = await start();
  const before = await replica.snapshotId();
  clock.jumpWall(-3 * 3_600_000);
  await clock.advanceAsync(1_000);
  expect(await replica.snapshotId()).toBe(before);
  clock.jumpWall(4 * 3_600_000);
  await clock.advanceAsync(3_600_000);
  while ((await replica.snapshotId()) === before) await oneTurn();
  expect((await replica.decide(SONNET)).refusal).toBe('MODEL_DEPRECATED');
});

test('a new day takes no file into use that nobody asked for, and says so once', async () => {
  const replica = await start();
  const before = await replica.snapshotId();
  edit(PRICES, '"input":0.16,"output":0.6,"cached_input":0.075');
  await clock.advanceAsync(1_000);
  while (replica.warnings.length === 0) await oneTurn();
  for (let hour = 0; hour < 3; hour += 1) await clock.advanceAsync(3_600_000);
  expect(await replica.snapshotId()).toBe(before);
  expect(await priceOf(replica)).toBe('150000000');
  expect(replica.warnings).toEqual([expect.stringMatching(/^A new day began, but the files of the catalog differ/)]);
  expect(await replica.reload()).toMatchObject({ loaded: true, warnings: [] });
  expect(await priceOf(replica)).toBe('160000000');
  expect((await replica.decide(SONNET)).refusal).toBe('MODEL_DEPRECATED');
  await clock.advanceAsync(DAY_MS);
  expect(replica.warnings).toHaveLength(1);
});

test('a price that moved by more than a factor of two waits for an operator’s word, which all replicas hear', async () => {
  const [asked, other] = [await start(), await start()];
  const before = await asked.snapshotId();
  edit(PRICES, DEARER);
  expect(await asked.reload()).toEqual({ loaded: false, snapshotId: before, problems: [], warnings: ['openai:openai/gpt-4o-mini: the price of input moved from $0.15 to $0.31 per 1M tokens.'] });
  while (other.warnings.length === 0) await oneTurn();
  for (const replica of [asked, other]) expect(await priceOf(replica)).toBe('150000000');
  expect(await asked.reload({ takesPrices: true })).toMatchObject({ loaded: true, problems: [], warnings: [expect.stringContaining('input')] });
  while ((await priceOf(other)) !== '310000000') await oneTurn();
  expect(await priceOf(asked)).toBe('310000000');
});

test('nothing is taken where one of catalog and artefact has a mistake', async () => {
  const artefact = join(directory, 'quality.bin');
  copyFileSync(fileURLToPath(new URL('../quality/quality.bin', import.meta.url)), artefact);
  const replica = await start({ QUALITY_FILE: artefact });
  const before = await replica.snapshotId();
  edit(PRICES, '"input":0.16,"output":0.6,"cached_input":0.075');
  writeFileSync(artefact, '{');
  const answer = await replica.reload();
  expect(answer).toMatchObject({ loaded: false, snapshotId: before });
  expect(answer.problems).toHaveLength(1);
  expect(await priceOf(replica)).toBe('150000000');
});

test.each([
  ['output', '"output":0.6', '"output":0.2', 'the price of output moved from $0.6 to $0.2 per 1M tokens.'],
  ['cached input', '"cached_input":0.075', '"cached_input":0.01', 'the price of cached input moved from $0.075 to $0.01 per 1M tokens.'],
  ['a request', '"request":null', '"request":0.005', 'the price of a request moved from $0 to $0.005.'],
  ['long prompts', '"long_context_tiers":[]', '"long_context_tiers":[{"min_context_tokens":100000,"input":1.5,"output":0.6}]', 'from 100001 tokens of prompt on the price of input moved from $0.15 to $1.5 per 1M tokens.'],
])('the price of %s is looked at too', async (_what, from, to, warning) => {
  const row = /\{"id":"openai:openai\/gpt-4o-mini".*?"long_context_tiers":\[\]/.exec(readFileSync(join(directory, 'models.json'), 'utf8'))?.[0] ?? '';
  const replica = await start();
  edit(row, row.replace(from, to));
  expect((await replica.reload()).warnings).toContain(`openai:openai/gpt-4o-mini: ${warning}`);
});
