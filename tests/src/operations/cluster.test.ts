/** The cluster, as k8s/ describes it: what is true of its pods and its network beside what compose does too. */
import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parse } from 'yaml';
import { base, containerOf, longestStopSeconds, objectsOf, read, ROOT, workloads, type KubeObject } from '../harness/deployed.js';

test('how many there are of what is scaled is told by its autoscaler alone, lest each apply undid its work', () => {
  const scaled = base.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').map(({ metadata }) => metadata.name);
  expect(scaled.length).toBeGreaterThan(0);
  expect(workloads.filter(({ metadata, spec }) => scaled.includes(metadata.name) && spec.replicas !== undefined).map(({ metadata }) => metadata.name)).toEqual([]);
});

test('as many replicas as autoscalers may make, one more of each while an upgrade rolls, and the migrations fit the 100 connections of a Postgres as it comes', () => {
  const poolOf = (name: string): number => {
    const section = read('docs/configuration.md').split(/^## /m).find((each) => each.startsWith(`${name.charAt(0).toUpperCase()}${name.slice(1)}\n`)) ?? '';
    return Number(/^\| `DATABASE_POOL_MAX` \|[^|]*\| `(\d+)` \|/m.exec(section)?.[1]);
  };
  const withDatabase = workloads.filter((workload) => containerOf(workload).env.some(({ name }) => name === 'DATABASE_URL')).map(({ metadata }) => metadata.name);
  const mostOf = (name: string): number => base.find(({ kind, metadata }) => kind === 'HorizontalPodAutoscaler' && metadata.name === name)?.spec.maxReplicas ?? NaN;
  expect(withDatabase).toEqual(['accounts', 'billing', 'plugins']);
  // Three are kept for the administrator.
  expect(withDatabase.reduce((sum, name) => sum + (mostOf(name) + 1) * poolOf(name) + 1, 0)).toBeLessThanOrEqual(97);
});

test('every pod is locked in, watched and drained', () => {
  for (const workload of workloads) {
    const { template } = workload.spec;
    const container = containerOf(workload);
    expect(template?.spec.automountServiceAccountToken).toBe(false);
    expect(template?.spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container.securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
    const [, preStopMs = 'NaN'] = /setTimeout\(\(\) => \{\}, (\d+)\)/.exec(container.lifecycle.preStop.exec.command.join(' ')) ?? [];
    expect(template?.spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(preStopMs) / 1_000 + longestStopSeconds(workload.metadata.name, container.env.find(({ name }) => name === 'DRAIN_MS')?.value));
    expect(template?.spec.topologySpreadConstraints).toHaveLength(1);
    expect(container.livenessProbe.httpGet.path).toBe('/livez');
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    // What a neighbour lacks never ends a pod; a worker reads its log before it answers, and half an hour is much of it.
    const { httpGet, periodSeconds, failureThreshold } = container.startupProbe;
    expect(httpGet.path).toBe('/livez');
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(workload.kind === 'StatefulSet' ? 1_800 : 300);
    expect(Object.keys(container.resources.requests)).toEqual(['cpu', 'memory']);
    expect(container.resources.limits['memory']).toBeDefined();
    const { name } = workload.metadata;
    expect(base.filter((object) => object.metadata.name === name).map(({ kind }) => kind).sort()).toEqual(
      name.startsWith('worker-') ? ['NetworkPolicy', 'PodDisruptionBudget', 'Service', 'StatefulSet'] : ['Deployment', 'HorizontalPodAutoscaler', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'],
    );
    expect(base.find(({ kind, metadata }) => kind === 'PodDisruptionBudget' && metadata.name === name)?.spec).toEqual({ maxUnavailable: 1, selector: workload.spec.selector });
    if (workload.kind !== 'StatefulSet') continue;
    // The log is money.
    expect(workload.spec.volumeClaimTemplates?.map((claim) => claim.metadata.name)).toEqual(['wal']);
    expect(workload.spec.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' });
    expect(container.volumeMounts).toContainEqual({ name: 'wal', mountPath: '/wal' });
  }
});

test('an upgrade ends an old pod only when DNS names its successor to callers that find pods by name, although caches keep an answer for 30 s', () => {
  for (const { metadata, spec } of workloads) {
    const isFoundByName = base.find((object) => object.kind === 'Service' && object.metadata.name === metadata.name)?.spec.clusterIP === 'None';
    expect({ name: metadata.name, isFoundByName }).toEqual({ name: metadata.name, isFoundByName: metadata.name !== 'edge' });
    if (isFoundByName) expect(spec.minReadySeconds).toBeGreaterThan(30);
  }
});

test('production: services speak mutual TLS, each with a certificate in its own name that its pods mount', () => {
  const kustomization = parse(read('k8s/overlays/prod/kustomization.yaml')) as { readonly resources: readonly string[]; readonly patches: readonly { readonly target: { readonly kind: string }; readonly patch: string }[] };
  const settings = kustomization.patches.filter(({ target }) => target.kind === 'ConfigMap').flatMap(({ patch }) => parse(patch) as readonly { readonly path: string; readonly value: string }[]);
  expect(settings).toEqual(expect.arrayContaining([expect.objectContaining({ path: '/data/DEPLOYMENT', value: 'production' }), expect.objectContaining({ path: '/data/RPC_TLS', value: 'required' }), expect.objectContaining({ path: '/data/RPC_TLS_DIR', value: '/tls' })]));
  expect(kustomization.resources).toContain('certificates.yaml');
  const certificates = objectsOf(read('k8s/overlays/prod/certificates.yaml')).filter(({ kind }) => kind === 'Certificate') as unknown as readonly { readonly metadata: { readonly name: string }; readonly spec: { readonly secretName: string; readonly dnsNames: readonly string[] } }[];
  expect(certificates.map(({ metadata }) => metadata.name).sort()).toEqual(workloads.map(({ metadata }) => metadata.name).sort());
  for (const { metadata, spec } of certificates) {
    expect(spec.dnsNames).toEqual([metadata.name, `${metadata.name}.signalbox.svc`]);
    const pod = workloads.find((workload) => workload.metadata.name === metadata.name)?.spec.template?.spec as unknown as { readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[] };
    expect(pod.volumes.find(({ name }) => name === 'tls')?.secret?.secretName).toBe(spec.secretName);
  }
});

test('the network allows the edges of the drawing, and no others', () => {
  const name = 'app.kubernetes.io/name';
  const policies = base.filter(({ kind }) => kind === 'NetworkPolicy');
  const calls = (from: string): readonly string[] =>
    (policies.find(({ metadata }) => metadata.name === from)?.spec.egress ?? []).filter(({ ports }) => ports.some(({ port }) => port === 9100)).flatMap(({ to }) => to.map(({ podSelector }) => podSelector?.matchLabels[name] ?? '')).sort();
  const workers = workloads.map(({ metadata }) => metadata.name).filter((each) => each.startsWith('worker-'));
  expect(calls('edge')).toEqual(['accounts', 'billing', 'plugins', 'quota', 'routing', ...workers].sort());
  for (const worker of workers) expect(calls(worker)).toEqual(['accounts', 'billing', 'quota']);
  expect(calls('quota')).toEqual(['billing']);
  expect(calls('billing')).toEqual(['accounts']);
  // Programs, and pictures of the providers that make some.
  expect(calls('plugins')).toEqual(['sandbox', 'worker-openai', 'worker-sim']);
  for (const quiet of ['accounts', 'routing', 'sandbox']) expect(calls(quiet)).toEqual([]);
  expect(policies.find(({ metadata }) => metadata.name === 'sandbox')?.spec.egress).toEqual([]);
  for (const { metadata, spec } of policies) {
    // Both ends say the same.
    const callers = (spec.ingress ?? []).filter(({ ports }) => ports.some(({ port }) => port === 9100)).flatMap(({ from }) => from.map(({ podSelector }) => podSelector?.matchLabels[name] ?? '')).sort();
    expect({ to: metadata.name, callers }).toEqual({ to: metadata.name, callers: policies.map((other) => other.metadata.name).filter((other) => calls(other).includes(metadata.name)).sort() });
    // What a client's URL may name, the dialer allows: https and http.
    for (const { to, ports } of spec.egress ?? []) if (to.some(({ ipBlock }) => ipBlock !== undefined)) expect(ports.map(({ port }) => port)).toEqual([443, 80]);
    for (const { to } of spec.egress ?? []) for (const { ipBlock } of to) if (ipBlock !== undefined) expect(ipBlock.except).toEqual(expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']));
  }
});

test('production: stores outside the cluster are reached by whom the base lets reach those inside, and by no others', () => {
  interface Policy {
    readonly podSelector: { readonly matchExpressions: readonly { readonly operator: string; readonly values: readonly string[] }[] };
    readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
  }
  const outside = objectsOf(read('k8s/overlays/prod/egress.yaml')).map(({ spec }) => spec as unknown as Policy);
  const inside = base.filter(({ kind }) => kind === 'NetworkPolicy');
  for (const port of [5432, 6379, 4222]) {
    const selected = outside.filter(({ egress }) => egress.some(({ ports }) => ports.some((each) => each.port === port))).flatMap(({ podSelector }) => podSelector.matchExpressions);
    const reaching = inside.filter(({ spec }) => spec.egress?.some(({ ports }) => ports.some((each) => each.port === port))).map(({ metadata }) => metadata.name);
    expect(selected).toHaveLength(1);
    const allowed = inside.map(({ metadata }) => metadata.name).filter((name) => selected.every(({ operator, values }) => values.includes(name) === (operator === 'In')));
    expect({ port, allowed }).toEqual({ port, allowed: reaching });
  }
});

test('overlays build, when kubectl is here: one namespace each, all secrets of production by reference', () => {
  if (spawnSync('kubectl', ['version', '--client'], { timeout: 10_000 }).status !== 0) {
    // eslint-disable-next-line no-console -- said loudly: nothing was covered
    console.warn('NOT COVERED: kubectl is not here; overlays are not built.');
    return;
  }
  for (const [overlay, namespace] of [['dev', 'signalbox-dev'], ['prod', 'signalbox']] as const) {
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', join(ROOT, 'k8s/overlays', overlay)], { encoding: 'utf8', timeout: 60_000, maxBuffer: 64 * 1024 * 1024 });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const objects = objectsOf(stdout);
    for (const { kind, metadata } of objects) expect({ kind, namespace: kind === 'Namespace' ? metadata.name : metadata.namespace }).toEqual({ kind, namespace });
    const running = objects.filter(({ kind, spec }) => (kind === 'Deployment' || kind === 'StatefulSet') && (spec.replicas ?? 1) > 0 && spec.template?.spec.containers[0]?.args !== undefined);
    expect(running.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(['accounts', 'billing', 'edge', 'quota', 'routing']));
    // A changed setting is another config map: whoever reads one is rolled to it.
    const settings = objects.filter(({ kind, metadata }) => kind === 'ConfigMap' && /^signalbox-[a-z0-9]{10}$/.test(metadata.name)).map(({ metadata }) => metadata.name);
    expect(settings).toHaveLength(1);
    expect([...new Set(running.flatMap((workload) => containerOf(workload).env.flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef?.name ?? [])))]).toEqual(settings);
    if (overlay === 'prod') {
      // An upgrade, or a node that goes, takes one pod of a provider at a time, and never the last.
      for (const { metadata, spec } of running) if (metadata.name.startsWith('worker-')) expect({ name: metadata.name, replicas: spec.replicas }).toEqual({ name: metadata.name, replicas: 2 });
      const keysOf = ({ spec }: KubeObject): readonly { readonly secretKey: string }[] => (spec as unknown as { readonly data: readonly { readonly secretKey: string }[] }).data;
      const offered = objects.filter(({ kind }) => kind === 'ExternalSecret').flatMap((object) => keysOf(object).map(({ secretKey }) => `${object.metadata.name}/${secretKey}`));
      const asked = [...running, ...objects.filter(({ kind }) => kind === 'Job')].flatMap((workload) => containerOf(workload).env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []));
      expect(asked.filter(({ name, key, optional }) => !offered.some((secret) => (optional === true ? secret.startsWith(`${name}/`) : secret === `${name}/${key}`)))).toEqual([]);
    }
  }
}, 120_000);
