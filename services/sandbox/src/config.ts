/** Settings of sandbox. */
import { loadConfig, logLevelField, portField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

const schema = z.object({
  /** Address to listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** 0 = any free port. */
  GRPC_PORT: portField(0),
  /** Of /livez, /readyz and /metrics; 0 = any free port. */
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Most programs that run at once: each may use a core and 128 MB for 5 s. */
  SANDBOX_CONCURRENCY: wholeNumberField(1, 64, 2),
  /** How programs are kept off the network: `tried` = the kernel removes it if it can, with a warning if not; `required` = the service does not start if it cannot; `outside` = the container has no network, as with compose and Kubernetes. */
  SANDBOX_NETWORK_FENCE: z.enum(['tried', 'required', 'outside']).default('tried'),
});

export type SandboxConfig = Readonly<z.infer<typeof schema>>;

/** Throws a ConfigError with one line per problem. */
export function loadSandboxConfig(environment: Environment): SandboxConfig {
  return loadConfig(schema, environment);
}
