import { expect, test } from '@jest/globals';
import type { AnyPlugin } from '@signalbox/plugin-kit/plugin';
import { loadPluginsConfig } from '../config.js';
import { withoutThoseOff } from './installed.js';

const plugin = (id: string): AnyPlugin => ({ manifest: { id, name: id, description: '', isPaid: false, kind: 'retrieval', timeoutMs: 1_000, options: {} }, allows: () => true });
const left = (settings: Readonly<Record<string, string>>): readonly string[] =>
  withoutThoseOff([plugin('memory'), plugin('today')], loadPluginsConfig({ DATABASE_URL: 'postgres://127.0.0.1/x', ...settings })).map(({ manifest }) => manifest.id);

test('a plugin is taken away by its id, a new one too, and one whose neighbour is missing as well', () => {
  expect(left({})).toEqual(['memory', 'today']);
  expect(left({ PLUGINS_OFF: 'today,code-exec', PLUGIN_FEES: 'memory=0.001,image-gen=0.01' })).toEqual(['memory']);
});

test.each([
  ['PLUGINS_OFF', 'memry'],
  // A typing error would make the plugin free.
  ['PLUGIN_FEES', 'memry=0.002'],
])('%s=%s names no plugin, and is refused', (variable, value) => {
  expect(() => left({ [variable]: value })).toThrow(`${variable}: there is no plugin memry; expected ids of memory, today, code-exec, image-gen`);
});
