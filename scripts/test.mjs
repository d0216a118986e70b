// npm test: from a fresh clone to all tests, against real stores. Arguments go to jest.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import jestConfig from '../jest.config.mjs';
import { ensureDashboard } from './build-dashboard.mjs';
import { bundlePrograms } from './bundle.mjs';
import { forgetOtherBuild } from './ensure-built.mjs';
import { digestOfLock, install, installStampOf, isInstalled, needNode, root } from './dependencies.mjs';
import { alone } from './work-lock.mjs';

const say = (line) => process.stdout.write(`${line}\n`);
const VARIABLES = { postgres: 'TEST_DATABASE_URL', redis: 'TEST_REDIS_URL', nats: 'TEST_NATS_URL' };
const requireReal = process.env.REQUIRE_REAL_STORES === '1';
const requireBrowser = process.env.REQUIRE_BROWSER === '1';
let stores;
const running = new Set();
let interrupted = false;

function interrupt() {
  interrupted = true;
  for (const jest of running) jest.kill('SIGTERM');
}
process.on('SIGINT', interrupt);
process.on('SIGTERM', interrupt);

const given = process.argv.slice(2);
const folders = jestConfig.roots.map((folder) => join(root, folder.replace('<rootDir>', '')));
const ofGateways = join(root, 'tests');
/** Suites that start the split system, a dozen processes. */
const ofSplit = join(ofGateways, 'src/split');
/** Mostly waits, a minute, for providers that hang, so it can run at the same time as the small tests. */
const ofWires = join(ofGateways, 'src/conformance/wires');
/** Suites that measure a second or less, or load the whole machine: they must run alone. */
const ALONE = '\\.alone\\.test\\.ts$';

/** Passes run one after the other; the entries of one pass run at the same time. Gateway suites mostly wait, so one of the split system runs beside one of the others. */
function passesOf() {
  if (given.length > 0) return [[given]];
  const without = (...patterns) => [...jestConfig.testPathIgnorePatterns, ...patterns].map((pattern) => `--testPathIgnorePatterns=${pattern}`);
  return [
    [folders.filter((folder) => folder !== ofGateways), [ofWires, '--runInBand']],
    [[ofSplit, '--runInBand', ...without(ALONE)], [ofGateways, '--runInBand', ...without(`${ofSplit}/`, ofWires, ALONE)]],
    [[`${ofGateways}/.*${ALONE}`, '--runInBand']],
  ];
}

function runJest(environment, resultFile, passArguments) {
  return new Promise((resolve) => {
    const args = [join(root, 'node_modules/jest/bin/jest.js'), '--config', join(root, 'jest.config.mjs'), '--json', `--outputFile=${resultFile}`, '--passWithNoTests', '--verbose=false', ...passArguments];
    // jest's JSON goes to the file; its progress is on stderr.
    const jest = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2], env: environment });
    running.add(jest);
    const end = (code) => {
      running.delete(jest);
      resolve(code ?? 1);
    };
    jest.on('error', () => end(1));
    jest.on('exit', end);
  });
}

const REASONS_MAX = 20;

