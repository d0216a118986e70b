// The cluster: k8s/base/services.yaml, the certificates of production and the store users of development.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { command, common, GRACE_SECONDS, GRPC, hasKeyFile, KEY_FILE, METRICS, migrateCommand, OTLP_HTTP, PRE_STOP_SECONDS, sendsTraces, STORE_PORTS } from './containers.mjs';
import { natsUsers, redisUsers } from './store-users.mjs';

const POD_SECURITY = { runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } };
const CONTAINER_SECURITY = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
/** As in libs/runtime/src/misspelt-settings.ts. */
const SHOWN_PREFIX = 'SHOWN_';
const TLS_DIR = '/tls';
/** Interval of the startup probe; below, how long a start may take: a worker reads its whole log before it listens. */
const STARTUP_SECONDS = 5;
const START_SECONDS_MAX = 300;
const REPLAY_SECONDS_MAX = 1_800;
/** How long a new pod is ready before an old one may go: callers find pods by a headless name, which DNS may answer from a cache for 30 s. Edge is reached through an address that stays (ADR 101). */
const NAMED_SECONDS = 40;
const namedFirst = ({ http }) => (http === undefined ? { minReadySeconds: NAMED_SECONDS } : {});
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
          // Every line of the config map under a name that nothing reads: the service tells which are nearly one of its settings. Sandbox is shown no address of anything.
          ...(name === 'sandbox' ? {} : { envFrom: [{ prefix: SHOWN_PREFIX, configMapRef: { name: 'signalbox' } }] }),
          env: [
            ...Object.entries({ ...common(row), ...env }).map(([variable, value]) => ({ name: variable, value })),
            ...['LOG_LEVEL', ...settings].map((variable) => ({ name: variable, valueFrom: { configMapKeyRef: { name: 'signalbox', key: variable } } })),
            ...Object.entries(secrets).map(([variable, secret]) => fromSecret(variable, secret)),
            ...credentials.map((variable) => fromSecret(variable, name, true)),
          ],
          // /livez, not /readyz: missing neighbours affect readiness only, since killing this pod would not bring them up.
          startupProbe: probe('/livez', { periodSeconds: STARTUP_SECONDS, failureThreshold: (provider === undefined ? START_SECONDS_MAX : REPLAY_SECONDS_MAX) / STARTUP_SECONDS }),
          livenessProbe: probe('/livez', { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }),
          readinessProbe: probe('/readyz', { periodSeconds: 5, timeoutSeconds: 3 }),
          // By the end of this delay no new traffic is routed here, and the drain begins.
          lifecycle: { preStop: { exec: { command: ['node', '-e', `setTimeout(() => {}, ${PRE_STOP_SECONDS * 1_000})`] } } },
          resources: { requests: { cpu: '100m', memory: `${Math.round(memoryMi / 2)}Mi` }, limits: { memory: `${memoryMi}Mi` } },
          securityContext: CONTAINER_SECURITY,
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }, { name: 'tls', mountPath: TLS_DIR, readOnly: true }, ...(provider === undefined ? [] : [{ name: 'wal', mountPath: '/wal' }]), ...(hasKeyFile(row) ? [{ name: 'credentials', mountPath: KEY_FILE.directory, readOnly: true }] : []), ...(name === 'routing' ? [{ name: 'catalogs', mountPath: '/catalogs' }] : [])],
        },
      ],
      // Written by cert-manager in production; the service reloads it while it runs.
      volumes: [{ name: 'tmp', emptyDir: {} }, { name: 'tls', secret: { secretName: tlsSecret(name), optional: true, defaultMode: 0o440 } }, ...(hasKeyFile(row) ? [{ name: 'credentials', secret: { secretName: `signalbox-${name}`, optional: true, defaultMode: 0o440, items: [{ key: KEY_FILE.name, path: KEY_FILE.name }] } }] : []), ...(name === 'routing' ? [{ name: 'catalogs', emptyDir: { sizeLimit: '256Mi' } }] : [])],
    },
  };
}

const DNS = { to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } }, podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }], ports: [{ port: 53, protocol: 'UDP' }, { port: 53, protocol: 'TCP' }] };
const toStore = (store) => ({ to: [{ podSelector: { matchLabels: { 'signalbox.dev/store': store } } }], ports: [{ port: STORE_PORTS[store] }] });

