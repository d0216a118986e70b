import { expect, test } from '@jest/globals';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import type { DataPolicy } from '@signalbox/plugin-kit/plugin';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { ImageModel } from '../../domain/image-models.js';
import type { ImageOrder, ImagesMade } from '../../domain/ports.js';
import { createRegistry } from '../../domain/registry.js';
import { createRunner, type ToolPayer } from '../../domain/run.js';
import { createImageGen } from './plugin.js';

const PICTURE = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1');
const OPERATOR: ToolPayer = { byok: false, ownCredentials: [] };
const { signal } = new AbortController();

const modelOf = (provider: string, over: Partial<ImageModel> = {}): ImageModel => ({
  id: `${provider}/model`, provider, providerModelId: 'model', parameters: Buffer.from('{}'), unitNanoUsd: new Map([['1024x1024', asNanoUsd(40_000_001n)]]), promptPrice: asPrice(5_000_000_000n),
  trainsOnData: false, zdrByDefault: false, zdrByAgreement: true, hasAgreement: false, ...over,
});
const KEEPS = modelOf('openai');
const KEEPS_NOTHING = modelOf('simulator', { zdrByDefault: true, unitNanoUsd: new Map([['1024x1024', asNanoUsd(7n)], ['256x256', asNanoUsd(3n)]]), promptPrice: asPrice(0n) });
const TRAINS = modelOf('cheap', { trainsOnData: true });

function setUp(models: readonly ImageModel[] = [KEEPS, KEEPS_NOTHING], made: (order: ImageOrder) => Promise<ImagesMade> = ({ count }) => Promise.resolve({ kind: 'made', images: Array.from({ length: count }, () => PICTURE), promptTokens: undefined })) {
  const orders: ImageOrder[] = [];
  const maker = { make: (order: ImageOrder) => (orders.push(order), made(order)) };
  const registry = createRegistry([createImageGen({ models, maker })], new Map([['image-gen', 100n]]));
  const runner = createRunner({ registry, clock: createFakeClock(), onStage: () => undefined });
  const asked = (options: Readonly<Record<string, unknown>> = {}, policy: DataPolicy = { zdr: false, denyTraining: false }) => ({ requestId: 'r', accountId: 'a', user: '', wishes: [{ id: 'image-gen', options }], messages: [{ role: 'user', content: 'paint' }], policy });
  return {
    orders, registry,
    prepare: (options = {}, policy?: DataPolicy) => runner.prepare(asked(options, policy), signal),
    call: (text = '{"prompt":"A red fox"}', options = {}, payer = OPERATOR, policy?: DataPolicy) => runner.runTool(asked(options, policy), { name: 'generate_image', arguments: text }, payer, signal),
  };
}

test('offers one function, with the most that one call may cost and give; nothing runs before the model', async () => {
  const { prepare, orders } = setUp();
  // A description of 8,192 bytes has at most 8,192 tokens.
  expect(await prepare({ n: 2 })).toMatchObject({ kind: 'prepared', messages: undefined, stages: [], tools: [{ name: 'generate_image', feeNanoUsdMax: 2n * 40_000_001n + 40_960_000n + 100n, imagesMax: 2 }] });
  expect(orders).toEqual([]);
});

test('an image is made, given to the client and not to the model, and charged by the catalog and the fee of the plugin', async () => {
  const { call, orders } = setUp(undefined, () => Promise.resolve({ kind: 'made', images: [PICTURE], promptTokens: 11 }));
  const { content, stage, images } = await call();
  expect(orders).toMatchObject([{ model: { id: 'openai/model' }, prompt: 'A red fox', size: '1024x1024', count: 1, byokHandle: undefined }]);
  expect(images).toEqual([{ mediaType: 'image/png', data: PICTURE }]);
  expect(JSON.parse(content)).toMatchObject({ status: 'completed', images: 1, size: '1024x1024' });
  expect(content).not.toContain(PICTURE.toString('base64'));
  expect(stage).toMatchObject({ status: 'completed', feeNanoUsd: 40_000_001n + 55_000n + 100n, detail: { model: 'openai/model', images: 1 } });
});

