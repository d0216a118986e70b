/** Settings of sandbox. */
import { loadConfig, logLevelField, portField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

const schema = z.object({
  /** Address the doors listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** 0 = any free port. */
  GRPC_PORT: portField(0),
  /** Of /livez, /readyz and /metrics; 0 = any free port. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Programs that run at once: each may take a core and 128 MB for 5 s. */
  SANDBOX_CONCURRENCY: wholeNumberField(1, 64, 2),
  /** The network of programs: `tried` = taken away by the kernel where it can, with a warning where not; `required` = or it does not start; `outside` = the container has none, as under compose and Kubernetes. */
  SANDBOX_NETWORK_FENCE: z.enum(['tried', 'required', 'outside']).default('tried'),
});

export type SandboxConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError with one line a problem. */
export function loadSandboxConfig(environment: Environment): SandboxConfig {
  return loadConfig(schema, environment);
}
