// The table of services as they are deployed: `node deploy/topology.mjs` writes docker-compose.yml, what its Prometheus watches,
// k8s/base/services.yaml, the certificates of k8s/overlays/prod and the users of NATS and Redis from it, `--check` compares.
// Settings of all containers are in topology/containers.mjs, permissions at the stores in topology/store-users.mjs.
import { readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { composeFile, prometheusFile } from './topology/compose.mjs';
import { GRPC, HTTP, sendsTraces } from './topology/containers.mjs';
import { certificates, kubernetesObjects, storeUsers } from './topology/kubernetes.mjs';
import { natsUsers, redisUsers } from './topology/store-users.mjs';

const at = (name) => `${name}:${GRPC}`;

/** Providers with a worker: name of the deployment, its service, the provider's id, and the variables of its credential and its address. */
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
/** Workers whose provider has an image model in the shipped catalog. */
const IMAGE_WORKERS = WORKERS.filter(([, , provider]) => ['simulator', 'openai'].includes(provider));
/** Services that read PROVIDER. */
const SHARED_WORKERS = new Set(['worker-anthropic', 'worker-google', 'worker-openai-compatible']);

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
  // One replica per log: attempts are concluded by the worker that has them in its log.
  replicas: service === 'worker-sim' ? 1 : 0,
  // Room for several requests of the largest size that edge accepts, at about five times their size.
  memoryMi: 512,
});

/** Security of RPC between services: plaintext under compose and in development, certificates in production. */
const RPC_SECURITY = ['RPC_TLS', 'RPC_TLS_DIR', 'DEPLOYMENT'];
const TRACING = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_TRACES_SAMPLER_ARG'];

/** Most replicas of services that connect to Postgres, which accepts 100 connections by default: (4 + 1 during a rollout) × pools of 8, 6 and 4. */
const DATABASE_REPLICAS_MAX = 4;

/** `secrets`: variable → secret that holds it. `calls`: rpc neighbours. `stores`: what else it connects to. */
const SERVICES = [
  { name: 'accounts', env: {}, settings: ['CONTRACT_VARIANT', 'FETCH_ALLOW', 'SESSION_IDLE_SECONDS', 'SESSION_ABSOLUTE_SECONDS'], credentials: ['SECRETS_KEYS_OLD'], secrets: { DATABASE_URL: 'accounts', KEY_PEPPER: 'keys', SECRETS_KEY: 'sealing', NATS_URL: 'accounts' }, calls: [], stores: ['nats', 'postgres'], replicas: 2, replicasMax: DATABASE_REPLICAS_MAX, memoryMi: 256 },
  { name: 'billing', env: { ACCOUNTS_ADDRS: at('accounts') }, settings: ['CONTRACT_VARIANT', 'RECONCILE_SECONDS', 'DECISIONS_KEPT_DAYS', 'DECISIONS_KEPT_MAX'], secrets: { DATABASE_URL: 'billing', NATS_URL: 'billing' }, calls: ['accounts'], stores: ['nats', 'postgres'], replicas: 2, replicasMax: DATABASE_REPLICAS_MAX, memoryMi: 384 },
  { name: 'quota', env: { QUOTA_STORE: 'redis', BILLING_ADDRS: at('billing') }, settings: ['REDIS_TIMEOUT_MS'], secrets: { REDIS_URL: 'quota', NATS_URL: 'quota' }, calls: ['billing'], stores: ['nats', 'redis'], replicas: 2, memoryMi: 256 },
  { name: 'routing', env: { SNAPSHOT_DIR: '/catalogs' }, settings: ['CATALOG_DIR', 'PROVIDERS', 'BYOK_PROVIDERS', 'OFFERED_MODELS', 'SIMULATOR', 'ZDR_AGREEMENTS', 'QUALITY_FILE', 'QUALITY_CANARY_FILE', 'QUALITY_CANARY_SHARE', 'DECISIONS_PER_SECOND_MAX', 'EXPLORATION'], secrets: { NATS_URL: 'routing' }, calls: [], stores: ['nats'], replicas: 2, memoryMi: 384 },
  // Its container can reach nothing: a separate network under compose, a policy without egress on Kubernetes.
  { name: 'sandbox', env: { SANDBOX_NETWORK_FENCE: 'outside' }, settings: ['SANDBOX_CONCURRENCY'], secrets: {}, calls: [], stores: [], replicas: 2, memoryMi: 768 },
  {
    name: 'plugins',
    env: { SANDBOX_ADDRS: at('sandbox'), WORKERS: IMAGE_WORKERS.map(([name, , provider]) => `${provider}=${at(name)}`).join(',') },
    settings: ['PROVIDERS', 'ZDR_AGREEMENTS', 'PLUGINS_OFF', 'PLUGIN_FEES', 'WEB_SEARCH_BACKEND', 'WEB_SEARCH_URL', 'WEB_SEARCH_GUARANTEE', 'GUTENDEX_URL', 'IMAGE_MODELS_FILE', 'MEMORY_ZDR', 'MEMORY_FACTS_MAX', 'PDF_BYTES_MAX', 'PDF_TIMEOUT_MS', 'PLUGINS_DEADLINE_MS', 'PDF_MEMORY_MIB', 'PDF_PROCESSES_MAX', 'FETCH_ALLOW'],
    credentials: ['WEB_SEARCH_KEY'],
    secrets: { DATABASE_URL: 'plugins' },
    calls: ['sandbox', ...IMAGE_WORKERS.map(([name]) => name)],
    stores: ['postgres'],
    goesOut: true,
    replicas: 2,
    replicasMax: DATABASE_REPLICAS_MAX,
    // Two documents at once with 512 MiB each, and as much for the service itself.
    memoryMi: 1536,
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
    memoryMi: 512,
  },
].map((row) => ({ service: row.name, credentials: [], ...row, env: { ...row.env, ...(row.secrets.DATABASE_URL === undefined ? {} : { MIGRATE_ON_START: 'off' }) }, settings: [...(row.settings ?? []), ...RPC_SECURITY, ...(sendsTraces(row) ? TRACING : [])] }));

/** Migrations run as separate jobs before their service starts, under the role that owns the schema. */
const MIGRATIONS = SERVICES.filter(({ secrets }) => secrets.DATABASE_URL !== undefined).map(({ name, service }) => ({ name: `${name}-migrate`, of: name, service, env: { SERVICE_ROLE: name }, secrets: { DATABASE_URL: `${name}-owner` } }));

const HEAD = '# Written by deploy/topology.mjs: change the table there, then run it.\n';
// Quote words that YAML 1.1 reads as booleans, since some parsers still use it.
const options = { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' };
const yamlOf = (documents) => documents.map((document) => stringify(document, options)).join('---\n');
const mounted = {
  'prometheus/prometheus.yml': `${HEAD}# On Kubernetes, k8s/base/monitoring.yaml says the same to a Prometheus operator.\n${stringify(prometheusFile(SERVICES), options)}`,
  'nats/users.conf': HEAD + natsUsers(),
  'redis/users.acl': redisUsers(),
};
const textOf = (path) => mounted[path.replace(/^deploy\//, '')] ?? readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const files = {
  ...mounted,
  '../docker-compose.yml': HEAD + stringify(composeFile(SERVICES, MIGRATIONS, textOf), options),
  '../k8s/base/services.yaml': HEAD + yamlOf(kubernetesObjects(SERVICES, MIGRATIONS)),
  '../k8s/overlays/prod/certificates.yaml': HEAD + yamlOf(certificates(SERVICES)),
  '../k8s/overlays/dev/store-users.yaml': HEAD + yamlOf([storeUsers()]),
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
