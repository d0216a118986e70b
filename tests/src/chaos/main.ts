/** `npm run chaos`: a real gateway under load and faults, then its books against the provider's bill. Exits 1 on a violation. */
import { systemClock } from '@signalbox/runtime/clock';
import { Random } from '@signalbox/sim/random';
import { startGateway, type Gateway } from '../harness/gateway.js';
import { check, costOf, errorWindows, restlessness, type CappedAccount } from './check.js';
import { strikeUntil, type StruckFault } from './faults.js';
import { MAX_TOKENS, PROMPT_BYTES_MAX, startLoad, type ClientAccount } from './load.js';
import { startChaosProvider } from './provider.js';
import { startChaosStores } from './stores.js';

const PER_SECOND = 20;
/** Request rate of one further account, high enough that both edges take advances for it. */
const BUSY_PER_SECOND = 50;
/** 100 USD, more than the account spends in an hour. */
const BUSY_CAP_USD = '100';
const BUSY_CAP_NANO_USD = 100_000_000_000n;
const FAULT_EVERY_MS = 2_500;
const REST_MS = 180_000;
const LOOK_MS = 2_000;
const MINUTES_MAX = 60;
/** An error within this time after the end of a fault still counts as caused by it. */
const AFTERMATH_MS = 5_000;
/** 0.02 USD: some 200 answers. */
const CAP_USD = '0.02';
const CAP_NANO_USD = 20_000_000n;
const SHOWN_MAX = 20;
/** Largest hold: prompt bytes plus 16 per message, counted as tokens, and all the requested output. */
const HOLD_MAX = costOf(PROMPT_BYTES_MAX + 100, MAX_TOKENS);

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function readArguments(given: readonly string[]): { readonly minutes: number; readonly seed: number } {
  const values = new Map([['--minutes', 5], ['--seed', 1]]);
  for (let i = 0; i < given.length; i += 2) {
    const value = Number(given[i + 1]);
    if (!values.has(given[i] ?? '') || !(value > 0)) throw new Error('npm run chaos -- [--minutes M] [--seed S]');
    values.set(given[i] ?? '', value);
  }
  const minutes = values.get('--minutes') ?? 5;
  if (minutes > MINUTES_MAX) throw new Error(`--minutes is at most ${MINUTES_MAX}.`);
  return { minutes, seed: values.get('--seed') ?? 1 };
}

async function newAccount({ adminUrl, adminToken }: Gateway, settings: object): Promise<ClientAccount> {
  const response = await fetch(`${adminUrl}/admin/accounts`, { method: 'POST', headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'chaos', tier: 'enterprise', ...settings }) });
  if (response.status !== 201) throw new Error(`No account: ${await response.text()}`);
  const made = (await response.json()) as { account: { id: string }; key: { key: string } };
  return { id: made.account.id, key: made.key.key };
}

async function servedFromAdvances(gateway: Gateway): Promise<number> {
  let served = 0;
  for (const { ports } of gateway.processes().filter(({ role }) => role === 'edge')) {
    const text = await (await fetch(`http://127.0.0.1:${ports['metrics'] ?? 0}/metrics`)).text();
    served += Number(/^signalbox_edge_advance_admissions_total\{[^}]*\} (\d+)$/m.exec(text)?.[1] ?? 0);
  }
  return served;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.setTimer(ms, resolve));

/** Waits for the books to come to rest; returns what still differs at the end, or undefined. */
async function rest(gateway: Gateway, accounts: readonly CappedAccount[]): Promise<string | undefined> {
  const end = systemClock.monotonicMs() + REST_MS;
  for (;;) {
    const reason = await restlessness(gateway, accounts);
    if (reason === undefined || systemClock.monotonicMs() > end) return reason;
    await pause(LOOK_MS);
  }
}

function count<Item>(items: readonly Item[], nameOf: (item: Item) => string): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) ?? 0) + 1);
  return [...counts].sort();
}

