/** Plugins over RPC, with the list of installed plugins kept here. */
import type { ManifestsResponse__Output, ObserveRequest, PrepareRequest, PrepareResponse__Output, RunToolRequest, RunToolResponse__Output } from '@signalbox/contracts/plugins';
import type { Clock } from '@signalbox/kernel/clock';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import type { RpcClient } from '@signalbox/rpc/call';
import type { PluginsPort } from '../domain/ports.js';

/** The list of installed plugins is refreshed after this long, in the background. */
const MANIFESTS_FRESH_MS = 60_000;
const MANIFESTS_DEADLINE_MS = 1_000;
const OBSERVE_DEADLINE_MS = 10_000;
/** Longer than any tool may run: the plugins service reports a timeout before that. */
const TOOL_DEADLINE_MS = 150_000;

/** The list of installed plugins outlives an outage of the service, so that requests are validated as before meanwhile. */
export function createPluginsClient(client: RpcClient, clock: Clock, deadlineMs: number): PluginsPort {
  let known: ReadonlyMap<string, ManifestRecord> | undefined;
  let knownAtMs = 0;
  let asking: Promise<ReadonlyMap<string, ManifestRecord> | undefined> | undefined;

  const ask = async (): Promise<ReadonlyMap<string, ManifestRecord> | undefined> => {
    try {
      const { manifests } = await client.unary<object, ManifestsResponse__Output>('Manifests', {}, { deadlineMs: MANIFESTS_DEADLINE_MS });
      known = new Map((JSON.parse(Buffer.from(manifests).toString('utf8')) as readonly ManifestRecord[]).map((manifest) => [manifest.id, manifest]));
      knownAtMs = clock.monotonicMs();
    } catch {
      // The next request asks again.
    }
    return known;
  };
  const refresh = (): Promise<ReadonlyMap<string, ManifestRecord> | undefined> => {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };

  return {
    manifests: () => {
      if (known === undefined) return refresh();
      if (clock.monotonicMs() - knownAtMs >= MANIFESTS_FRESH_MS) void refresh();
      return Promise.resolve(known);
    },
    prepare: (request, signal) => client.unary<PrepareRequest, PrepareResponse__Output>('Prepare', request, { deadlineMs, requestId: request.requestId ?? '', signal }),
    runTool: (request, signal) => client.unary<RunToolRequest, RunToolResponse__Output>('RunTool', request, { deadlineMs: TOOL_DEADLINE_MS, requestId: request.requestId ?? '', signal }),
    observe: (request) => {
      client.unary<ObserveRequest, object>('Observe', request, { deadlineMs: OBSERVE_DEADLINE_MS, requestId: request.requestId ?? '' }).catch(() => undefined);
    },
  };
}
