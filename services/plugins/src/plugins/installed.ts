/** All plugins of the gateway, one line each. */
import type { AnyPlugin } from '@signalbox/plugin-kit/plugin';
import { ConfigError } from '@signalbox/runtime/config';
import type { PluginsConfig } from '../config.js';
import type { BookCatalog, PassageIndex, Sandbox, SearchBackend } from '../domain/ports.js';
import { createCodeExec } from './code-exec/plugin.js';
import { createImageGen, type ImageGenNeeds } from './image-gen/plugin.js';
import { createGutenberg } from './gutenberg/plugin.js';
import { createMemory, type MemoryNeeds } from './memory/plugin.js';
import { createPdfReader, type PdfReaderNeeds } from './pdf-reader/plugin.js';
import { createWebSearch, type SearchGuarantee } from './web-search/plugin.js';

export interface PluginNeeds {
  readonly search: SearchBackend;
  readonly searchGuarantee: SearchGuarantee;
  readonly index: PassageIndex;
  readonly catalog: BookCatalog | undefined;
  readonly memory: MemoryNeeds;
  readonly pdf: PdfReaderNeeds;
  /** Absent = code-exec is not installed. */
  readonly sandbox?: Sandbox | undefined;
  /** Without models image-gen is not installed. */
  readonly images: ImageGenNeeds;
}

export function installedPlugins(needs: PluginNeeds): readonly AnyPlugin[] {
  return [
    createWebSearch({ backend: needs.search, guarantee: needs.searchGuarantee }),
    createGutenberg({ index: needs.index, catalog: needs.catalog }),
    createPdfReader(needs.pdf),
    createMemory(needs.memory),
    ...(needs.sandbox === undefined ? [] : [createCodeExec({ sandbox: needs.sandbox })]),
    ...(needs.images.models.length === 0 ? [] : [createImageGen(needs.images)]),
  ];
}

/** Not installed if the service that they need is missing; settings may name them all the same. */
const NEED_A_NEIGHBOUR = ['code-exec', 'image-gen'];

/**
 * Removes the plugins in PLUGINS_OFF. Throws a ConfigError if a setting names an unknown plugin: its fee would never be
 * charged, or the plugin that was meant to be off would run.
 */
export function withoutThoseOff(plugins: readonly AnyPlugin[], { PLUGINS_OFF: off, PLUGIN_FEES: fees }: Pick<PluginsConfig, 'PLUGINS_OFF' | 'PLUGIN_FEES'>): readonly AnyPlugin[] {
  const known = [...new Set([...plugins.map(({ manifest }) => manifest.id), ...NEED_A_NEIGHBOUR])];
  const problems = Object.entries({ PLUGINS_OFF: off, PLUGIN_FEES: [...fees.keys()] }).flatMap(([variable, ids]) => {
    const unknown = ids.filter((id) => !known.includes(id));
    return unknown.length === 0 ? [] : [`${variable}: there is no plugin ${unknown.join(', ')}; expected ids of ${known.join(', ')}`];
  });
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return plugins.filter(({ manifest }) => !off.includes(manifest.id));
}