async function main(): Promise<boolean> {
  const { minutes, seed } = readArguments(process.argv.slice(2));
  const random = new Random(seed);
  const stores = await startChaosStores();
  const provider = await startChaosProvider(new Random(seed + 1));
  const environment = { ...stores.environment, OPENAI_API_KEY: 'sk-upstream', OPENAI_BASE_URL: provider.baseUrl, REDIS_TIMEOUT_MS: '250', QUOTA_DEADLINE_MS: '1000' };
  let gateway: Gateway | undefined;
  // Stop everything that we started, however this process ends.
  const stop = async (): Promise<void> => {
    await gateway?.stop();
    await provider.stop();
    await stores.stop();
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => void stop().then(() => process.exit(1)));
  try {
    const running = (gateway = await startGateway({ mode: 'split', replicas: 'edge=2,quota=2,worker-openai=2', environment }));
    say(`stores: ${stores.summary}; seed ${seed}, ${minutes} min, ${PER_SECOND + BUSY_PER_SECOND} requests a second`);
    const free = await newAccount(running, {});
    const capped = await newAccount(running, { cost_cap_usd: CAP_USD, cost_cap_period: 'total' });
    const busy = await newAccount(running, { cost_cap_usd: BUSY_CAP_USD, cost_cap_period: 'total' });
    const edges = (): readonly string[] => running.processes().filter(({ role }) => role === 'edge').map(({ ports }) => `http://127.0.0.1:${ports['http'] ?? 0}`);
    const load = startLoad({ random: new Random(seed + 2), edges, accounts: [free, free, free, capped], letter: 'c', perSecond: PER_SECOND });
    const busyLoad = startLoad({ random: new Random(seed + 3), edges, accounts: [busy], letter: 'b', perSecond: BUSY_PER_SECOND });
    let bound = 0n;
    const onWipe = (): void => {
      bound += BigInt(load.inFlight(capped.id) + PER_SECOND) * HOLD_MAX;
    };
    const faults = await strikeUntil({ gateway: running, stores, random, onWipe }, FAULT_EVERY_MS, systemClock.monotonicMs() + minutes * 60_000);
    say('The load ends; waiting for the books to rest.');
    await Promise.all([load.end(), busyLoad.end()]);
    const seen = [...load.seen, ...busyLoad.seen];
    const accounts: readonly CappedAccount[] = [{ id: free.id, capNanoUsd: undefined, bound: 0n }, { id: capped.id, capNanoUsd: CAP_NANO_USD, bound }, { id: busy.id, capNanoUsd: BUSY_CAP_NANO_USD, bound: 0n }];
    const restless = await rest(running, accounts);
    const findings = await check(running, accounts, seen, provider.bill, provider.doubles);
    if (restless !== undefined) findings.violations.push(`no rest: ${restless}`);
    report(seen, faults, provider.bill.size);
    say(`served from advances by the edges that live now: ${await servedFromAdvances(running)}`);
    say(`lost ${findings.lost}, double-billed ${findings.doubleBilled}, worst overspend ${findings.worstOverspend} nano-USD (bound ${bound})`);
    say(`left before the answer began ${findings.leftEarly}, of them charged for the prompt ${findings.paidPrompt}`);
    for (const violation of findings.violations.slice(0, SHOWN_MAX)) say(`VIOLATION ${violation}`);
    say(findings.violations.length === 0 ? 'Every invariant held.' : `${findings.violations.length} violations.`);
    return findings.violations.length === 0;
  } finally {
    await stop();
  }
}

function report(seen: Parameters<typeof errorWindows>[0], faults: readonly StruckFault[], billed: number): void {
  say(`requests ${seen.length}, attempts on the provider's bill ${billed}, faults ${faults.length}`);
  say(`answers: ${count(seen, (one) => (one.isWhole ? 'whole' : one.hungUp ? 'hung up' : one.status === 0 ? 'reset' : one.status === 200 ? 'cut' : `${one.status} ${one.code}`.trim())).map(([name, times]) => `${name} ${times}`).join(', ')}`);
  const windows = errorWindows(seen, faults, AFTERMATH_MS);
  for (const [kind, times] of count(faults, (fault) => fault.kind)) say(`  ${kind.padEnd(26)} ${String(times).padStart(4)}   longest error window ${((windows.get(kind) ?? 0) / 1_000).toFixed(1)} s`);
}

main().then(
  (isGood) => process.exit(isGood ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : 'unknown reason'}\n`);
    process.exit(1);
  },
);