function networkPolicy(row, rows) {
  const { name, calls, stores, http, goesOut } = row;
  const pods = (other) => ({ podSelector: { matchLabels: { 'app.kubernetes.io/name': other } } });
  const callers = rows.filter((other) => other.calls.includes(name)).map((other) => pods(other.name));
  const ingress = [
    { from: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/monitoring': 'true' } } }], ports: [{ port: METRICS }] },
    ...(callers.length > 0 ? [{ from: callers, ports: [{ port: GRPC }] }] : []),
    ...(http === undefined ? [] : [{ from: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/ingress': 'true' } } }], ports: [{ port: http }] }]),
  ];
  // Egress to providers and clients' documents over https or http: the public internet only, never the cluster or the cloud's metadata services.
  const internet = { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'] } }], ports: [{ port: 443 }, { port: 80 }] };
  const egress = [
    ...(calls.length + stores.length > 0 || goesOut ? [DNS] : []),
    ...(calls.length > 0 ? [{ to: calls.map(pods), ports: [{ port: GRPC }] }] : []),
    ...stores.map(toStore),
    ...(goesOut ? [internet] : []),
    ...(sendsTraces(row) ? [{ to: [{ namespaceSelector: { matchLabels: { 'signalbox.dev/monitoring': 'true' } } }], ports: [{ port: OTLP_HTTP }] }] : []),
  ];
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: metadata(name), spec: { podSelector: { matchLabels: labels(name) }, policyTypes: ['Ingress', 'Egress'], ingress, egress } };
}

function kubernetesService(row, rows) {
  const { name, replicas, replicasMax = replicas * 5, http, provider } = row;
  const selector = { matchLabels: labels(name) };
  const workload =
    provider === undefined
      ? // The autoscaler sets the number of replicas: if it were set here too, each apply would undo its changes.
        { apiVersion: 'apps/v1', kind: 'Deployment', metadata: metadata(name), spec: { selector, ...namedFirst(row), strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }, template: podTemplate(row) } }
      : {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: metadata(name),
          spec: {
            serviceName: name,
            replicas,
            selector,
            ...namedFirst(row),
            template: podTemplate(row),
            // The log is money: its volume must outlive its pod and its StatefulSet.
            persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
            volumeClaimTemplates: [{ metadata: { name: 'wal' }, spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '4Gi' } } } }],
          },
        };
  const ports = [http === undefined ? { name: 'grpc', port: GRPC, targetPort: 'grpc' } : { name: 'http', port: 80, targetPort: 'http' }, { name: 'metrics', port: METRICS, targetPort: 'metrics' }];
  // Headless: clients choose among the addresses of all replicas themselves.
  const door = { apiVersion: 'v1', kind: 'Service', metadata: metadata(name), spec: { ...(http === undefined ? { clusterIP: 'None' } : {}), selector: labels(name), ports } };
  // Also for services with one replica: a node drain may evict it, as a rollout does.
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: metadata(name), spec: { maxUnavailable: 1, selector } };
  const autoscaler = { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: metadata(name), spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name }, minReplicas: replicas, maxReplicas: replicasMax, metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '700m' } } }], behavior: { scaleDown: { stabilizationWindowSeconds: 300 } } } };
  return [workload, door, networkPolicy(row, rows), budget, ...(provider === undefined ? [autoscaler] : [])];
}

/** Short hash of the service's migrations for the job's name: jobs are immutable, so new migrations need a new job. */
const migrationsHash = (service) => createHash('sha256').update(readFileSync(new URL(`../../services/${service}/src/adapters/migrations.ts`, import.meta.url))).digest('hex').slice(0, 8);

function kubernetesMigration(row) {
  const { name, service, env, secrets } = row;
  const podSpec = {
    serviceAccountName: 'signalbox',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // Retry until Postgres is up and the migrations are applied; services that need them refuse to start before.
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

/** The base: migration jobs first, then each service with its Service, network policy and scaling. */
export const kubernetesObjects = (rows, migrations) => [...migrations.flatMap(kubernetesMigration), ...rows.flatMap((row) => kubernetesService(row, rows))];

/** Production: a certificate for each service, signed by the issuer's authority. Its DNS name is both the caller's identity and the server's address. */
export function certificates(rows) {
  const issuer = { apiVersion: 'cert-manager.io/v1', kind: 'Issuer', metadata: { name: 'signalbox' }, spec: { ca: { secretName: 'signalbox-ca' } } };
  const certificate = ({ name }) => ({
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name },
    spec: { secretName: tlsSecret(name), dnsNames: [name, `${name}.signalbox.svc`], issuerRef: { name: 'signalbox', kind: 'Issuer' }, usages: ['server auth', 'client auth'], privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' }, duration: '720h', renewBefore: '240h' },
  });
  return [issuer, ...rows.map(certificate)];
}

/** Development: the stores in the cluster have the same users and roles. */
export const storeUsers = () => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'signalbox-store-users' }, data: { 'users.conf': natsUsers(), 'users.acl': redisUsers(), '10-roles.sh': readFileSync(new URL('../postgres/10-roles.sh', import.meta.url), 'utf8') } });