test('images are charged as they came, never more than were asked for, and told tokens never beyond what was held', async () => {
  const cost = async (images: readonly Buffer[], promptTokens: number | undefined, options: object): Promise<bigint> => (await setUp(undefined, () => Promise.resolve({ kind: 'made', images, promptTokens })).call(undefined, options)).stage.feeNanoUsd;
  expect(await cost([PICTURE, PICTURE, PICTURE], 0, { n: 2 })).toBe(2n * 40_000_001n + 100n);
  expect(await cost([PICTURE, Buffer.from('<svg/>')], 0, { n: 2 })).toBe(40_000_001n + 100n);
  expect(await cost([PICTURE], 1_000_000, {})).toBe(40_000_001n + 40_960_000n + 100n);
  // Nine bytes count as three tokens if the provider reports none.
  expect(await cost([PICTURE], undefined, {})).toBe(40_000_001n + 15_000n + 100n);
});

test.each([
  ['a model that is not installed', { model: 'openai/other' }, 'model'],
  ['a size that no model has', { size: '1x1' }, 'size'],
  ['a size that the chosen model has not', { model: 'openai/model', size: '256x256' }, 'size'],
  ['more than four at once', { n: 5 }, 'n'],
  ['an unknown option', { quality: 'high' }, 'quality'],
])('%s is refused by name', async (_what, options, name) => {
  expect(await setUp().prepare(options)).toMatchObject({ kind: 'problem', problem: { kind: 'invalid', param: `plugin_options.image-gen.${name}` } });
});

test('a policy is met by a model that meets it, or refused; an agreement of the operator counts for the operator', async () => {
  const zdr = { zdr: true, denyTraining: false };
  const deny = { zdr: false, denyTraining: true };
  const { call, orders } = setUp();
  await call(undefined, {}, OPERATOR, zdr);
  expect(orders.map(({ model }) => model.id)).toEqual(['simulator/model']);
  expect(await setUp([KEEPS]).prepare({}, zdr)).toMatchObject({ problem: { kind: 'conflict' } });
  expect(await setUp().prepare({ model: 'openai/model' }, zdr)).toMatchObject({ problem: { kind: 'conflict' } });
  expect(await setUp([{ ...KEEPS, hasAgreement: true }]).prepare({}, zdr)).toMatchObject({ kind: 'prepared' });
  expect(await setUp([TRAINS]).prepare({}, deny)).toMatchObject({ problem: { kind: 'conflict' } });
  expect(setUp([KEEPS]).registry.manifests()).toMatchObject([{ zdr: false, data_collection_deny: true, paid: true, kind: 'tool' }]);
});

test('a provider that the account or the request leaves out makes no image, whatever else it could', async () => {
  const only = (...lists: readonly (readonly string[])[]) => ({ zdr: false, denyTraining: false, providers: { allowed: lists, denied: [] } });
  const without = (...denied: readonly string[]) => ({ zdr: false, denyTraining: false, providers: { allowed: [], denied } });
  const { call, orders } = setUp();
  for (const policy of [without('openai'), only(['simulator', 'cheap']), only(['openai', 'simulator'], ['simulator'])]) await call(undefined, {}, OPERATOR, policy);
  expect(orders.map(({ model }) => model.id)).toEqual(Array(3).fill('simulator/model'));
  for (const policy of [without('openai', 'simulator'), only(['anthropic']), only(['openai'], ['simulator'])]) expect(await setUp().prepare({}, policy)).toMatchObject({ problem: { kind: 'conflict' } });
  expect(await setUp().prepare({ model: 'openai/model' }, without('openai'))).toMatchObject({ problem: { kind: 'conflict' } });
  const own: ToolPayer = { byok: true, ownCredentials: [{ provider: 'openai', handle: 'cred_1', zdr: false, ownAddress: false }] };
  expect(await call(undefined, {}, own, without('openai'))).toMatchObject({ stage: { status: 'failed', detail: { reason: 'no_model' } } });
  expect(orders).toHaveLength(3);
});

const listed = (over: Partial<NonNullable<DataPolicy['models']>>): DataPolicy => ({ zdr: false, denyTraining: false, models: { allowedByName: [], allowedByChoice: [], denied: [], ...over } });
const allowing = (...names: readonly string[]): DataPolicy => listed({ allowedByName: names, allowedByChoice: names });

