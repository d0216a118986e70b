/** The plugins of this house: one line each. */
import type { AnyPlugin } from '@signalbox/plugin-kit/plugin';
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
  /** Absent: code-exec is not installed. */
  readonly sandbox?: Sandbox | undefined;
  /** Without a model image-gen is not installed. */
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
