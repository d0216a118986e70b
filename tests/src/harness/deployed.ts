/** Reads the deployment from docker-compose.yml and k8s/, and compares it with what the code knows. */
import { expect } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface ComposeService {
  readonly image: string;
  readonly profiles?: readonly string[];
  readonly build?: { readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly healthcheck?: unknown;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
  readonly networks?: readonly string[];
  readonly restart?: string;
}
export const compose = parse(read('docker-compose.yml')) as { readonly services: Readonly<Record<string, ComposeService>>; readonly volumes: Readonly<Record<string, unknown>> };
const built = Object.entries(compose.services).filter(([, { build }]) => build !== undefined);
/** Migration jobs; all other containers keep running. */
export const migrations = built.filter(([, { command }]) => command?.[1] === 'migrate');
export const ours = built.filter((entry) => !migrations.includes(entry));

/** Longest time of a service from SIGTERM to its exit, by its configuration. Services with streams have a drain time. */
export function longestStopSeconds(name: string, drainMs: string | undefined): number {
  const isWorker = name.startsWith('worker-');
  expect({ name, isTold: drainMs !== undefined }).toEqual({ name, isTold: isWorker || name === 'edge' });
  const drainSeconds = Number(drainMs ?? '0') / 1_000;
  // A worker: streams, then the usage of clients that left. Edge: streams, then at least 2 s to report outcomes to workers and for cut requests to end.
  return isWorker ? drainSeconds + Math.min(60, drainSeconds) : drainSeconds + 4;
}

export interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean }; readonly configMapKeyRef?: { readonly name: string; readonly key: string } } }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: unknown;
  readonly resources: { readonly requests: Readonly<Record<string, string>>; readonly limits: Readonly<Record<string, string>> };
  readonly livenessProbe: { readonly httpGet: { readonly path: string } };
  readonly readinessProbe: { readonly httpGet: { readonly path: string } };
  readonly startupProbe: { readonly httpGet: { readonly path: string }; readonly periodSeconds: number; readonly failureThreshold: number };
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}
export interface KubeObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: {
    readonly replicas?: number;
    readonly minReplicas?: number;
    readonly maxReplicas?: number;
    readonly minReadySeconds?: number;
    readonly clusterIP?: string;
    readonly selector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template?: { readonly spec: { readonly containers: readonly Container[]; readonly securityContext: Readonly<Record<string, unknown>>; readonly automountServiceAccountToken: boolean; readonly terminationGracePeriodSeconds: number; readonly topologySpreadConstraints: readonly unknown[] } };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
    readonly persistentVolumeClaimRetentionPolicy?: Readonly<Record<string, string>>;
    readonly podSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly ingress?: readonly { readonly from: readonly { readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> } }[]; readonly ports: readonly { readonly port: number }[] }[];
    readonly egress?: readonly { readonly to: readonly { readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> }; readonly ipBlock?: { readonly cidr: string; readonly except: readonly string[] } }[]; readonly ports: readonly { readonly port: number }[] }[];
  };
}
export const objectsOf = (text: string): readonly KubeObject[] => parseAllDocuments(text).map((document) => document.toJS() as KubeObject).filter((object) => object !== null);
export const base = objectsOf(read('k8s/base/services.yaml'));
export const workloads = base.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
export const containerOf = ({ spec }: KubeObject): Container => {
  const container = spec.template?.spec.containers[0];
  if (container === undefined) throw new Error('no container');
  return container;
};

export const services = readdirSync(join(ROOT, 'services')).filter((name) => existsSync(join(ROOT, 'services', name, 'src/main.ts'))).sort();
export const serviceOf = (command: readonly string[] = []): string => /^services\/([a-z-]+)\/dist\/main\.js$/.exec(command[0] ?? '')?.[1] ?? '';

/** Variables that a service reads: its own settings, those of every process and of every worker, and those in the providers' tables. */
export function knownVariables(service: string): ReadonlySet<string> {
  const files = [`services/${service}/src/config.ts`, ...(service.startsWith('worker-') ? ['libs/worker-kit/src/config.ts'] : []), 'libs/runtime/src/tracing.ts', 'libs/runtime/src/tls-files.ts', ...['presets', 'credential', 'service-account'].map((name) => `services/${service}/src/${name}.ts`)];
  return new Set(files.filter((file) => existsSync(join(ROOT, file))).flatMap((file) => read(file).match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\bHOST\b|\bPORT\b|\bPROVIDER\b|\bPROVIDERS\b|\bSIMULATOR\b|\bWORKERS\b|\bDEPLOYMENT\b|\bEXPLORATION\b/g) ?? []));
}