test.each<[string, DataPolicy, object, string]>([
  ['the first is denied by its name', listed({ denied: ['OpenAI/Model'] }), {}, 'simulator/model'],
  ['the first is denied by a prefix', listed({ denied: ['openai/*'] }), {}, 'simulator/model'],
  ['only the second is allowed', allowing('auto', 'gpt-4o', 'simulator/model'), {}, 'simulator/model'],
  ['a maker is allowed, and the model named', allowing('simulator/*'), { model: 'simulator/model' }, 'simulator/model'],
  ['the choice is left to us, and to nobody else', listed({ allowedByName: ['auto'], allowedByChoice: ['auto'], denied: ['openai/model'] }), {}, 'simulator/model'],
])('lists of models bind the model of an image: %s', async (_what, policy, options, model) => {
  const { prepare, call, orders } = setUp();
  expect(await prepare(options, policy)).toMatchObject({ kind: 'prepared', tools: [{ name: 'generate_image' }] });
  await call(undefined, options, OPERATOR, policy);
  expect(orders).toMatchObject([{ model: { id: model } }]);
});

test.each<[string, DataPolicy, object]>([
  ['all are denied by a bare name', listed({ denied: ['model'] }), {}],
  ['none is among those allowed', allowing('openai/gpt-4o', 'auto'), {}],
  ['a bare name is no single model', allowing('model'), {}],
  ['the one that is asked for is denied', listed({ denied: ['openai/model'] }), { model: 'openai/model' }],
  ['the one that is asked for is not among those allowed', allowing('simulator/model'), { model: 'openai/model', n: 2 }],
  ['the only one of the size is denied', listed({ denied: ['simulator/*'] }), { size: '256x256' }],
  ['auto alone allows none by its name', listed({ allowedByName: ['auto'], allowedByChoice: ['auto'] }), { model: 'openai/model' }],
  ['account and key have none in common but for us to choose', listed({ allowedByName: ['-'], allowedByChoice: ['openai/model'] }), { model: 'openai/model' }],
])('an image that lists of models leave to none is refused before anything runs, and says why: %s', async (_what, policy, options) => {
  const { prepare, call, orders } = setUp();
  expect(await prepare(options, policy)).toMatchObject({ problem: { kind: 'conflict', param: 'plugins', message: expect.stringMatching(/left out by: lists of models\.$/) } });
  // A call although the tool was not offered; and one on own credentials, to which the lists apply too.
  const own: ToolPayer = { byok: true, ownCredentials: [{ provider: 'openai', handle: 'cred_1', zdr: false, ownAddress: false }] };
  for (const payer of [OPERATOR, own]) expect(await call(undefined, options, payer, policy)).toMatchObject({ images: [], stage: { status: 'failed' } });
  expect(orders).toEqual([]);
});

test('a conflict names all that leaves none', async () => {
  const policy: DataPolicy = { ...listed({ denied: ['simulator/*'] }), zdr: true };
  expect(await setUp().prepare({}, policy)).toMatchObject({ problem: { message: "The plugin 'image-gen' as it is set up here cannot meet the policy of this request; left out by: lists of models, zdr." } });
});

test("what runs on the account's own credentials spends none of the operator's, and the policy is that credential's", async () => {
  const own = (zdr: boolean): ToolPayer => ({ byok: true, ownCredentials: [{ provider: 'openai', handle: 'cred_1', zdr, ownAddress: false }] });
  const { call, orders } = setUp([{ ...KEEPS, hasAgreement: true }, KEEPS_NOTHING]);
  await call(undefined, {}, own(false));
  expect(orders).toMatchObject([{ model: { id: 'openai/model' }, byokHandle: 'cred_1' }]);
  const policy = { zdr: true, denyTraining: false };
  expect(await call(undefined, {}, own(false), policy)).toMatchObject({ stage: { status: 'failed', feeNanoUsd: 0n, detail: { reason: 'no_model' } } });
  expect(await call(undefined, {}, { byok: true, ownCredentials: [] })).toMatchObject({ stage: { status: 'failed', detail: { reason: 'no_model' } } });
  expect(orders).toHaveLength(1);
  await call(undefined, {}, own(true), policy);
  expect(orders).toHaveLength(2);
});

