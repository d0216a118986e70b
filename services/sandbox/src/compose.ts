/** Composition root of sandbox. */
import { createRpcServer } from '@signalbox/rpc/server';
import { createHealthServer } from '@signalbox/runtime/health';
import { ConfigError } from '@signalbox/runtime/config';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import type { Log } from '@signalbox/runtime/log';
import { createProcesses } from './adapters/processes.js';
import type { SandboxConfig } from './config.js';
import type { ProgramProcesses } from './domain/ports.js';
import { createProgramQueue } from './domain/queue.js';
import { createSandboxMetrics } from './metrics.js';
import { createHandlers } from './server.js';

const STOP_GRACE_MS = 7_000;

/** Reports a missing network fence; throws a ConfigError if the operator requires it. */
function lackOfFence({ SANDBOX_NETWORK_FENCE: wanted }: SandboxConfig, log: Log): void {
  if (wanted === 'required') throw new ConfigError('SANDBOX_NETWORK_FENCE: required, and this system gives a process no network namespace of its own (unshare --user --net): allow user namespaces, or run sandbox in a container without a network and say `outside`.');
  if (wanted === 'tried') log.warn('Programs of code-exec run without a network namespace of their own: the interpreter alone keeps them from the network (docs/plugins.md, code-exec).');
}

/** `processes` is for tests. */
export function composeSandbox(config: SandboxConfig, { clock, log, withProcessMetrics, doors, tracer, tls }: Surroundings, options: { readonly processes?: ProgramProcesses } = {}): Service {
  const metrics = createSandboxMetrics(withProcessMetrics);
  const processes = options.processes ?? createProcesses({ clock });
  metrics.fenced(processes.isNetworkFenced);
  const queue = createProgramQueue({ processes, clock, concurrency: config.SANDBOX_CONCURRENCY });
  const server = createRpcServer({ area: 'sandbox', handlers: createHandlers({ queue, clock, metrics }), host: config.HOST, port: config.GRPC_PORT, clock, log, doors, tracer, tls });
  let isStarted = false;
  const health = createHealthServer({ host: config.HOST, port: config.METRICS_PORT, metrics: metrics.metrics, ready: () => isStarted });
  const ports: Record<string, number> = {};
  return {
    name: 'sandbox',
    start: async () => {
      if (!processes.isNetworkFenced) lackOfFence(config, log);
      ports['grpc'] = await server.start();
      ports['metrics'] = await health.start();
      isStarted = true;
    },
    stop: async () => {
      isStarted = false;
      await server.stop(STOP_GRACE_MS);
      queue.stop();
      await health.stop();
    },
    ready: () => isStarted,
    ports: () => ({ ...ports }),
  };
}
