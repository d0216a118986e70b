/** Least privilege at the bus: with the users that are deployed, each service does its work and nothing that is another's. Redis: services/quota/src/adapters/store.test.ts. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bus } from '@signalbox/bus/bus';
import { connectNatsBus } from '@signalbox/bus/connect';
import { subjectMatches } from '@signalbox/bus/subjects';
import { startNats } from '@signalbox/local-stores/nats';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { until } from '@signalbox/testkit/until';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CONFIG = join(ROOT, 'deploy/nats/users.conf');
const text = readFileSync(CONFIG, 'utf8');

interface User {
  readonly name: string;
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}
const listOf = (line: string): readonly string[] => JSON.parse(line) as readonly string[];
const users: readonly User[] = [...text.matchAll(/user: (\w+), password: \$\w+\s+permissions: \{\s+publish: (\[.*\])\s+subscribe: (\[.*\])/g)].map(([, name = '', publish = '[]', subscribe = '[]']) => ({ name, publish: listOf(publish), subscribe: listOf(subscribe) }));
const NAMES = ['accounts', 'billing', 'quota', 'routing', 'workers', 'edge'] as const;
type Name = (typeof NAMES)[number];

/** Begins with digits, as `openssl rand -hex` may: unquoted, the server would read a number. */
const passwordOf = (name: string): string => `12e4${name}`;
/** As compose hands them to the server. */
const environment = Object.fromEntries(
  Object.entries((parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')) as { services: { nats: { environment: Readonly<Record<string, string>> } } }).services.nats.environment).map(([variable, value]) => [variable, value.replace(`\${${variable}:?}`, passwordOf(variable.split('_')[0]?.toLowerCase() ?? ''))]),
);

let server: Awaited<ReturnType<typeof startNats>>;
const buses = new Map<Name, Bus>();
const bus = (name: Name): Bus => {
  const found = buses.get(name);
  if (found === undefined) throw new Error(name);
  return found;
};
const connectAs = (name: string, password: string): Promise<Bus> => connectNatsBus({ url: `nats://${name}:${password}@127.0.0.1:${server.port}`, clock: systemClock, log: silentLog, name });
const bytes = (value: string): Uint8Array => Buffer.from(value, 'utf8');
const nothing = (): undefined => undefined;

beforeAll(async () => {
  server = await startNats({ configFile: CONFIG, environment, path: process.env['PATH'] ?? '' });
  // The order of compose: accounts comes before the streams are there.
  for (const name of NAMES) buses.set(name, await connectAs(name, passwordOf(name)));
}, 30_000);
afterAll(async () => {
  await Promise.all([...buses.values()].map((each) => each.close()));
  await server.stop();
});

test('the server lets in the users of the table, and nobody without a password', async () => {
  expect(users.map(({ name }) => name)).toEqual(NAMES);
  await expect(connectAs('edge', passwordOf('billing'))).rejects.toThrow(/store_unavailable/);
  await expect(connectNatsBus({ url: server.url, clock: systemClock, log: silentLog, name: 'nobody' })).rejects.toThrow(/store_unavailable/);
});

test('usage goes from the workers to billing, poison to the dead letters, and the lag is told', async () => {
  const seen: string[] = [];
  await expect(bus('workers').publish('usage.v1.0', bytes('no stream yet'))).rejects.toThrow(/store_unavailable/);
  const subscription = await bus('billing').consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: 10, batchWaitMs: 1 }, (messages) => {
    seen.push(...messages.map(({ payload }) => Buffer.from(payload).toString()));
    return Promise.resolve(messages.map(({ payload }) => (Buffer.from(payload).toString() === 'bad' ? 'poison' : 'done')));
  });
  for (const payload of ['bad', 'good']) await bus('workers').publish('usage.v1.0', bytes(payload), { messageId: payload });
  await until(() => seen.includes('good'));
  // The acknowledgements, and the copy of the poison, are under way: nothing is left once both were let through.
  let lag = await subscription.lag?.();
  while (lag !== 0) lag = await subscription.lag?.();
  expect(seen).toEqual(['bad', 'good']);
  await subscription.stop();
}, 20_000);

/** Who announces what to whom. */
const ANNOUNCED: readonly (readonly [from: Name, subject: string, to: Name, pattern: string])[] = [
  ['accounts', 'keys.v1.revoked', 'edge', 'keys.v1.revoked'],
  ['accounts', 'keys.v1.revoked', 'workers', 'keys.v1.revoked'],
  ['billing', 'totals.v1.acct_1', 'quota', 'totals.v1.>'],
  ['quota', 'holds.v1.freed', 'edge', 'holds.v1.freed'],
  ['routing', 'decisions.v1', 'billing', 'decisions.v1'],
  ['routing', 'routing.v1.control', 'routing', 'routing.v1.control'],
  ['workers', 'attempts.v1.openai', 'routing', 'attempts.v1.>'],
  ['workers', 'attempts.v1.openai', 'workers', 'attempts.v1.openai'],
];

