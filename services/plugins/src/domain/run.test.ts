import { describe, expect, test } from '@jest/globals';
import { PluginFailure, PluginRefusal, type AnyPlugin, type Plugin } from '@signalbox/plugin-kit/plugin';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createRegistry } from './registry.js';
import { createRunner, type Asked, type PrepareResult } from './run.js';

const OPTIONS = { size: { type: 'integer', description: '', default: 3, min: 1, max: 5 } } as const;
type Options = typeof OPTIONS;

function pluginOf(id: string, over: Partial<Plugin<Options>> = {}): Plugin<Options> {
  return {
    manifest: { id, name: id, description: '', isPaid: false, kind: 'retrieval', timeoutMs: 1_000, options: OPTIONS },
    allows: () => true,
    prepare: ({ options }) => Promise.resolve({ apply: (conversation) => conversation.addSystemBlock(`${id} ${options.size}`), detail: { size: options.size } }),
    ...over,
  };
}

function world(plugins: readonly AnyPlugin[], fees: Readonly<Record<string, bigint>> = {}) {
  const clock = createFakeClock();
  const runner = createRunner({ registry: createRegistry(plugins, new Map(Object.entries(fees))), clock, onStage: () => undefined });
  const asked = (over: Partial<Asked> = {}): Asked => ({
    requestId: 'r', accountId: 'a', user: '', wishes: plugins.map(({ manifest }) => ({ id: manifest.id, options: {} })), messages: [{ role: 'user', content: 'hello' }], policy: { zdr: false, denyTraining: false }, ...over,
  });
  return { clock, runner, asked, prepare: (over: Partial<Asked> = {}, signal = new AbortController().signal) => runner.prepare(asked(over), signal) };
}

const prepared = (result: PrepareResult): Extract<PrepareResult, { kind: 'prepared' }> => {
  if (result.kind !== 'prepared') throw new Error(`A problem: ${result.problem.message}`);
  return result;
};

describe('before the model', () => {
  test('plugins run in their fixed order, whatever the order in the request, and add each block once', async () => {
    const { prepare } = world(['gutenberg', 'web-search', 'memory', 'pdf-reader'].map((id) => pluginOf(id)));
    const { messages, stages } = prepared(await prepare());
    expect(messages).toEqual([...['memory', 'pdf-reader', 'web-search', 'gutenberg'].map((id) => ({ role: 'system', content: `${id} 3` })), { role: 'user', content: 'hello' }]);
    expect(stages.map(({ name, status }) => `${name} ${status}`)).toEqual(['memory-read completed', 'pdf-reader completed', 'web-search completed', 'gutenberg completed']);
  });

  test('nothing runs when one of them is absent, has a wrong option or breaks the policy', async () => {
    let ran = 0;
    const counting = pluginOf('memory', { prepare: () => Promise.reject(new Error(String((ran += 1)))) });
    const strict = pluginOf('web-search', { allows: ({ zdr }) => !zdr });
    const { prepare } = world([counting, strict]);
    const wishes = [{ id: 'memory', options: {} }];
    expect(await prepare({ wishes: [...wishes, { id: 'gutenberg', options: {} }] })).toMatchObject({ problem: { kind: 'unavailable', plugin: 'gutenberg' } });
    expect(await prepare({ wishes: [...wishes, { id: 'web-search', options: { size: 6 } }] })).toMatchObject({ problem: { kind: 'invalid', param: 'plugin_options.web-search.size' } });
    expect(await prepare({ wishes: [...wishes, { id: 'web-search', options: { sise: 1 } }] })).toMatchObject({ problem: { kind: 'invalid', param: 'plugin_options.web-search.sise' } });
    expect(await prepare({ policy: { zdr: true, denyTraining: false } })).toMatchObject({ problem: { kind: 'conflict', plugin: 'web-search' } });
    expect(ran).toBe(0);
  });

  test('a plugin that fails is a failed stage without a fee; the others are applied', async () => {
    const { prepare } = world([pluginOf('web-search', { prepare: () => Promise.reject(new PluginFailure('backend_unreachable')) }), pluginOf('gutenberg')], { 'web-search': 5n, gutenberg: 7n });
    const { stages, messages } = prepared(await prepare());
    expect(stages.map(({ plugin, status, feeNanoUsd }) => [plugin, status, feeNanoUsd])).toEqual(expect.arrayContaining([['web-search', 'failed', 0n], ['gutenberg', 'completed', 7n]]));
    expect(stages.find(({ plugin }) => plugin === 'web-search')?.detail).toEqual({ reason: 'backend_unreachable' });
    expect(messages).toHaveLength(2);
  });

  test('a plugin that had nothing to do is a completed stage without a fee; one that looked and found nothing did its work', async () => {
    const nothing = { apply: () => undefined, detail: { files: 0 } };
    const { prepare } = world([pluginOf('pdf-reader', { prepare: () => Promise.resolve({ ...nothing, isIdle: true }) }), pluginOf('web-search', { prepare: () => Promise.resolve(nothing) })], { 'pdf-reader': 5n, 'web-search': 7n });
    expect(prepared(await prepare()).stages).toMatchObject([
      { plugin: 'pdf-reader', status: 'completed', feeNanoUsd: 0n, detail: { files: 0 } },
      { plugin: 'web-search', status: 'completed', feeNanoUsd: 7n, detail: { files: 0 } },
    ]);
  });

  test('a plugin that does not end is left behind at its time: aborted, and nothing of it is applied later', async () => {
    let aborted = false;
    const endless = pluginOf('web-search', { prepare: ({ signal }) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))) });
    const { prepare, clock } = world([endless]);
    const running = prepare();
    await Promise.resolve();
    clock.advance(1_000);
    const { stages, messages } = prepared(await running);
    expect([stages[0]?.detail['reason'], aborted, messages]).toEqual(['timeout', true, undefined]);
  });

  test('a caller that leaves stops what runs', async () => {
    const { prepare } = world([pluginOf('web-search', { prepare: () => new Promise(() => undefined) })]);
    const left = new AbortController();
    const running = prepare({}, left.signal);
    left.abort();
    expect(prepared(await running).stages[0]?.detail).toEqual({ reason: 'cancelled' });
  });

  test('input that a plugin refuses is the problem of the whole request', async () => {
    const { prepare } = world([pluginOf('pdf-reader', { prepare: () => Promise.reject(new PluginRefusal('messages.[0].content.[1].file', 'The file is encrypted.')) }), pluginOf('web-search')]);
    expect(await prepare()).toEqual({ kind: 'problem', problem: { kind: 'invalid', plugin: 'pdf-reader', param: 'messages.[0].content.[1].file', message: 'The file is encrypted.' } });
  });
});

test('what observes is told in advance and runs after the answer, under the checks of before', async () => {
  const seen: string[] = [];
  const observing = pluginOf('memory', { observes: (options) => options.size === 3, observe: ({ conversation }) => Promise.resolve({ heard: seen.push(conversation.lastUserText()) }) });
  const { runner, asked, prepare } = world([observing]);
  expect(prepared(await prepare())).toMatchObject({ observes: true, stages: [{ name: 'memory-read' }, { name: 'memory-write', status: 'scheduled' }] });
  expect(prepared(await prepare({ wishes: [{ id: 'memory', options: { size: 1 } }] })).observes).toBe(false);
  expect(await runner.observe(asked(), new AbortController().signal)).toMatchObject([{ name: 'memory-write', status: 'completed', detail: { heard: 1 } }]);
  expect(seen).toEqual(['hello']);
});
