/** Operator's command line over the admin door. */
import { existsSync, readFileSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import { join } from 'node:path';
import { parseCommand, USAGE, UsageError, type AdminCall } from './commands.js';
import { gatherPages } from './pages.js';
import { harmless, readable } from './readable.js';
import { parseReport } from './report.js';
import { whatIfTable } from './what-if-table.js';

class Refusal extends Error {
  override readonly name = 'Refusal';
}

function tokenOf(environment: NodeJS.ProcessEnv): string {
  const given = environment['ADMIN_TOKEN'] || undefined;
  if (given !== undefined) return given;
  try {
    return readFileSync(join(environment['DATA_DIR'] || '.data', 'admin-token'), 'utf8').trim();
  } catch {
    throw new Refusal('No admin token: set ADMIN_TOKEN, or DATA_DIR to where the server keeps its own.');
  }
}

function baseOf(environment: NodeJS.ProcessEnv): string {
  const port = environment['ADMIN_PORT'] || '8081';
  if (!environment['ADMIN_URL'] && !/^\d{1,5}$/.test(port)) throw new Refusal('ADMIN_PORT: must be a port.');
  const base = environment['ADMIN_URL'] || `http://127.0.0.1:${port}`;
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) throw new Refusal('ADMIN_URL: must be an http or https URL.');
  return base;
}

async function ask(base: string, token: string, { method, path, body }: AdminCall): Promise<string> {
  let response;
  try {
    response = await fetch(new URL(path, base), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(`The server does not answer at ${base}.`);
  }
  const text = await response.text();
  if (response.ok) return text;
  let message = `The server answered ${response.status}.`;
  try {
    const parsed = JSON.parse(text) as { readonly error?: { readonly message?: unknown }; readonly problems?: readonly string[] };
    if (typeof parsed.error?.message === 'string') message = parsed.error.message;
    else if (parsed.problems !== undefined) message = parsed.problems.join('\n');
  } catch {
    // The status says it.
  }
  throw new Refusal(message);
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

async function run(): Promise<void> {
  const { call: parsed, json } = parseCommand(process.argv.slice(2));
  const call = await withStdin(parsed);
  const base = baseOf(process.env);
  const text = await gather(base, tokenOf(process.env), call);
  process.stdout.write(call.isText === true ? text : json ? `${harmless(text)}\n` : call.shown === 'what-if' ? whatIfTable(JSON.parse(text) as Parameters<typeof whatIfTable>[0]) : `${readable(JSON.parse(text)).trimStart()}\n`);
}

// As the server does that it is to find.
if (existsSync('.env')) process.loadEnvFile('.env');
// Whoever read enough, such as `head`, has closed the pipe.
process.stdout.on('error', () => process.exit());

const HELP = new Set(['--help', '-h', 'help']);

try {
  if (HELP.has(process.argv[2] ?? '')) process.stdout.write(USAGE);
  else await run();
} catch (error) {
  if (error instanceof UsageError) process.stderr.write(`${error.message} ${error.hint}\n`);
  else process.stderr.write(`${error instanceof Refusal ? error.message : 'The command failed.'}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
