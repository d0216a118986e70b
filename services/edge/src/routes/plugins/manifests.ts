/** Reads the manifests of the installed plugins. */
import type { ManifestsResponse__Output } from '@signalbox/contracts/plugins';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import type { RpcClient } from '@signalbox/rpc/call';

const DEADLINE_MS = 5_000;

export async function readManifests(plugins: RpcClient): Promise<readonly ManifestRecord[]> {
  const { manifests } = await plugins.unary<object, ManifestsResponse__Output>('Manifests', {}, { deadlineMs: DEADLINE_MS });
  return JSON.parse(Buffer.from(manifests).toString('utf8')) as readonly ManifestRecord[];
}