test.each(ANNOUNCED)('%s announces %s and %s hears it', async (from, subject, to, pattern) => {
  const heard: string[] = [];
  const subscription = await bus(to).listen(pattern, (message) => heard.push(message.subject));
  bus(from).announce(subject, bytes('x'));
  await until(() => heard.length > 0);
  expect(heard).toEqual([subject]);
  await subscription.stop();
});

const SUBJECTS = ['usage.v1.0', 'dlq.v1.usage.v1.0', ...new Set(ANNOUNCED.map(([, subject]) => subject))];

test.each(NAMES)('%s says and hears nothing that is another’s', async (name) => {
  const says = new Set([...ANNOUNCED.filter(([from]) => from === name).map(([, subject]) => subject), ...(name === 'workers' ? ['usage.v1.0'] : []), ...(name === 'billing' ? ['dlq.v1.usage.v1.0'] : [])]);
  const hears = new Set(ANNOUNCED.filter(([, , to]) => to === name).map(([, subject]) => subject));
  for (const subject of SUBJECTS) {
    const published = bus(name).publish(subject, bytes('x'));
    // What is only announced is kept by no stream, so that even the entitled get no confirmation; theirs is shown above.
    if (!says.has(subject)) await expect(published).rejects.toMatchObject({ code: 'store_unavailable', cause: expect.objectContaining({ code: 'PERMISSIONS_VIOLATION' }) as unknown });
    else await published.catch(nothing);
    const listening = bus(name).listen(subject, nothing);
    if (hears.has(subject)) await (await listening).stop();
    else await expect(listening).rejects.toMatchObject({ code: 'store_unavailable' });
  }
  // Neither everything nor what others are answered.
  for (const pattern of ['>', '_INBOX.>', `_INBOX.${name === 'edge' ? 'billing' : 'edge'}.>`, '$JS.>', 'usage.v1.>']) await expect(bus(name).listen(pattern, nothing)).rejects.toMatchObject({ code: 'store_unavailable' });
}, 20_000);

test('only billing takes messages off a stream, and none may empty, change or delete one', async () => {
  for (const name of NAMES) {
    if (name !== 'billing') await expect(bus(name).consume({ durable: 'billing', subject: 'usage.v1.>', batchMessagesMax: 1, batchWaitMs: 1 }, () => Promise.resolve(['done']))).rejects.toThrow(/store_unavailable/);
    await expect(bus(name).consume({ durable: 'another', subject: 'usage.v1.>', batchMessagesMax: 1, batchWaitMs: 1 }, () => Promise.resolve(['done']))).rejects.toThrow(/store_unavailable/);
    for (const verb of ['PURGE', 'DELETE', 'UPDATE', 'MSG.DELETE', 'MSG.GET']) await expect(bus(name).publish(`$JS.API.STREAM.${verb}.USAGE`, bytes('{}'))).rejects.toMatchObject({ cause: expect.objectContaining({ code: 'PERMISSIONS_VIOLATION' }) as unknown });
  }
}, 20_000);

test('every subject that the code of a service names is one that its user may use', () => {
  const sourcesOf = (folder: string): readonly string[] =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts') && !/\.test\.ts$|testing\//.test(file)).map((file) => readFileSync(join(ROOT, folder, file), 'utf8'));
  const subjectsIn = (folder: string): ReadonlySet<string> => new Set(sourcesOf(folder).flatMap((source) => [...source.matchAll(/['`]((?:usage|dlq|totals|attempts|keys|decisions|holds|routing)\.v1(?:\.[^'`]*)?)['`]/g)].map(([, subject = '']) => subject.replace(/\$\{.*?\}/g, 'any'))));
  const folders = readdirSync(join(ROOT, 'services')).map((service) => [service.startsWith('worker-') ? 'workers' : service, `services/${service}/src`] as const);
  let count = 0;
  for (const [name, folder] of [...folders, ['workers', 'libs/worker-kit/src'] as const]) {
    const user = users.find((each) => each.name === name);
    const allowed = [...(user?.publish ?? []).map((subject) => subject.replace(/^\$JS\.API\.CONSUMER\.CREATE\.\w+\.\w+\./, '')), ...(user?.subscribe ?? [])];
    const named = [...subjectsIn(folder)];
    count += named.length;
    expect({ folder, notAllowed: named.filter((subject) => !allowed.some((pattern) => subjectMatches(pattern, subject))) }).toEqual({ folder, notAllowed: [] });
  }
  expect(count).toBeGreaterThanOrEqual(10);
});
