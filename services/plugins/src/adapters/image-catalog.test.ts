import { expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readImageModels } from './image-catalog.js';

const entry = { id: 'maker/one', provider: 'openai', provider_model_id: 'one', pricing: { image_per_unit: { '1024x1024': 0.000000001 }, input: 5 }, data_policy: {} };

function read(models: unknown) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-images-'));
  try {
    const file = join(directory, 'models.json');
    writeFileSync(file, typeof models === 'string' ? models : JSON.stringify({ models }));
    return readImageModels(file, ['openai']);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('the shipped catalog holds the default size of every model, and the simulator that needs nothing', () => {
  const models = readImageModels(undefined, []);
  expect(models.filter(({ unitNanoUsd }) => !unitNanoUsd.has('1024x1024'))).toEqual([]);
  expect(models.find(({ id }) => id === 'simulator/painter')).toMatchObject({ provider: 'simulator', zdrByDefault: true, trainsOnData: false });
  expect(models.find(({ id }) => id === 'openai/gpt-image-1')?.unitNanoUsd.get('1024x1536')).toBe(63_360_000n);
});

test('prices are whole nano-dollars, and what nobody has said of a policy counts as the worse', () => {
  expect(read([entry])).toMatchObject([{ unitNanoUsd: new Map([['1024x1024', 1n]]), promptPrice: 5_000_000_000n, trainsOnData: true, zdrByDefault: false, zdrByAgreement: false, hasAgreement: true }]);
});

test.each([
  ['no JSON', '{', 'is no JSON'],
  ['a price finer than a nano-dollar', [{ ...entry, pricing: { image_per_unit: { '1x1': 1e-10 } } }], 'models.0.pricing.image_per_unit.1x1: expected US dollars'],
  ['a negative price', [{ ...entry, pricing: { image_per_unit: { '1x1': -1 } } }], 'models.0.pricing.image_per_unit.1x1'],
  ['a model without a size', [{ ...entry, pricing: { image_per_unit: {} } }], 'models.0.pricing.image_per_unit: expected at least one size'],
  ['a size that is none', [{ ...entry, pricing: { image_per_unit: { big: 1 } } }], 'models.0.pricing.image_per_unit'],
  ['an id that stands twice', [entry, entry], 'models: expected each id once'],
])('%s is refused, naming where', (_what, models, message) => {
  expect(() => read(models)).toThrow(`IMAGE_MODELS_FILE: ${message}`);
});
