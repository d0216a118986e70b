/** The operator's command line, over the admin API. */
import { loadEnvFile } from '@signalbox/runtime/env-file';
import { text as readAll } from 'node:stream/consumers';
import { parseCommand, usageFor, UsageError, type AdminCall } from './commands.js';
import { baseOf, Refusal, tokenOf } from './door.js';
import { withHint } from './hints.js';
import { gatherPages, writePages } from './pages.js';
import { gatherParts } from './parts.js';
import { providersTable } from './providers-table.js';
import { harmless, harmlessLines, readable } from './readable.js';
import { reconciled } from './reconciled.js';
import { whyRefused } from './refused.js';
import { parseReport } from './report.js';
import { readText } from './text-file.js';
import { whyUnanswered } from './unanswered.js';
import { usageTable } from './usage-table.js';
import { whatIfTable } from './what-if-table.js';

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
  throw new Refusal(whyRefused(response.status, text, base));
}

/** Reads a secret from standard input, without the final line break. */
async function withStdin({ bodyFromStdin, ...call }: AdminCall): Promise<AdminCall> {
  if (bodyFromStdin === undefined) return call;
  const given = (await readAll(process.stdin)).replace(/\r?\n$/, '');
  if (given === '') throw new Refusal('Nothing was given on standard input.');
  return { ...call, body: { ...call.body, [bodyFromStdin]: given } };
}

/** Fetches what a call answers; undefined if it was written already, page by page. */
async function gather(base: string, token: string, call: AdminCall, json: boolean): Promise<string | undefined> {
  const report = call.report === undefined ? {} : { days: parseReport(readText(call.report)) };
  const document = call.document === undefined ? {} : { text: readText(call.document) };
  const next = (after: string): Promise<string> => {
    const url = new URL(call.path, base);
    url.searchParams.set('after', after);
    return ask(base, token, { ...call, path: url.pathname + url.search });
  };
  if (call.partsAfter !== undefined) return gatherParts(call.partsAfter, next, (line) => void process.stderr.write(`${harmlessLines(line)}\n`));
  const first = await ask(base, token, call.body === undefined ? call : { ...call, body: { ...call.body, ...report, ...document } });
  if (call.paged === undefined) return first;
  if (call.paged !== 'rows' || !json) return gatherPages(first, call.paged, next);
  await writePages(first, call.paged, next, (text) => void process.stdout.write(harmless(text)));
  process.stdout.write('\n');
  return undefined;
}

function forPeople(answer: Readonly<Record<string, unknown>>, shown: AdminCall['shown']): string {
  if (shown === 'what-if') return whatIfTable(answer as unknown as Parameters<typeof whatIfTable>[0]);
  if (shown === 'usage') return usageTable(answer as unknown as Parameters<typeof usageTable>[0]);
  if (shown === 'providers') return providersTable(answer as unknown as Parameters<typeof providersTable>[0]);
  const told = shown === 'reconciled' ? reconciled(answer as unknown as Parameters<typeof reconciled>[0]) : answer;
  return `${readable(told).trimStart()}\n`;
}

async function run(): Promise<void> {
  const { call: parsed, json, inFlags } = parseCommand(process.argv.slice(2));
  const call = await withStdin(parsed);
  const base = baseOf(process.env);
  const text = await gather(base, tokenOf(process.env), call, json).catch((error: unknown) => {
    throw error instanceof Refusal ? new Refusal(withHint(inFlags(error.message))) : error;
  });
  if (text === undefined) return;
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

// The same .env file as the server's.
const unread = loadEnvFile(process.env);
// A reader such as `head` may close the pipe early; anything else, such as a full disk, leaves half an answer.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`The answer could not be written whole (${error.code ?? 'unknown'}).\n`);
  process.exit(1);
});

const HELP = new Set(['--help', '-h', 'help']);

try {
  const words = process.argv.slice(2);
  const help = words.findIndex((word, index) => HELP.has(word) && (index === 0 || word.startsWith('-')));
  if (help >= 0) process.stdout.write(usageFor(help === 0 ? words.slice(1) : words.slice(0, help)));
  else if (unread !== undefined) throw new Refusal(unread);
  else await run();
} catch (error) {
  // The message may contain text from the command line or the server.
  const told = error instanceof UsageError ? `${error.message} ${error.hint}` : error instanceof Refusal ? error.message : 'The command failed.';
  process.stderr.write(`${harmlessLines(told)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