test("what a provider promises says nothing of an address of the account's: its own word alone does", async () => {
  const at = (zdr: boolean): ToolPayer & { readonly byok: true } => ({ byok: true, ownCredentials: [{ provider: 'simulator', handle: 'cred_1', zdr, ownAddress: true }] });
  const { call, orders } = setUp([{ ...KEEPS_NOTHING, trainsOnData: true }, KEEPS_NOTHING]);
  for (const policy of [{ zdr: true, denyTraining: false }, { zdr: false, denyTraining: true }]) {
    expect(await call(undefined, {}, at(false), policy)).toMatchObject({ stage: { status: 'failed', feeNanoUsd: 0n, detail: { reason: 'no_model' } } });
    expect(orders).toEqual([]);
    await call(undefined, {}, at(true), policy);
    expect(orders.splice(0)).toMatchObject([{ model: { trainsOnData: true }, byokHandle: 'cred_1' }]);
  }
  // The operator's credential is used, at the provider's own address.
  await call(undefined, {}, { ...at(false), byok: false }, { zdr: true, denyTraining: true });
  expect(orders).toMatchObject([{ model: { trainsOnData: false }, byokHandle: undefined }]);
});

test("a policy that a credential of the account's own meets is no conflict: on that the image is made, and on the operator's not", async () => {
  const ownCredentials = [{ provider: 'openai', handle: 'cred_1', zdr: true, ownAddress: false }];
  const policy: DataPolicy = { zdr: true, denyTraining: false, ownCredentials };
  const { prepare, call, orders } = setUp([KEEPS]);
  expect(await prepare({}, policy)).toMatchObject({ kind: 'prepared', tools: [{ name: 'generate_image', feeNanoUsdMax: 40_000_001n + 40_960_000n + 100n }] });
  expect(await call(undefined, {}, { byok: false, ownCredentials }, policy)).toMatchObject({ content: 'Error: no image model may serve this request.', stage: { status: 'failed', feeNanoUsd: 0n, detail: { reason: 'no_model' } } });
  expect(orders).toEqual([]);
  expect(await call(undefined, {}, { byok: true, ownCredentials }, policy)).toMatchObject({ stage: { status: 'completed' } });
  expect(orders).toMatchObject([{ model: { id: 'openai/model' }, byokHandle: 'cred_1' }]);
  for (const other of [[{ ...ownCredentials[0], zdr: false }], [{ ...ownCredentials[0], provider: 'cheap' }], []] as NonNullable<DataPolicy['ownCredentials']>[]) {
    expect(await prepare({}, { ...policy, ownCredentials: other })).toMatchObject({ problem: { kind: 'conflict' } });
  }
});

test.each([
  ['broken arguments', '{"prompt":', 'Error: the arguments are no JSON object.'],
  ['no description', '{}', "Error: the argument 'prompt' must describe the image."],
  ['a description that is no text', '{"prompt":{}}', "Error: the argument 'prompt' must describe the image."],
  ['a description that is too long', JSON.stringify({ prompt: 'ä'.repeat(5_000) }), 'Error: the description may have 8192 bytes.'],
])('%s is told to the model, and nobody is asked', async (_what, text, expected) => {
  const { call, orders } = setUp();
  expect(await call(text)).toMatchObject({ content: expected, images: [], stage: { status: 'failed', feeNanoUsd: 0n } });
  expect(orders).toEqual([]);
});

test.each([
  ['a refusal by policy', { kind: 'failed', failureClass: 'CONTENT_POLICY', publicMessage: 'Rejected by the safety system.' }, 'Error: the image was refused: Rejected by the safety system.'],
  ['a provider that is down', { kind: 'failed', failureClass: 'PROVIDER_ERROR', publicMessage: '' }, 'Error: the image could not be made (provider_error).'],
  ['a file that is no picture', { kind: 'made', images: [Buffer.from('<html>')], promptTokens: 3 }, 'Error: the image could not be made (unreadable).'],
] as const)('%s is told to the model and costs nothing', async (_what, made, expected) => {
  expect(await setUp(undefined, () => Promise.resolve(made)).call()).toMatchObject({ content: expected, images: [], stage: { status: 'failed', feeNanoUsd: 0n } });
});
