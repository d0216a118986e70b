// What all containers have in common on every platform: ports, time to stop, command and common settings.
/** Port for RPC between services. */
export const GRPC = 9100;
/** Port of `/livez`, `/readyz` and `/metrics`. */
export const METRICS = 9464;
/** Edge's public port. */
export const HTTP = 8080;
export const OTLP_HTTP = 4318;
export const STORE_PORTS = { postgres: 5432, redis: 6379, nats: 4222 };

/** Delay before SIGTERM, so that no new traffic is routed to the pod any more. */
export const PRE_STOP_SECONDS = 5;
/** How long streams may take to finish after SIGTERM. */
const DRAIN_SECONDS = 30;
/** Workers wait as long again for the usage of clients that left; 10 s more to exit. */
export const GRACE_SECONDS = PRE_STOP_SECONDS + 2 * DRAIN_SECONDS + 10;
/** Services that drain streams. */
const drains = ({ name, provider }) => name === 'edge' || provider !== undefined;

/** A credential that is a file: its mount folder, and its name in the secret. */
export const KEY_FILE = { variable: 'GOOGLE_APPLICATION_CREDENTIALS', directory: '/credentials', name: 'service-account.json' };
export const hasKeyFile = ({ credentials }) => credentials.includes(KEY_FILE.variable);

/** Sandbox runs untrusted programs and reaches nothing, so it sends no traces either. */
export const sendsTraces = ({ name }) => name !== 'sandbox';

export const command = ({ service }) => [`services/${service}/dist/main.js`];
export const migrateCommand = (row) => [...command(row), 'migrate'];
export const common = (row) => ({ HOST: '0.0.0.0', METRICS_PORT: String(METRICS), ...(row.name === 'edge' ? {} : { GRPC_PORT: String(GRPC) }), ...(drains(row) ? { DRAIN_MS: String(DRAIN_SECONDS * 1_000) } : {}) });
