import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Catalog } from '@signalbox/router-core/catalog';
import { createQualityFile } from './adapters/quality-file.js';
import { createConversations } from './domain/conversations.js';
import { createQualityHolder, type QualityHolder } from './domain/quality-holder.js';

const SHIPPED = fileURLToPath(new URL('../quality/quality.bin', import.meta.url));
const CATALOG: Catalog = { id: 'cat_test', models: [], endpoints: [], names: new Map() };

let directory: string;
let path: string;
let holder: QualityHolder;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'quality-'));
  path = join(directory, 'quality.bin');
  await copyFile(SHIPPED, path);
  holder = createQualityHolder(createQualityFile(path, 'QUALITY_FILE'));
});

afterEach(() => rm(directory, { recursive: true }));

describe('the quality artefact', () => {
  test('that ships is sound and within 8 MB', async () => {
    expect(await createQualityHolder(createQualityFile('', 'QUALITY_FILE')).reload()).toEqual([]);
    expect((await readFile(SHIPPED)).length).toBeLessThanOrEqual(8_000_000);
  });

  test.each<[string, (good: Buffer) => Buffer]>([
    ['blank', () => Buffer.alloc(0)],
    ['half-written', (good) => good.subarray(0, good.length >> 1)],
    ['one byte short', (good) => good.subarray(0, -1)],
    ['changed', (good) => Buffer.concat([good.subarray(0, 5_000), Buffer.from([(good[5_000] ?? 0) ^ 255]), good.subarray(5_001)])],
    ['larger than allowed', () => Buffer.alloc(8_000_001)],
  ])('is refused when %s, and the running one stays', async (_how, spoil) => {
    expect(await holder.reload()).toEqual([]);
    const running = holder.for(CATALOG);
    await writeFile(path, spoil(await readFile(SHIPPED)));
    expect(await holder.check()).toHaveLength(1);
    expect(await holder.reload()).toHaveLength(1);
    expect(holder.for(CATALOG)).toBe(running);
    await rm(path);
    expect(await holder.reload()).toHaveLength(1);
    expect(holder.for(CATALOG)).toBe(running);
  });

  test('is bound anew to a new catalog', async () => {
    await holder.reload();
    expect(holder.for({ ...CATALOG })).not.toBe(holder.for(CATALOG));
  });
});

describe('the home of a conversation', () => {
  test('is forgotten with the prompt cache, and belongs to one account', () => {
    let nowMs = 0;
    const conversations = createConversations({ nowMs: () => 0, monotonicMs: () => nowMs, setTimer: () => ({ cancel: () => undefined }) });
    conversations.note('a', 's', 'endpoint', 500);
    expect(conversations.find('a', 's')).toEqual({ endpointId: 'endpoint', cachedTokens: 500 });
    expect(conversations.find('b', 's')).toBeUndefined();
    nowMs = 300_001;
    expect(conversations.find('a', 's')).toBeUndefined();
  });

  test('needs a session, and the oldest of many give way', () => {
    const conversations = createConversations({ nowMs: () => 0, monotonicMs: () => 0, setTimer: () => ({ cancel: () => undefined }) });
    conversations.note('a', '', 'endpoint', 1);
    expect(conversations.find('a', '')).toBeUndefined();
    for (let i = 0; i <= 20_000; i += 1) conversations.note('a', String(i), 'endpoint', 1);
    expect(conversations.find('a', '0')).toBeUndefined();
    expect(conversations.find('a', '1')).toBeDefined();
  });
});
