/** Settings of edge. */
import { addressesField, loadConfig, logLevelField, optionalWholeNumberField, portField, secretField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

/** `provider=host:port` list; a provider may stand several times (replicas). */
const workersField = () =>
  z.string().transform((text, context) => {
    const workers = new Map<string, string[]>();
    for (const part of text.split(',').map((entry) => entry.trim()).filter((entry) => entry !== '')) {
      const match = /^([a-z0-9-]+)=(\S+:\d{1,5})$/.exec(part);
      if (match === null) {
        context.addIssue({ code: 'custom', message: 'expected provider=host:port, several separated by commas' });
        return z.NEVER;
      }
      const [, provider = '', address = ''] = match;
      workers.set(provider, [...(workers.get(provider) ?? []), address]);
    }
    return workers as ReadonlyMap<string, readonly string[]>;
  });

const schema = z.object({
  /** Address the public door listens on; loopback unless the operator opens it. */
  HOST: z.string().default('127.0.0.1'),
  PORT: portField(8080),
  /** Operator's door; never to be exposed publicly. */
  ADMIN_PORT: portField(8081),
  /** Sent in a header: what a header loses or refuses would shut the operator out. */
  ADMIN_TOKEN: secretField().refine((token) => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token.unwrap()), 'must be one line of printable ASCII, without a line break or a blank at its ends'),
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Which of the two published contracts this deployment speaks; an account may override it. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Digests of keys are made under it; the same value as accounts has. */
  KEY_PEPPER: secretField(),
  ACCOUNTS_ADDRS: addressesField(),
  ROUTING_ADDRS: addressesField(),
  QUOTA_ADDRS: addressesField(),
  BILLING_ADDRS: addressesField(),
  WORKERS: workersField(),
  /** Absent = no plugins here. */
  PLUGINS_ADDRS: addressesField().optional(),
  /** Longest wait for the plugins that run before the model. */
  PLUGINS_DEADLINE_MS: wholeNumberField(100, 120_000, 20_000),
  NATS_URL: z.string().optional(),
  /** 20 MiB: prompts of 300 kB and images of several MB are ordinary (contract, section 7). */
  BODY_BYTES_MAX: wholeNumberField(1_024, 256 * 1_024 * 1_024, 20 * 1_024 * 1_024),
  /** Requests in work, and as many again whose body is not whole yet: what comes beyond is shed with 503; never below 1,000 (contract, section 1). One account among others has four in five of them at most, half of those that are not whole. */
  IN_FLIGHT_MAX: wholeNumberField(1_000, 100_000, 4_000),
  /** Silence before a comment keeps intermediaries from cutting a stream (contract, section 5). */
  HEARTBEAT_MS: wholeNumberField(100, 60_000, 10_000),
  /** Longest silence of quota while an admission waits, twice, not counting what edge itself was held up: 150 ms bound what a frozen one costs. One that only has much to do is waited for up to 5 s. */
  QUOTA_DEADLINE_MS: wholeNumberField(20, 10_000, 150),
  /** Edges that share the accounts: while quota is away each gives its part of an account's rates. */
  EDGE_REPLICAS: wholeNumberField(1, 1_000, 1),
  /** Length of month and plan periods, for tests; absent = calendar months. */
  BILLING_PERIOD_SECONDS: optionalWholeNumberField(1, 31_536_000),
  /** How long SIGTERM waits for running streams, and then for workers that have not heard what became of an attempt (2 s at least). */
  DRAIN_MS: wholeNumberField(0, 600_000, 30_000),
  /** Folder of the built dashboard; without it none is served. */
  DASHBOARD_DIR: z.string().min(1).optional(),
  /** Share of chat completions, in thousandths, that leave a line at level `info`: id, account, status, duration, attempts, model and provider. */
  ACCESS_LOG_PER_MILLE: wholeNumberField(0, 1_000, 0),
}).refine(({ PORT, ADMIN_PORT }) => PORT === 0 || PORT !== ADMIN_PORT, { path: ['ADMIN_PORT'], error: 'must be another port than PORT has' });

export type EdgeConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError naming every wrong or missing variable. */
export function loadEdgeConfig(environment: Environment): EdgeConfig {
  return loadConfig(schema, environment);
}
