// What every container is given, whoever runs it: ports, the time it takes to end, its command and what it always reads.
/** Where services answer each other. */
export const GRPC = 9100;
/** Where `/livez`, `/readyz` and `/metrics` are. */
export const METRICS = 9464;
/** Edge's public door. */
export const HTTP = 8080;
export const OTLP_HTTP = 4318;
export const STORE_PORTS = { postgres: 5432, redis: 6379, nats: 4222 };

/** Before SIGTERM: by then nobody is sent to the pod any more. */
export const PRE_STOP_SECONDS = 5;
/** How long streams may take to finish after SIGTERM. */
const DRAIN_SECONDS = 30;
/** Workers wait as long again for the usage of clients that left; all need some time to end. */
export const GRACE_SECONDS = PRE_STOP_SECONDS + 2 * DRAIN_SECONDS + 10;
/** Those with streams. */
const drains = ({ name, provider }) => name === 'edge' || provider !== undefined;

/** A credential that is a file: where it is mounted, with the name it has in the secret. */
export const KEY_FILE = { variable: 'GOOGLE_APPLICATION_CREDENTIALS', directory: '/credentials', name: 'service-account.json' };
export const hasKeyFile = ({ credentials }) => credentials.includes(KEY_FILE.variable);

/** Programs that nobody trusts run in sandbox: it reaches nothing, a collector neither. */
export const sendsTraces = ({ name }) => name !== 'sandbox';

export const command = ({ service }) => [`services/${service}/dist/main.js`];
export const migrateCommand = (row) => [...command(row), 'migrate'];
export const common = (row) => ({ HOST: '0.0.0.0', METRICS_PORT: String(METRICS), ...(row.name === 'edge' ? {} : { GRPC_PORT: String(GRPC) }), ...(drains(row) ? { DRAIN_MS: String(DRAIN_SECONDS * 1_000) } : {}) });