/** Lists each distinct failure once, with the number of tests, so that the end of a long output shows the reasons. */
function reasons({ testResults }) {
  const counts = new Map();
  for (const suite of testResults) {
    const messages = suite.assertionResults.flatMap(({ failureMessages }) => failureMessages.slice(0, 1));
    for (const message of messages.length > 0 || suite.status !== 'failed' ? messages : [suite.message]) {
      const reason = `${relative(root, suite.name)}: ${message.split('\n').filter((line) => !/^\s*at /.test(line)).slice(0, 12).join(' | ').slice(0, 600)}`;
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
  }
  const lines = [...counts].map(([reason, count]) => `FAILED ${count}× ${reason}`);
  return lines.length > REASONS_MAX ? [...lines.slice(0, REASONS_MAX), `… and ${lines.length - REASONS_MAX} other reasons.`] : lines;
}

const SLOWEST = 8;

/** Lists the suites by duration, longest first. */
function slowest(resultFiles) {
  const suites = resultFiles.filter((file) => existsSync(file)).flatMap((file) => JSON.parse(readFileSync(file, 'utf8')).testResults);
  const seconds = ({ startTime, endTime }) => (endTime - startTime) / 1_000;
  return suites.sort((a, b) => seconds(b) - seconds(a)).slice(0, SLOWEST).map((suite) => `${seconds(suite).toFixed(0)} s ${relative(root, suite.name)}`);
}

function readCounts(resultFile) {
  if (!existsSync(resultFile)) return { passed: 0, failed: 1, skipped: 0 };
  const result = JSON.parse(readFileSync(resultFile, 'utf8'));
  // A suite that could not run has no failed tests.
  const dead = result.testResults.filter((suite) => suite.status === 'failed' && !suite.assertionResults.some((test) => test.status === 'failed')).length;
  for (const line of reasons(result)) say(line);
  return { passed: result.numPassedTests, failed: result.numFailedTests + dead, skipped: result.numPendingTests + (result.numTodoTests ?? 0) };
}

/** Throws with npm's own reason when it fails. */
async function ensureInstalled() {
  if (!isInstalled()) {
    process.stderr.write('Installing dependencies (npm ci) …\n');
    const reason = await install();
    if (reason !== undefined) throw new Error(reason);
  }
  writeFileSync(installStampOf(), digestOfLock());
}

/** Runs `tsc -b`, which itself skips what is up to date. Returns whether it succeeded; output goes to stderr. */
const build = (projects = []) => spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', ...projects], { cwd: root, stdio: ['ignore', 2, 2] }).status === 0;

/** Returns which parts of the build succeeded. */
async function prepare() {
  await ensureInstalled();
  say('Building …');
  forgetOtherBuild();
  const isBuilt = build();
  if (!isBuilt) {
    say('The build FAILED: counted as one failure; tests run all the same.');
    // The starter of the stores is needed in any case.
    build(['libs/local-stores']);
  }
  // Gateways are tested as they are started by default, from their bundles.
  const isBundled = isBuilt && (await bundlePrograms());
  // If the dashboard is missing, tests of its pages fail with that reason.
  await ensureDashboard();
  return { isBuilt, isBundled };
}

async function main() {
  // Take the lock, since a start in the same folder also installs and builds.
  const { isBuilt, isBundled } = await alone(prepare);
  const { findStores } = await import('../libs/local-stores/dist/find.js');
  stores = await findStores({ databaseUrl: process.env.TEST_DATABASE_URL, redisUrl: process.env.TEST_REDIS_URL, natsUrl: process.env.TEST_NATS_URL });
  say(stores.missing.length === 0 ? `Real stores: ${stores.summary}.` : `WARNING: NOT COVERED: tests of ${stores.missing.join(', ')} need a real store that is not here. ${stores.summary}.`);
  const { findChromium } = await import('../libs/local-stores/dist/chromium.js');
  const chromium = findChromium({ given: process.env.CHROMIUM_PATH, mayDownload: requireBrowser });
  say(chromium === undefined ? 'WARNING: NOT COVERED: tests of the dashboard need Chromium, which is not here. Set CHROMIUM_PATH.' : `Chromium: ${chromium.origin}.`);
  if (interrupted) return { passed: 0, failed: 1, skipped: 0 };
  const environment = { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`.trim() };
  for (const [store, { url }] of Object.entries(stores.stores)) environment[VARIABLES[store]] = url;
  if (isBundled) environment.TEST_BUNDLED = '1';
  // If the stores' programs are available locally, each gateway starts its own.
  if (['redis', 'nats'].every((store) => ['local', 'downloaded'].includes(stores.stores[store]?.origin))) environment.TEST_OWN_STORES = '1';
  if (chromium !== undefined) Object.assign(environment, { CHROMIUM_PATH: chromium.executable, CHROMIUM_ENVIRONMENT: JSON.stringify(chromium.environment) });
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-jest-'));
  try {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    let code = 0;
    for (const [index, beside] of passesOf().entries()) {
      const files = beside.map((_, lane) => join(folder, `result-${index}-${lane}.json`));
      const began = Date.now();
      const codes = await Promise.all(beside.map((passArguments, lane) => runJest(environment, files[lane], passArguments)));
      code = codes.find((each) => each !== 0) ?? code;
      for (const counted of files.map(readCounts)) for (const name of ['passed', 'failed', 'skipped']) counts[name] += counted[name];
      say(`${((Date.now() - began) / 1_000).toFixed(0)} s; the slowest suites: ${slowest(files).join(', ')}.`);
      if (interrupted) break;
    }
    if (!isBuilt || !isBundled) counts.failed += 1;
    if (requireReal && stores.missing.length > 0) {
      say(`REQUIRE_REAL_STORES=1, and ${stores.missing.join(', ')} is missing: counted as a failure.`);
      counts.failed += 1;
    }
    if (requireBrowser && chromium === undefined) {
      say('REQUIRE_BROWSER=1, and Chromium is missing: counted as a failure.');
      counts.failed += 1;
    }
    // jest itself failed, for example because a worker crashed or it was interrupted.
    if (code !== 0 && counts.failed === 0) counts.failed = 1;
    return counts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

needNode();
let counts;
try {
  counts = await main();
} catch (error) {
  say(`npm test could not run: ${error instanceof Error ? error.message : 'unknown reason'}`);
  counts = { passed: 0, failed: 1, skipped: 0 };
} finally {
  await stores?.stop();
}
const line = `${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`;
process.stdout.write(`${line}\n`, () => process.exit(counts.failed > 0 ? 1 : 0));
