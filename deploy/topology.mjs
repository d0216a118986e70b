// The table of services as they are deployed: `node deploy/topology.mjs` writes docker-compose.yml,
// k8s/base/services.yaml, the certificates of k8s/overlays/prod and the users of NATS and Redis from it, `--check` compares.
// What is asked of every container, and what every service may do at a store, stands here once.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';

const GRPC = 9100;
const METRICS = 9464;
const HTTP = 8080;
/** Before SIGTERM: by then nobody is sent to the pod any more. */
const PRE_STOP_SECONDS = 5;
/** How long streams may take to finish after SIGTERM. */
const DRAIN_SECONDS = 30;
/** Workers wait as long again for the usage of clients that left; all need some time to end. */
const GRACE_SECONDS = PRE_STOP_SECONDS + 2 * DRAIN_SECONDS + 10;
/** Those with streams. */
const drains = ({ name, provider }) => name === 'edge' || provider !== undefined;

const at = (name) => `${name}:${GRPC}`;

/** Providers with a worker: name of the deployment, its service, the provider's id, and variables that hold its credential and its address. */
const WORKERS = [
  ['worker-sim', 'worker-sim', 'simulator', []],
  ['worker-openai', 'worker-openai', 'openai', ['OPENAI_API_KEY', 'OPENAI_BASE_URL']],
  ['worker-anthropic', 'worker-anthropic', 'anthropic', ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL']],
  ['worker-google', 'worker-google', 'google-ai-studio', ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_BASE_URL']],
  ['worker-bedrock', 'worker-bedrock', 'amazon-bedrock', ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_REGION', 'BEDROCK_BASE_URL']],
  ['worker-azure', 'worker-azure', 'azure-openai', ['AZURE_API_KEY', 'AZURE_RESOURCE_NAME', 'AZURE_BASE_URL', 'AZURE_API_VERSION', 'AZURE_DEPLOYMENTS']],
  ['worker-cohere', 'worker-cohere', 'cohere', ['COHERE_API_KEY', 'CO_API_KEY', 'COHERE_BASE_URL']],
  ['worker-ollama', 'worker-ollama', 'ollama', ['OLLAMA_BASE_URL', 'OLLAMA_NUM_CTX', 'OLLAMA_KEEP_ALIVE']],
  ['worker-google-vertex', 'worker-google', 'google-vertex', ['VERTEX_ACCESS_TOKEN', 'GOOGLE_APPLICATION_CREDENTIALS', 'VERTEX_BASE_URL', 'GOOGLE_VERTEX_PROJECT', 'GOOGLE_VERTEX_LOCATION']],
  ['worker-minimax', 'worker-anthropic', 'minimax', ['MINIMAX_API_KEY', 'MINIMAX_BASE_URL']],
  ...Object.entries({
    alibaba: ['DASHSCOPE_API_KEY', 'DASHSCOPE_BASE_URL'],
    deepinfra: ['DEEPINFRA_API_KEY', 'DEEPINFRA_TOKEN', 'DEEPINFRA_BASE_URL'],
    zai: ['ZAI_API_KEY', 'ZHIPU_API_KEY', 'ZAI_BASE_URL'],
    ...Object.fromEntries(['baseten', 'cerebras', 'deepseek', 'fireworks', 'groq', 'meta', 'mistral', 'moonshot', 'nebius', 'novita', 'openrouter', 'perplexity', 'together', 'vllm', 'xai', 'xiaomi'].map((id) => [id, [`${id.toUpperCase()}_API_KEY`, `${id.toUpperCase()}_BASE_URL`]])),
  }).map(([id, variables]) => [`worker-${id}`, 'worker-openai-compatible', id, variables]),
];
/** Those whose provider has an image model in the shipped catalog. */
const IMAGE_WORKERS = WORKERS.filter(([, , provider]) => ['simulator', 'openai'].includes(provider));
/** Services that read PROVIDER. */
const SHARED_WORKERS = new Set(['worker-anthropic', 'worker-google', 'worker-openai-compatible']);

/** Those whose server is the operator's own, beside the containers as like as not. */
const NEAR_WORKERS = new Set(['worker-ollama', 'worker-vllm']);
/** A credential that is a file: where it is mounted, with the name it has in the secret. */
const KEY_FILE = { variable: 'GOOGLE_APPLICATION_CREDENTIALS', directory: '/credentials', name: 'service-account.json' };
const hasKeyFile = ({ credentials }) => credentials.includes(KEY_FILE.variable);

const workerRow = ([name, service, provider, credentials]) => ({
  name,
  service,
  provider,
  env: { ...(SHARED_WORKERS.has(service) ? { PROVIDER: provider } : {}), WAL_DIR: '/wal', ACCOUNTS_ADDRS: at('accounts'), QUOTA_ADDRS: at('quota'), BILLING_ADDRS: at('billing') },
  secrets: { NATS_URL: 'workers' },
  settings: ['FETCH_ALLOW'],
  credentials,
  calls: ['accounts', 'quota', 'billing'],
  stores: ['nats'],
  goesOut: true,
  // One replica a log: attempts are concluded by the worker that has them in its journal.
  replicas: service === 'worker-sim' ? 1 : 0,
  memoryMi: 256,
});

/** How the doors between services are kept: plain under compose and in development, with certificates in production. */
const RPC_SECURITY = ['RPC_TLS', 'RPC_TLS_DIR', 'DEPLOYMENT'];
const TRACING = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_TRACES_SAMPLER_ARG'];
const OTLP_HTTP = 4318;
/** Programs that nobody trusts run in sandbox: it reaches nothing, a collector neither. */
const sendsTraces = ({ name }) => name !== 'sandbox';

/** `secrets`: variable → secret that holds it. `calls`: rpc neighbours. `stores`: what else it connects to. */
const SERVICES = [
  { name: 'accounts', env: {}, settings: ['CONTRACT_VARIANT', 'FETCH_ALLOW', 'SESSION_IDLE_SECONDS', 'SESSION_ABSOLUTE_SECONDS'], credentials: ['SECRETS_KEYS_OLD'], secrets: { DATABASE_URL: 'accounts', KEY_PEPPER: 'keys', SECRETS_KEY: 'sealing', NATS_URL: 'accounts' }, calls: [], stores: ['nats', 'postgres'], replicas: 2, memoryMi: 256 },
  { name: 'billing', env: { ACCOUNTS_ADDRS: at('accounts') }, settings: ['CONTRACT_VARIANT', 'RECONCILE_SECONDS', 'DECISIONS_KEPT_DAYS', 'DECISIONS_KEPT_MAX'], secrets: { DATABASE_URL: 'billing', NATS_URL: 'billing' }, calls: ['accounts'], stores: ['nats', 'postgres'], replicas: 2, memoryMi: 384 },
  { name: 'quota', env: { QUOTA_STORE: 'redis', BILLING_ADDRS: at('billing') }, settings: ['REDIS_TIMEOUT_MS'], secrets: { REDIS_URL: 'quota', NATS_URL: 'quota' }, calls: ['billing'], stores: ['nats', 'redis'], replicas: 2, memoryMi: 256 },
  { name: 'routing', env: { SNAPSHOT_DIR: '/catalogs' }, settings: ['CATALOG_DIR', 'PROVIDERS', 'BYOK_PROVIDERS', 'OFFERED_MODELS', 'SIMULATOR', 'ZDR_AGREEMENTS', 'QUALITY_FILE', 'QUALITY_CANARY_FILE', 'QUALITY_CANARY_SHARE', 'DECISIONS_PER_SECOND_MAX', 'EXPLORATION'], secrets: { NATS_URL: 'routing' }, calls: [], stores: ['nats'], replicas: 2, memoryMi: 384 },
  { name: 'sandbox', env: {}, settings: ['SANDBOX_CONCURRENCY'], secrets: {}, calls: [], stores: [], replicas: 2, memoryMi: 768 },
  {
    name: 'plugins',
    env: { SANDBOX_ADDRS: at('sandbox'), WORKERS: IMAGE_WORKERS.map(([name, , provider]) => `${provider}=${at(name)}`).join(',') },
    settings: ['PROVIDERS', 'ZDR_AGREEMENTS', 'PLUGINS_OFF', 'PLUGIN_FEES', 'WEB_SEARCH_BACKEND', 'WEB_SEARCH_URL', 'WEB_SEARCH_GUARANTEE', 'GUTENDEX_URL', 'IMAGE_MODELS_FILE', 'MEMORY_ZDR', 'MEMORY_FACTS_MAX', 'PDF_BYTES_MAX', 'PDF_TIMEOUT_MS', 'PDF_MEMORY_MIB', 'PDF_PROCESSES_MAX', 'FETCH_ALLOW'],
    credentials: ['WEB_SEARCH_KEY'],
    secrets: { DATABASE_URL: 'plugins' },
    calls: ['sandbox', ...IMAGE_WORKERS.map(([name]) => name)],
    stores: ['postgres'],
    goesOut: true,
    replicas: 2,
    memoryMi: 1024,
  },
  ...WORKERS.map(workerRow),
  {
    name: 'edge',
    env: {
      PORT: String(HTTP),
      ACCOUNTS_ADDRS: at('accounts'),
      ROUTING_ADDRS: at('routing'),
      QUOTA_ADDRS: at('quota'),
      BILLING_ADDRS: at('billing'),
      PLUGINS_ADDRS: at('plugins'),
      WORKERS: WORKERS.map(([name, , provider]) => `${provider}=${at(name)}`).join(','),
    },
    settings: ['CONTRACT_VARIANT', 'EDGE_REPLICAS', 'ACCESS_LOG_PER_MILLE', 'BODY_BYTES_MAX', 'IN_FLIGHT_MAX', 'QUOTA_DEADLINE_MS', 'PLUGINS_DEADLINE_MS'],
    secrets: { KEY_PEPPER: 'keys', ADMIN_TOKEN: 'admin', NATS_URL: 'edge' },
    calls: ['accounts', 'routing', 'quota', 'billing', 'plugins', ...WORKERS.map(([name]) => name)],
    stores: ['nats'],
    http: HTTP,
    replicas: 2,
    memoryMi: 384,
  },
].map((row) => ({ service: row.name, credentials: [], ...row, env: { ...row.env, ...(row.secrets.DATABASE_URL === undefined ? {} : { MIGRATE_ON_START: 'off' }) }, settings: [...(row.settings ?? []), ...RPC_SECURITY, ...(sendsTraces(row) ? TRACING : [])] }));

/** Schemas are made by a run of their own before their service starts, under the role that owns them. */
const MIGRATIONS = SERVICES.filter(({ secrets }) => secrets.DATABASE_URL !== undefined).map(({ name, service }) => ({ name: `${name}-migrate`, of: name, service, env: { SERVICE_ROLE: name }, secrets: { DATABASE_URL: `${name}-owner` } }));
const migrateCommand = ({ service }) => [`services/${service}/dist/main.js`, 'migrate'];

// ── what each may do at NATS and Redis (Postgres: deploy/postgres/10-roles.sh) ───────────────────────────────────────

/** Of a durable consumer: to make it, to look at it, to ask it for messages and to acknowledge them. */
const consumes = (stream, durable, subject) => [`$JS.API.CONSUMER.CREATE.${stream}.${durable}.${subject}`, `$JS.API.CONSUMER.INFO.${stream}.${durable}`, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, `$JS.ACK.${stream}.${durable}.>`];
const looksAt = (stream) => `$JS.API.STREAM.INFO.${stream}`;
const makes = (stream) => [looksAt(stream), `$JS.API.STREAM.CREATE.${stream}`];

/**
 * Users of NATS: subjects that each says and hears. Workers are one user. Streams are made by billing alone, since who
 * makes one also says what is copied into it and out of it; nobody may change, empty or delete one.
 */
const NATS_USERS = {
  accounts: { says: ['keys.v1.revoked'], hears: [] },
  billing: { says: ['totals.v1.*', 'dlq.v1.usage.v1.*', ...makes('USAGE'), ...makes('DLQ'), ...consumes('USAGE', 'billing', 'usage.v1.>')], hears: ['decisions.v1'] },
  quota: { says: ['holds.v1.freed'], hears: ['totals.v1.>'] },
  routing: { says: ['decisions.v1', 'routing.v1.control'], hears: ['attempts.v1.>', 'routing.v1.control'] },
  workers: { says: ['usage.v1.*', 'attempts.v1.*', looksAt('USAGE')], hears: ['keys.v1.revoked', 'attempts.v1.*'] },
  edge: { says: [], hears: ['keys.v1.revoked', 'holds.v1.freed'] },
};
const natsPassword = (user) => `${user.toUpperCase()}_NATS_PASSWORD`;

function natsUsers() {
  const quoted = (subjects) => subjects.map((subject) => JSON.stringify(subject)).join(', ');
  const user = ([name, { says, hears }]) => `    {
      user: ${name}, password: $${natsPassword(name)}
      permissions: {
        publish: [${quoted(['$JS.API.INFO', ...says])}]
        subscribe: [${quoted([`_INBOX.${name}.>`, ...hears])}]
      }
    }
`;
  return `# Passwords come from the environment, in double quotes: without them one that begins with a digit may be read as a number.
authorization: {
  users: [
${Object.entries(NATS_USERS).map(user).join('')}  ]
}
`;
}

/** What quota's scripts and the commands beside them use (services/quota/src/adapters), on its own keys. */
const REDIS_KEYS = ['q:*', 'h:*', 'f:*', 'e:*', 'epoch', 'heard'];
const REDIS_COMMANDS = ['ping', 'info', 'time', 'get', 'set', 'scan', 'hget', 'hmget', 'hgetall', 'hexists', 'hset', 'hsetnx', 'hdel', 'sadd', 'sismember', 'pexpire', 'eval', 'evalsha', 'script|load'];
const REDIS_PASSWORD_DIGEST = 'QUOTA_REDIS_PASSWORD_SHA256';
/** An ACL file knows no comments. Nobody is let in without a name. */
const redisUsers = () => `user default off\nuser quota on #${REDIS_PASSWORD_DIGEST} resetchannels ${REDIS_KEYS.map((key) => `~${key}`).join(' ')} -@all ${REDIS_COMMANDS.map((name) => `+${name}`).join(' ')}\n`;
/** The password itself stands in neither the file nor the list of processes. */
const REDIS_START = `umask 077 && sed "s/${REDIS_PASSWORD_DIGEST}/$(printf %s "$QUOTA_REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)/" /etc/signalbox/users.acl > /tmp/users.acl && exec redis-server --aclfile /tmp/users.acl --appendonly yes --appendfsync everysec --maxmemory-policy noeviction`;

const STORE_PORTS = { postgres: 5432, redis: 6379, nats: 4222 };
const command = ({ service }) => [`services/${service}/dist/main.js`];
const common = (row) => ({ HOST: '0.0.0.0', METRICS_PORT: String(METRICS), ...(row.name === 'edge' ? {} : { GRPC_PORT: String(GRPC) }), ...(drains(row) ? { DRAIN_MS: String(DRAIN_SECONDS * 1_000) } : {}) });

// ── compose ──────────────────────────────────────────────────────────────────────────────────────────────────────

const databaseUrl = (role) => `postgres://${role}:\${${role.toUpperCase()}_DB_PASSWORD:?}@postgres:${STORE_PORTS.postgres}/signalbox`;
const natsUrl = (user) => `nats://${user}:\${${natsPassword(user)}:?}@nats:${STORE_PORTS.nats}`;

const ownerPassword = (service) => `${service.toUpperCase()}_OWNER_DB_PASSWORD`;

const SECRET_VALUES = {
  accounts: { DATABASE_URL: databaseUrl('accounts'), NATS_URL: natsUrl('accounts') },
  billing: { DATABASE_URL: databaseUrl('billing'), NATS_URL: natsUrl('billing') },
  plugins: { DATABASE_URL: databaseUrl('plugins') },
  ...Object.fromEntries(MIGRATIONS.map(({ of, secrets }) => [secrets.DATABASE_URL, { DATABASE_URL: databaseUrl(`${of}_owner`) }])),
  quota: { REDIS_URL: `redis://quota:\${QUOTA_REDIS_PASSWORD:?}@redis:${STORE_PORTS.redis}`, NATS_URL: natsUrl('quota') },
  routing: { NATS_URL: natsUrl('routing') },
  workers: { NATS_URL: natsUrl('workers') },
  edge: { NATS_URL: natsUrl('edge') },
  keys: { KEY_PEPPER: '${KEY_PEPPER:?}' },
  sealing: { SECRETS_KEY: '${SECRETS_KEY:?}' },
  admin: { ADMIN_TOKEN: '${ADMIN_TOKEN:?}' },
};
/** Of compose; what is not here is left to the service's own default. */
const SETTING_DEFAULTS = { RPC_TLS: 'off', CONTRACT_VARIANT: 'A', PROVIDERS: 'simulator', SIMULATOR: 'auto' };

function composeService(row) {
  const { name, env, secrets, settings, credentials, calls, stores, http, provider } = row;
  const isWorker = provider !== undefined;
  return {
    image: 'signalbox:${SIGNALBOX_VERSION:-local}',
    build: { context: '.', dockerfile: 'deploy/docker/Dockerfile' },
    command: command(row),
    ...(isWorker && name !== 'worker-sim' ? { profiles: [provider] } : {}),
    environment: {
      ...common(row),
      LOG_LEVEL: '${LOG_LEVEL:-info}',
      ...env,
      ...Object.fromEntries(settings.map((setting) => [setting, `\${${setting}:-${SETTING_DEFAULTS[setting] ?? ''}}`])),
      ...Object.fromEntries(Object.entries(secrets).map(([variable, secret]) => [variable, SECRET_VALUES[secret][variable]])),
      ...Object.fromEntries(credentials.map((variable) => [variable, `\${${variable}:-}`])),
      // The file of that name on the host is mounted here.
      ...(hasKeyFile(row) ? { [KEY_FILE.variable]: `\${${KEY_FILE.variable}:+${KEY_FILE.directory}/${KEY_FILE.name}}` } : {}),
    },
    depends_on: {
      ...Object.fromEntries([...stores, ...calls.filter((other) => !other.startsWith('worker-'))].map((other) => [other, { condition: 'service_healthy' }])),
      ...Object.fromEntries(MIGRATIONS.filter(({ of }) => of === name).map((run) => [run.name, { condition: 'service_completed_successfully' }])),
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

/** Runs once and ends: its service waits for that. */
function composeMigration(row) {
  return {
    image: 'signalbox:${SIGNALBOX_VERSION:-local}',
    build: { context: '.', dockerfile: 'deploy/docker/Dockerfile' },
    command: migrateCommand(row),
    environment: { ...row.env, DATABASE_URL: SECRET_VALUES[row.secrets.DATABASE_URL].DATABASE_URL },
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

const STORES = {
  postgres: {
    image: 'postgres:17-alpine',
    environment: { POSTGRES_USER: 'postgres', POSTGRES_DB: 'signalbox', POSTGRES_PASSWORD: '${POSTGRES_PASSWORD:?}', ACCOUNTS_DB_PASSWORD: '${ACCOUNTS_DB_PASSWORD:?}', BILLING_DB_PASSWORD: '${BILLING_DB_PASSWORD:?}', PLUGINS_DB_PASSWORD: '${PLUGINS_DB_PASSWORD:?}', ...Object.fromEntries(MIGRATIONS.map(({ of }) => [ownerPassword(of), `\${${ownerPassword(of)}:?}`])) },
    volumes: ['postgres:/var/lib/postgresql/data', './deploy/postgres:/docker-entrypoint-initdb.d:ro'],
    // By its address: while a new volume is prepared the server answers on its socket alone.
    healthcheck: { test: ['CMD', 'pg_isready', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'signalbox'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  redis: {
    image: 'redis:7-alpine',
    // Compose reads $$ as one $.
    command: ['sh', '-c', REDIS_START.split('$').join('$$')],
    environment: { QUOTA_REDIS_PASSWORD: '${QUOTA_REDIS_PASSWORD:?}' },
    volumes: ['redis:/data', './deploy/redis/users.acl:/etc/signalbox/users.acl:ro'],
    healthcheck: { test: ['CMD-SHELL', 'REDISCLI_AUTH="$$QUOTA_REDIS_PASSWORD" redis-cli --user quota ping | grep -q PONG'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  nats: {
    image: 'nats:2.10-alpine',
    command: ['--config', '/etc/nats/users.conf', '--jetstream', '--store_dir', '/data', '--http_port', '8222'],
    environment: Object.fromEntries(Object.keys(NATS_USERS).map((user) => [natsPassword(user), `"\${${natsPassword(user)}:?}"`])),
    volumes: ['nats:/data', './deploy/nats/users.conf:/etc/nats/users.conf:ro'],
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:8222/healthz'], interval: '5s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  prometheus: {
    image: 'prom/prometheus:v3.5.0',
    volumes: ['./deploy/prometheus/prometheus.yml:/etc/prometheus/prometheus.yml:ro', './deploy/prometheus/alerts.yml:/etc/prometheus/alerts.yml:ro', './deploy/prometheus/targets:/etc/prometheus/targets:ro', 'prometheus:/prometheus'],
    ports: ['127.0.0.1:9090:9090'],
    healthcheck: { test: ['CMD', 'wget', '-q', '-O', '/dev/null', 'http://127.0.0.1:9090/-/ready'], interval: '10s', timeout: '3s', retries: 12 },
    restart: 'unless-stopped',
  },
  // Takes OTLP and shows traces; keeps them in memory. Started by COMPOSE_PROFILES=traces.
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
};

function composeFile() {
  const services = { ...STORES, ...Object.fromEntries([...MIGRATIONS.map((row) => [row.name, composeMigration(row)]), ...SERVICES.map((row) => [row.name, composeService(row)])]) };
  const volumes = Object.values(services).flatMap(({ volumes: list = [] }) => list.map((volume) => volume.split(':')[0]).filter((source) => /^[a-z]/.test(source)));
  return { name: 'signalbox', services, volumes: Object.fromEntries(volumes.map((volume) => [volume, {}])), networks: { default: {}, sandbox: { internal: true } } };
}

// ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────────────────────

const POD_SECURITY = { runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } };
const CONTAINER_SECURITY = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
const TLS_DIR = '/tls';
const tlsSecret = (name) => `signalbox-${name}-tls`;
const labels = (name) => ({ 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'signalbox' });
const metadata = (name) => ({ name, labels: labels(name) });
const fromSecret = (name, secret, isOptional = false) => ({ name, valueFrom: { secretKeyRef: { name: `signalbox-${secret}`, key: name, ...(isOptional ? { optional: true } : {}) } } });

function podTemplate(row) {
  const { name, env, secrets, settings, credentials, http, provider, memoryMi } = row;
  const ports = http === undefined ? [{ name: 'grpc', containerPort: GRPC }] : [{ name: 'http', containerPort: http }];
  const probe = (path, extra) => ({ httpGet: { path, port: 'metrics' }, ...extra });
  return {
    metadata: { labels: labels(name) },
    spec: {
      serviceAccountName: 'signalbox',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      securityContext: POD_SECURITY,
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: { matchLabels: labels(name) } }],
      containers: [
        {
          name: 'service',
          image: 'signalbox',
          args: command(row),
          ports: [...ports, { name: 'metrics', containerPort: METRICS }],
          env: [
            ...Object.entries({ ...common(row), ...env }).map(([variable, value]) => ({ name: variable, value })),
            ...['LOG_LEVEL', ...settings].map((variable) => ({ name: variable, valueFrom: { configMapKeyRef: { name: 'signalbox', key: variable } } })),
            ...Object.entries(secrets).map(([variable, secret]) => fromSecret(variable, secret)),
            ...credentials.map((variable) => fromSecret(variable, name, true)),
          ],
          startupProbe: probe('/readyz', { periodSeconds: 2, failureThreshold: 60 }),
          livenessProbe: probe('/livez', { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }),
          readinessProbe: probe('/readyz', { periodSeconds: 5, timeoutSeconds: 3 }),
          // Nobody is sent here any more before the drain begins.
          lifecycle: { preStop: { exec: { command: ['node', '-e', `setTimeout(() => {}, ${PRE_STOP_SECONDS * 1_000})`] } } },
          resources: { requests: { cpu: '100m', memory: `${Math.round(memoryMi / 2)}Mi` }, limits: { memory: `${memoryMi}Mi` } },
          securityContext: CONTAINER_SECURITY,
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }, { name: 'tls', mountPath: TLS_DIR, readOnly: true }, ...(provider === undefined ? [] : [{ name: 'wal', mountPath: '/wal' }]), ...(hasKeyFile(row) ? [{ name: 'credentials', mountPath: KEY_FILE.directory, readOnly: true }] : []), ...(name === 'routing' ? [{ name: 'catalogs', mountPath: '/catalogs' }] : [])],
        },
      ],
      // Written by cert-manager in production; the service reads it again while it runs.
      volumes: [{ name: 'tmp', emptyDir: {} }, { name: 'tls', secret: { secretName: tlsSecret(name), optional: true, defaultMode: 0o440 } }, ...(hasKeyFile(row) ? [{ name: 'credentials', secret: { secretName: `signalbox-${name}`, optional: true, defaultMode: 0o440, items: [{ key: KEY_FILE.name, path: KEY_FILE.name }] } }] : []), ...(name === 'routing' ? [{ name: 'catalogs', emptyDir: { sizeLimit: '256Mi' } }] : [])],
    },
  };
}

const DNS = { to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } }, podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }], ports: [{ port: 53, protocol: 'UDP' }, { port: 53, protocol: 'TCP' }] };
const toStore = (store) => ({ to: [{ podSelector: { matchLabels: { 'signalbox.dev/store': store } } }], ports: [{ port: STORE_PORTS[store] }] });

function networkPolicy(row) {
  const { name, calls, stores, http, goesOut } = row;
  const pods = (other) => ({ podSelector: { matchLabels: { 'app.kubernetes.io/name': other } } });
  const callers = SERVICES.filter((other) => other.calls.includes(name)).map((other) => pods(other.name));
  const ingress = [
    { from: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/monitoring': 'true' } } }], ports: [{ port: METRICS }] },
    ...(callers.length > 0 ? [{ from: callers, ports: [{ port: GRPC }] }] : []),
    ...(http === undefined ? [] : [{ from: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/ingress': 'true' } } }], ports: [{ port: http }] }]),
  ];
  // Providers and clients' documents: the public internet, never the cluster or the cloud's own services.
  const internet = { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'] } }], ports: [{ port: 443 }] };
  const egress = [
    ...(calls.length + stores.length > 0 || goesOut ? [DNS] : []),
    ...(calls.length > 0 ? [{ to: calls.map(pods), ports: [{ port: GRPC }] }] : []),
    ...stores.map(toStore),
    ...(goesOut ? [internet] : []),
    ...(sendsTraces(row) ? [{ to: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/monitoring': 'true' } } }], ports: [{ port: OTLP_HTTP }] }] : []),
  ];
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: metadata(name), spec: { podSelector: { matchLabels: labels(name) }, policyTypes: ['Ingress', 'Egress'], ingress, egress } };
}

function kubernetesService(row) {
  const { name, replicas, http, provider } = row;
  const selector = { matchLabels: labels(name) };
  const workload =
    provider === undefined
      ? { apiVersion: 'apps/v1', kind: 'Deployment', metadata: metadata(name), spec: { replicas, selector, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }, template: podTemplate(row) } }
      : {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: metadata(name),
          spec: {
            serviceName: name,
            replicas,
            selector,
            template: podTemplate(row),
            // The log is money: its volume outlives its pod and its set.
            persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
            volumeClaimTemplates: [{ metadata: { name: 'wal' }, spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '4Gi' } } } }],
          },
        };
  const ports = [http === undefined ? { name: 'grpc', port: GRPC, targetPort: 'grpc' } : { name: 'http', port: 80, targetPort: 'http' }, { name: 'metrics', port: METRICS, targetPort: 'metrics' }];
  // Headless: links choose among the addresses of all replicas themselves.
  const door = { apiVersion: 'v1', kind: 'Service', metadata: metadata(name), spec: { ...(http === undefined ? { clusterIP: 'None' } : {}), selector: labels(name), ports } };
  const many = [
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: metadata(name), spec: { maxUnavailable: 1, selector } },
    { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: metadata(name), spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name }, minReplicas: replicas, maxReplicas: replicas * 5, metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '700m' } } }], behavior: { scaleDown: { stabilizationWindowSeconds: 300 } } } },
  ];
  return [workload, door, networkPolicy(row), ...(provider === undefined ? many : [])];
}

/** The service's migrations as a few characters: jobs never change, so that other migrations are another job. */
const migrationsHash = (service) => createHash('sha256').update(readFileSync(new URL(`../services/${service}/src/adapters/migrations.ts`, import.meta.url))).digest('hex').slice(0, 8);

function kubernetesMigration(row) {
  const { name, service, env, secrets } = row;
  const podSpec = {
    serviceAccountName: 'signalbox',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // Until Postgres is there and the migrations are in: services that need them refuse to start before.
    restartPolicy: 'OnFailure',
    securityContext: POD_SECURITY,
    containers: [
      {
        name: 'migrate',
        image: 'signalbox',
        args: migrateCommand(row),
        env: [...Object.entries(env).map(([variable, value]) => ({ name: variable, value })), ...Object.entries(secrets).map(([variable, secret]) => fromSecret(variable, secret))],
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'tmp', emptyDir: {} }],
  };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-${migrationsHash(service)}`, labels: labels(name) }, spec: { backoffLimit: 20, ttlSecondsAfterFinished: 600, template: { metadata: { labels: labels(name) }, spec: podSpec } } };
  const policy = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: metadata(name), spec: { podSelector: { matchLabels: labels(name) }, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [DNS, toStore('postgres')] } };
  return [job, policy];
}

/** Production: a certificate for each service, by the authority that the issuer holds. Its name is what it may call as, and where it is called. */
function certificates() {
  const issuer = { apiVersion: 'cert-manager.io/v1', kind: 'Issuer', metadata: { name: 'signalbox' }, spec: { ca: { secretName: 'signalbox-ca' } } };
  const certificate = ({ name }) => ({
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name },
    spec: { secretName: tlsSecret(name), dnsNames: [name, `${name}.signalbox.svc`], issuerRef: { name: 'signalbox', kind: 'Issuer' }, usages: ['server auth', 'client auth'], privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' }, duration: '720h', renewBefore: '240h' },
  });
  return [issuer, ...SERVICES.map(certificate)];
}

/** Development: the stores inside know the same users and roles. */
const storeUsers = () => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'signalbox-store-users' }, data: { 'users.conf': natsUsers(), 'users.acl': redisUsers(), '10-roles.sh': readFileSync(new URL('postgres/10-roles.sh', import.meta.url), 'utf8') } });

// ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

const HEAD = '# Written by deploy/topology.mjs: change the table there, then run it.\n';
// Words that YAML 1.1 reads as booleans are quoted: readers of it are still about.
const options = { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' };
const yamlOf = (documents) => documents.map((document) => stringify(document, options)).join('---\n');
const files = {
  '../docker-compose.yml': HEAD + stringify(composeFile(), options),
  '../k8s/base/services.yaml': HEAD + yamlOf([...MIGRATIONS.flatMap(kubernetesMigration), ...SERVICES.flatMap(kubernetesService)]),
  '../k8s/overlays/prod/certificates.yaml': HEAD + yamlOf(certificates()),
  '../k8s/overlays/dev/store-users.yaml': HEAD + yamlOf([storeUsers()]),
  'nats/users.conf': HEAD + natsUsers(),
  'redis/users.acl': redisUsers(),
};
const isCheck = process.argv.includes('--check');
for (const [path, text] of Object.entries(files)) {
  const file = new URL(path, import.meta.url);
  if (!isCheck) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${path} is not what topology.mjs makes: run node deploy/topology.mjs\n`);
    process.exitCode = 1;
  }
}
