// docker-compose.yml: everything on one machine, with its stores, Prometheus, Grafana and, optionally, traces.
import { createHash } from 'node:crypto';
import { command, common, GRACE_SECONDS, hasKeyFile, KEY_FILE, METRICS, migrateCommand, STORE_PORTS } from './containers.mjs';
import { NATS_USERS, natsPassword, REDIS_START } from './store-users.mjs';

/** Workers whose server is the operator's own and often runs on the same host as the containers. */
const NEAR_WORKERS = new Set(['worker-ollama', 'worker-vllm']);

const databaseUrl = (role) => `postgres://${role}:\${${role.toUpperCase()}_DB_PASSWORD:?}@postgres:${STORE_PORTS.postgres}/signalbox`;
const natsUrl = (user) => `nats://${user}:\${${natsPassword(user)}:?}@nats:${STORE_PORTS.nats}`;

const ownerPassword = (service) => `${service.toUpperCase()}_OWNER_DB_PASSWORD`;

const secretValues = (migrations) => ({
  accounts: { DATABASE_URL: databaseUrl('accounts'), NATS_URL: natsUrl('accounts') },
  billing: { DATABASE_URL: databaseUrl('billing'), NATS_URL: natsUrl('billing') },
  plugins: { DATABASE_URL: databaseUrl('plugins') },
  ...Object.fromEntries(migrations.map(({ of, secrets }) => [secrets.DATABASE_URL, { DATABASE_URL: databaseUrl(`${of}_owner`) }])),
  quota: { REDIS_URL: `redis://quota:\${QUOTA_REDIS_PASSWORD:?}@redis:${STORE_PORTS.redis}`, NATS_URL: natsUrl('quota') },
  routing: { NATS_URL: natsUrl('routing') },
  workers: { NATS_URL: natsUrl('workers') },
  edge: { NATS_URL: natsUrl('edge') },
  keys: { KEY_PEPPER: '${KEY_PEPPER:?}' },
  sealing: { SECRETS_KEY: '${SECRETS_KEY:?}' },
  admin: { ADMIN_TOKEN: '${ADMIN_TOKEN:?}' },
});
/** Defaults under compose; other settings have the service's own default. */
const SETTING_DEFAULTS = { RPC_TLS: 'off', CONTRACT_VARIANT: 'A', PROVIDERS: 'simulator', SIMULATOR: 'auto' };

/** True if it always runs; other workers run only if their profile is enabled. */
const alwaysRuns = ({ name, provider }) => provider === undefined || name === 'worker-sim';

function composeService(row, migrations) {
  const { name, env, secrets, settings, credentials, calls, stores, http, provider } = row;
  const isWorker = provider !== undefined;
  return {
    image: 'signalbox:${SIGNALBOX_VERSION:-local}',
    build: { context: '.', dockerfile: 'deploy/docker/Dockerfile' },
    command: command(row),
    ...(alwaysRuns(row) ? {} : { profiles: [provider] }),
    environment: {
      ...common(row),
      LOG_LEVEL: '${LOG_LEVEL:-info}',
      ...env,
      ...Object.fromEntries(settings.map((setting) => [setting, `\${${setting}:-${SETTING_DEFAULTS[setting] ?? ''}}`])),
      ...Object.fromEntries(Object.entries(secrets).map(([variable, secret]) => [variable, secretValues(migrations)[secret][variable]])),
      ...Object.fromEntries(credentials.map((variable) => [variable, `\${${variable}:-}`])),
      // The file of that name on the host is mounted here.
      ...(hasKeyFile(row) ? { [KEY_FILE.variable]: `\${${KEY_FILE.variable}:+${KEY_FILE.directory}/${KEY_FILE.name}}` } : {}),
    },
    depends_on: {
      ...Object.fromEntries([...stores, ...calls.filter((other) => !other.startsWith('worker-'))].map((other) => [other, { condition: 'service_healthy' }])),
      ...Object.fromEntries(migrations.filter(({ of }) => of === name).map((run) => [run.name, { condition: 'service_completed_successfully' }])),
    },
    ...(http === undefined ? {} : { ports: [`127.0.0.1:\${PORT:-8080}:${http}`] }),
    read_only: true,
    tmpfs: ['/tmp'],
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    ...(NEAR_WORKERS.has(name) ? { extra_hosts: ['host.docker.internal:host-gateway'] } : {}),
    ...(isWorker ? { volumes: [`wal-${name.slice('worker-'.length)}:/wal`, ...(hasKeyFile(row) ? [`\${${KEY_FILE.variable}:-/dev/null}:${KEY_FILE.directory}/${KEY_FILE.name}:ro`] : [])] } : name === 'routing' ? { volumes: ['catalogs:/catalogs'] } : {}),
    restart: 'unless-stopped',
    stop_grace_period: `${GRACE_SECONDS}s`,
    mem_limit: `${row.memoryMi}m`,
    networks: name === 'sandbox' ? ['sandbox'] : name === 'plugins' ? ['default', 'sandbox'] : ['default'],
  };
}

