/** Settings of edge. */
import { addressesField, isAddress, loadConfig, logLevelField, optionalWholeNumberField, portField, secretField, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { z } from 'zod';

/** `provider=host:port` list; a provider may occur several times (replicas). */
const workersField = () =>
  z.string().transform((text, context) => {
    const workers = new Map<string, string[]>();
    for (const part of text.split(',').map((entry) => entry.trim()).filter((entry) => entry !== '')) {
      const match = /^([a-z0-9-]+)=(\S+)$/.exec(part);
      if (match === null || !isAddress(match[2] ?? '')) {
        context.addIssue({ code: 'custom', message: 'expected provider=host:port, several separated by commas' });
        return z.NEVER;
      }
      const [, provider = '', address = ''] = match;
      workers.set(provider, [...(workers.get(provider) ?? []), address]);
    }
    return workers as ReadonlyMap<string, readonly string[]>;
  });

const schema = z.object({
  /** Address that the public port listens on; the default is loopback only. */
  HOST: z.string().default('127.0.0.1'),
  /** Public HTTP port. */
  PORT: portField(8080),
  /** Admin port; never expose it publicly. */
  ADMIN_PORT: portField(8081),
  /** Authenticates the operator at the admin port. Sent in a header, so it must be one line of printable ASCII. One of fewer than 16 characters is accepted with a warning, since the admin port listens on loopback only. */
  ADMIN_TOKEN: secretField().refine((token) => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token.unwrap()), 'must be one line of printable ASCII, without a line break or a blank at its ends'),
  METRICS_PORT: portField(0),
  LOG_LEVEL: logLevelField(),
  /** Which of the two published contracts this deployment speaks; the operator can set another one for an account. */
  CONTRACT_VARIANT: z.enum(['A', 'B']).default('A'),
  /** Key of the HMAC of API keys; the same value as accounts has. */
  KEY_PEPPER: secretField(),
  /** Addresses of the replicas of accounts, separated by commas. */
  ACCOUNTS_ADDRS: addressesField(),
  /** Addresses of the replicas of routing, separated by commas. */
  ROUTING_ADDRS: addressesField(),
  /** Addresses of the replicas of quota, separated by commas. */
  QUOTA_ADDRS: addressesField(),
  /** Addresses of the replicas of billing, separated by commas. */
  BILLING_ADDRS: addressesField(),
  /** Address of each provider's worker, separated by commas; several replicas as several entries. */
  WORKERS: workersField(),
  /** Absent = no plugins. */
  PLUGINS_ADDRS: addressesField().optional(),
  /** Longest wait for plugins that run before the model. */
  PLUGINS_DEADLINE_MS: wholeNumberField(100, 120_000, 20_000),
  NATS_URL: z.string().optional(),
  /** Largest request body. 20 MiB: prompts of 300 kB and images of several MB are common. A larger one gets 413. */
  BODY_BYTES_MAX: wholeNumberField(1_024, 256 * 1_024 * 1_024, 20 * 1_024 * 1_024),
  /** Most requests in progress, and as many again with incomplete bodies; more get 503. At least 1,000, the number that edge promises to serve at once. One account among several gets at most four fifths of the former and half of the latter. */
  IN_FLIGHT_MAX: wholeNumberField(1_000, 100_000, 4_000),
  /** A stream that is silent this long gets a comment, so that proxies do not cut it. */
  HEARTBEAT_MS: wholeNumberField(100, 60_000, 10_000),
  /** Half of the longest silence of quota that an admission waits for, not counting delays of edge itself: it bounds what a frozen quota costs. A busy quota is waited for up to 5 s. */
  QUOTA_DEADLINE_MS: wholeNumberField(20, 10_000, 150),
  /** Number of edges: while quota is away, each grants its share of an account's rates. */
  EDGE_REPLICAS: wholeNumberField(1, 1_000, 1),
  /** Length of month and plan periods, for tests; absent = calendar months. */
  BILLING_PERIOD_SECONDS: optionalWholeNumberField(1, 31_536_000),
  /** How long a stop (SIGTERM) waits for running streams, and then for workers that have not received the outcome of an attempt (at least 2 s). */
  DRAIN_MS: wholeNumberField(0, 600_000, 30_000),
  /** Folder of the built dashboard; absent = no dashboard. */
  DASHBOARD_DIR: z.string().min(1).optional(),
  /** Share of chat completions, in thousandths, that are logged at level `info`: id, account, status, duration, attempts, model and provider. */
  ACCESS_LOG_PER_MILLE: wholeNumberField(0, 1_000, 0),
}).refine(({ PORT, ADMIN_PORT }) => PORT === 0 || PORT !== ADMIN_PORT, { path: ['ADMIN_PORT'], error: 'must be another port than PORT has' })
  .refine(({ PORT, ADMIN_PORT, METRICS_PORT }) => METRICS_PORT === 0 || (METRICS_PORT !== PORT && METRICS_PORT !== ADMIN_PORT), { path: ['METRICS_PORT'], error: 'must be another port than PORT and ADMIN_PORT have' });

export type EdgeConfig = Readonly<z.infer<typeof schema>>;

const ADMIN_TOKEN_CHARS_MIN = 16;

/** Warnings about settings that are accepted but risky; one line each. */
export function warningsOf({ ADMIN_TOKEN }: Pick<EdgeConfig, 'ADMIN_TOKEN'>): readonly string[] {
  if (ADMIN_TOKEN.unwrap().length >= ADMIN_TOKEN_CHARS_MIN) return [];
  return [`ADMIN_TOKEN has fewer than ${ADMIN_TOKEN_CHARS_MIN} characters: whoever reaches the admin door on this host can guess it.`];
}

/** Throws ConfigError naming every wrong or missing variable. */
export function loadEdgeConfig(environment: Environment): EdgeConfig {
  return loadConfig(schema, environment);
}
