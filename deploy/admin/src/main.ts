/** Operator's command line over the admin door. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCommand, USAGE, UsageError, type AdminCall } from './commands.js';

/** Pages of a ledger followed at most; beyond, `next` says where to go on. */
const PAGES_MAX = 200;

class Refusal extends Error {
  override readonly name = 'Refusal';
}

function tokenOf(environment: NodeJS.ProcessEnv): string {
  const given = environment['ADMIN_TOKEN'];
  if (given !== undefined && given !== '') return given;
  try {
    return readFileSync(join(environment['DATA_DIR'] ?? '.data', 'admin-token'), 'utf8').trim();
  } catch {
    throw new Refusal('No admin token: set ADMIN_TOKEN, or DATA_DIR to where the server keeps its own.');
  }
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

async function gather(base: string, token: string, call: AdminCall): Promise<string> {
  const first = await ask(base, token, call);
  if (call.paged === undefined) return first;
  const document = JSON.parse(first) as { rows: unknown[]; next: number | null };
  for (let page = 1; document.next !== null && page < PAGES_MAX; page += 1) {
    const url = new URL(call.path, base);
    url.searchParams.set('after', String(document.next));
    const more = JSON.parse(await ask(base, token, { ...call, path: url.pathname + url.search })) as { rows: unknown[]; next: number | null };
    document.rows = document.rows.concat(more.rows);
    document.next = more.next;
  }
  return JSON.stringify(document);
}

/** One line a member, nested ones indented. */
function readable(value: unknown, indent = ''): string {
  if (Array.isArray(value)) return value.length === 0 ? ' none' : value.map((entry: unknown) => (typeof entry === 'object' ? `\n${indent}-${readable(entry, `${indent}  `)}` : `\n${indent}- ${String(entry)}`)).join('');
  if (typeof value === 'object' && value !== null) return Object.entries(value).map(([name, member]) => `\n${indent}${name}:${readable(member, `${indent}  `)}`).join('');
  return value === null ? ' -' : ` ${String(value)}`;
}

try {
  const { call, json } = parseCommand(process.argv.slice(2));
  const base = process.env['ADMIN_URL'] ?? `http://127.0.0.1:${process.env['ADMIN_PORT'] ?? '8081'}`;
  const text = await gather(base, tokenOf(process.env), call);
  process.stdout.write(json ? `${text}\n` : `${readable(JSON.parse(text)).trimStart()}\n`);
} catch (error) {
  if (error instanceof UsageError) process.stderr.write(`${error.message}\n${USAGE}`);
  else process.stderr.write(`${error instanceof Refusal ? error.message : 'The command failed.'}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