/** Runs once and exits; its service waits for that. */
function composeMigration(row, migrations) {
  return {
    image: 'signalbox:${SIGNALBOX_VERSION:-local}',
    build: { context: '.', dockerfile: 'deploy/docker/Dockerfile' },
    command: migrateCommand(row),
    environment: { ...row.env, DATABASE_URL: secretValues(migrations)[row.secrets.DATABASE_URL].DATABASE_URL },
    depends_on: { postgres: { condition: 'service_healthy' } },
    healthcheck: { disable: true },
    read_only: true,
    tmpfs: ['/tmp'],
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    restart: 'on-failure:5',
    mem_limit: '256m',
    networks: ['default'],
  };
}

const storeContainers = (migrations) => ({
  postgres: {
    image: 'postgres:17-alpine',
    environment: { POSTGRES_USER: 'postgres', POSTGRES_DB: 'signalbox', POSTGRES_PASSWORD: '${POSTGRES_PASSWORD:?}', ACCOUNTS_DB_PASSWORD: '${ACCOUNTS_DB_PASSWORD:?}', BILLING_DB_PASSWORD: '${BILLING_DB_PASSWORD:?}', PLUGINS_DB_PASSWORD: '${PLUGINS_DB_PASSWORD:?}', ...Object.fromEntries(migrations.map(({ of }) => [ownerPassword(of), `\${${ownerPassword(of)}:?}`])) },
    volumes: ['postgres:/var/lib/postgresql/data', './deploy/postgres:/docker-entrypoint-initdb.d:ro'],
    // Over TCP: while a new volume is initialised, the server answers only on its Unix socket.
    healthcheck: { test: ['CMD', 'pg_isready', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'signalbox'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  redis: {
    image: 'redis:7-alpine',
    // Compose turns $$ into one $.
    command: ['sh', '-c', REDIS_START.split('$').join('$$')],
    environment: { QUOTA_REDIS_PASSWORD: '${QUOTA_REDIS_PASSWORD:?}' },
    volumes: ['redis:/data', './deploy/redis/users.acl:/etc/signalbox/users.acl:ro'],
    healthcheck: { test: ['CMD-SHELL', 'REDISCLI_AUTH="$$QUOTA_REDIS_PASSWORD" redis-cli --user quota ping | grep -q PONG'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  nats: {
    image: 'nats:2.10-alpine',
    command: ['--config', '/etc/nats/compose.conf', '--jetstream', '--store_dir', '/data'],
    environment: Object.fromEntries(Object.keys(NATS_USERS).map((user) => [natsPassword(user), `"\${${natsPassword(user)}:?}"`])),
    // The image has no user that could own a new volume, so it runs as root without capabilities.
    cap_drop: ['ALL'],
    read_only: true,
    volumes: ['nats:/data', './deploy/nats/compose.conf:/etc/nats/compose.conf:ro', './deploy/nats/users.conf:/etc/nats/users.conf:ro'],
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:8222/healthz'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  prometheus: {
    image: 'prom/prometheus:v3.5.0',
    volumes: ['./deploy/prometheus/prometheus.yml:/etc/prometheus/prometheus.yml:ro', './deploy/prometheus/alerts.yml:/etc/prometheus/alerts.yml:ro', 'prometheus:/prometheus'],
    ports: ['127.0.0.1:9090:9090'],
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:9090/-/ready'], interval: '10s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  // Receives OTLP and shows traces, in memory only. Started by COMPOSE_PROFILES=traces.
  jaeger: {
    image: 'jaegertracing/jaeger:2.10.0',
    profiles: ['traces'],
    ports: ['127.0.0.1:16686:16686'],
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:16686/'], interval: '10s', timeout: '3s', retries: 12 },
    mem_limit: '512m',
    restart: 'unless-stopped',
  },
  grafana: {
    image: 'grafana/grafana:12.1.0',
    environment: { GF_SECURITY_ADMIN_PASSWORD: '${GRAFANA_PASSWORD:?}', GF_ANALYTICS_REPORTING_ENABLED: 'false', GF_ANALYTICS_CHECK_FOR_UPDATES: 'false' },
    volumes: ['./deploy/grafana/provisioning:/etc/grafana/provisioning:ro', './deploy/grafana/dashboards:/var/lib/grafana/dashboards:ro', 'grafana:/var/lib/grafana'],
    ports: ['127.0.0.1:3000:3000'],
    depends_on: { prometheus: { condition: 'service_healthy' } },
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:3000/api/health'], interval: '10s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
});

/**
 * Names the content of the files that are mounted, so that `docker compose up` makes a container anew when one has changed:
 * by itself it does not, and a container keeps the file that it began with. Folders show their changes.
 */
function withFilesNamed(service, textOf) {
  const mounted = (service.volumes ?? []).map((volume) => volume.split(':')[0]).filter((source) => /^\.\/.*\.[a-z]+$/.test(source));
  if (mounted.length === 0) return service;
  const hash = mounted.reduce((sum, source) => sum.update(textOf(source.slice(2))), createHash('sha256'));
  return { ...service, labels: { 'dev.signalbox.files': hash.digest('hex').slice(0, 8) } };
}

/** The whole document: stores, migrations and services. `textOf` reads a file of the repository. */
export function composeFile(rows, migrations, textOf) {
  const stores = Object.fromEntries(Object.entries(storeContainers(migrations)).map(([name, service]) => [name, withFilesNamed(service, textOf)]));
  const services = { ...stores, ...Object.fromEntries([...migrations.map((row) => [row.name, composeMigration(row, migrations)]), ...rows.map((row) => [row.name, composeService(row, migrations)])]) };
  const volumes = Object.values(services).flatMap(({ volumes: list = [] }) => list.map((volume) => volume.split(':')[0]).filter((source) => /^[a-z]/.test(source)));
  return { name: 'signalbox', services, volumes: Object.fromEntries(volumes.map((volume) => [volume, {}])), networks: { default: {}, sandbox: { internal: true } } };
}

/** Targets of the compose file's Prometheus. Services that always run are static targets, so that their absence is noticed; workers of profiles are targets only if their name resolves. Sandbox is not a target, since only plugins can reach it. */
export function prometheusFile(rows) {
  const watched = rows.filter(({ name }) => name !== 'sandbox');
  const addressesOf = (names, port) => [{ names, type: 'A', port }];
  return {
    global: { scrape_interval: '15s', evaluation_interval: '15s' },
    rule_files: ['/etc/prometheus/alerts.yml'],
    alerting: { alertmanagers: [{ dns_sd_configs: addressesOf(['alertmanager'], 9093) }] },
    scrape_configs: [
      {
        job_name: 'signalbox',
        // Metrics have the label `service` already.
        honor_labels: true,
        static_configs: [{ targets: watched.filter(alwaysRuns).map(({ name }) => `${name}:${METRICS}`) }],
        dns_sd_configs: addressesOf(watched.filter((row) => !alwaysRuns(row)).map(({ name }) => name), METRICS),
      },
    ],
  };
}
