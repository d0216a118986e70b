/** Operator's command line over the admin door. */
import { existsSync, readFileSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import { join } from 'node:path';
import { parseCommand, usageFor, UsageError, type AdminCall } from './commands.js';
import { gatherPages } from './pages.js';
import { harmless, readable } from './readable.js';
import { parseReport } from './report.js';
import { whyUnanswered } from './unanswered.js';
import { usageTable } from './usage-table.js';
import { whatIfTable } from './what-if-table.js';

class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** As the server asks of its own. */
const TOKEN = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

function tokenOf(environment: NodeJS.ProcessEnv): string {
  const given = environment['ADMIN_TOKEN'] || undefined;
  const file = join(environment['DATA_DIR'] || '.data', 'admin-token');
  let token = given;
  try {
    token ??= readFileSync(file, 'utf8').trim();
  } catch {
    throw new Refusal('No admin token: set ADMIN_TOKEN, or DATA_DIR to where the server keeps its own.');
  }
  if (!TOKEN.test(token)) throw new Refusal(`${given === undefined ? file : 'ADMIN_TOKEN'}: must be one line of printable ASCII, without a line break or a blank at its ends.`);
  return token;
}

function baseOf(environment: NodeJS.ProcessEnv): string {
  const port = environment['ADMIN_PORT'] || '8081';
  if (!environment['ADMIN_URL'] && !/^\d{1,5}$/.test(port)) throw new Refusal('ADMIN_PORT: must be a port.');
  const base = environment['ADMIN_URL'] || `http://127.0.0.1:${port}`;
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) throw new Refusal('ADMIN_URL: must be an http or https URL.');
  return base;
}

function isObject(text: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null;
  } catch {
    return false;
  }
}

async function ask(base: string, token: string, { method, path, body, isText }: AdminCall): Promise<string> {
  let response;
  try {
    response = await fetch(new URL(path, base), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    throw new Refusal(whyUnanswered(error, base));
  }
  const text = await response.text();
  if (response.ok && (isText === true || isObject(text))) return text;
  if (response.ok) throw new Refusal(`What answers at ${base} is not the operator's door of Signalbox.`);
  let message = `The server answered ${response.status}.`;
  try {
    const parsed = JSON.parse(text) as { readonly error?: { readonly message?: unknown }; readonly problems?: readonly string[] };
    if (typeof parsed.error?.message === 'string') message = parsed.error.message;
    else if (parsed.problems !== undefined) message = parsed.problems.join('\n');
  } catch {
    // The status says it.
  }
  throw new Refusal(response.status === 401 ? `${message} It is asked for at ${base}.` : message);
}

function readReport(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new Refusal(`The file ${file} cannot be read.`);
  }
}

/** A secret given on standard input, its last line break apart. */
async function withStdin({ bodyFromStdin, ...call }: AdminCall): Promise<AdminCall> {
  if (bodyFromStdin === undefined) return call;
  const given = (await readAll(process.stdin)).replace(/\r?\n$/, '');
  if (given === '') throw new Refusal('Nothing was given on standard input.');
  return { ...call, body: { ...call.body, [bodyFromStdin]: given } };
}

async function gather(base: string, token: string, call: AdminCall): Promise<string> {
  const report = call.report === undefined ? {} : { days: parseReport(readReport(call.report)) };
  const document = call.document === undefined ? {} : { text: readReport(call.document) };
  const first = await ask(base, token, call.body === undefined ? call : { ...call, body: { ...call.body, ...report, ...document } });
  if (call.paged === undefined) return first;
  return gatherPages(first, call.paged, (after) => {
    const url = new URL(call.path, base);
    url.searchParams.set('after', after);
    return ask(base, token, { ...call, path: url.pathname + url.search });
  });
}

function forPeople(answer: Readonly<Record<string, unknown>>, shown: AdminCall['shown']): string {
  if (shown === 'what-if') return whatIfTable(answer as unknown as Parameters<typeof whatIfTable>[0]);
  if (shown === 'usage') return usageTable(answer as unknown as Parameters<typeof usageTable>[0]);
  return `${readable(answer).trimStart()}\n`;
}

async function run(): Promise<void> {
  const { call: parsed, json } = parseCommand(process.argv.slice(2));
  const call = await withStdin(parsed);
  const base = baseOf(process.env);
  const text = await gather(base, tokenOf(process.env), call);
  if (call.isText === true) {
    process.stdout.write(text);
    return;
  }
  const answer = JSON.parse(text) as Readonly<Record<string, unknown>>;
  process.stdout.write(json ? `${harmless(text)}\n` : forPeople(answer, call.shown));
  if (call.failure !== undefined && isFailure(answer, call.failure)) process.exitCode = 1;
}

function isFailure(answer: Readonly<Record<string, unknown>>, failure: NonNullable<AdminCall['failure']>): boolean {
  if ('unless' in failure) return answer[failure.unless] !== true;
  const found = answer[failure.if];
  return !Array.isArray(found) || found.length > 0;
}

// As the server does that it is to find.
if (existsSync('.env')) process.loadEnvFile('.env');
// Whoever read enough, such as `head`, has closed the pipe.
process.stdout.on('error', () => process.exit());

const HELP = new Set(['--help', '-h', 'help']);

try {
  const words = process.argv.slice(2);
  const help = words.findIndex((word, index) => HELP.has(word) && (index === 0 || word.startsWith('-')));
  if (help >= 0) process.stdout.write(usageFor(words.slice(0, help)));
  else await run();
} catch (error) {
  if (error instanceof UsageError) process.stderr.write(`${error.message} ${error.hint}\n`);
  else process.stderr.write(`${error instanceof Refusal ? error.message : 'The command failed.'}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
