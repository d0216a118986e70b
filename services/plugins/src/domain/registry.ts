/** The installed plugins: their order, their fees, their manifests. */
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import { readOptions } from '@signalbox/plugin-kit/options';
import type { AnyPlugin, DataPolicy } from '@signalbox/plugin-kit/plugin';

/** Order in which plugins run (docs/plugins.md). Plugins whose ranks have the same integer part run concurrently. */
const RANKS: Readonly<Record<string, number>> = { memory: 1, 'pdf-reader': 2, 'web-search': 3, gutenberg: 3.1, 'code-exec': 4, 'image-gen': 4.1 };
const RANK_OF_OTHERS = 5;

export interface Registry {
  find(id: string): AnyPlugin | undefined;
  rank(id: string): number;
  /** Nano-USD per completed run, regardless of costs outside. */
  feeNanoUsd(id: string): bigint;
  manifests(): readonly ManifestRecord[];
}

/** `fees` by plugin id, in nano-USD per run; a plugin without an entry is free. */
export function createRegistry(plugins: readonly AnyPlugin[], fees: ReadonlyMap<string, bigint>): Registry {
  const byId = new Map(plugins.map((plugin) => [plugin.manifest.id, plugin]));
  const rank = (id: string): number => RANKS[id] ?? RANK_OF_OTHERS;
  const feeNanoUsd = (id: string): bigint => fees.get(id) ?? 0n;
  const records = [...byId.values()]
    .sort((a, b) => rank(a.manifest.id) - rank(b.manifest.id))
    .map((plugin): ManifestRecord => {
      const { id, name, description, isPaid, kind, options, models } = plugin.manifest;
      return {
        id, name, description, paid: isPaid, kind, fee_nano_usd: String(feeNanoUsd(id)),
        zdr: allowsByDefault(plugin, { zdr: true, denyTraining: false }),
        data_collection_deny: allowsByDefault(plugin, { zdr: false, denyTraining: true }),
        options,
        ...(models === undefined ? {} : { models }),
      };
    });
  return { find: (id) => byId.get(id), rank, feeNanoUsd, manifests: () => records };
}

/** Whether the policy permits the plugin with its default options. */
function allowsByDefault(plugin: AnyPlugin, policy: DataPolicy): boolean {
  const read = readOptions(plugin.manifest.options, {});
  return read.ok && plugin.allows(policy, read.values);
}
