/** The operator's commands: words and flags to one call of the admin door. */
import { CAP_NANO_USD_MAX, parseUsd } from '@signalbox/kernel/money';

/** The command line is wrong: `message` says how. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface AdminCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Pages by `next` are gathered into one document. */
  readonly paged?: 'ledger';
}

type FlagKind = 'text' | 'usd' | 'count' | 'big' | 'switch' | 'list' | 'time';
const SETTINGS: Readonly<Record<string, readonly [FlagKind, string]>> = {
  name: ['text', 'name'], tier: ['text', 'tier'], 'cost-cap-usd': ['usd', 'cost_cap_usd'], 'cost-cap-period': ['text', 'cost_cap_period'], 'hard-cap': ['switch', 'hard_cap'],
  'included-tokens': ['big', 'included_tokens'], 'overage-usd-per-million': ['usd', 'overage_usd_per_million'], rpm: ['count', 'requests_per_minute'], burst: ['count', 'burst_per_second'],
  'trial-credit-usd': ['usd', 'trial_credit_usd'], 'baseline-model': ['text', 'baseline_model'], variant: ['text', 'variant'],
};
const ACCOUNT = { account: ['text', 'account'] } as const;

interface Command {
  readonly flags: Readonly<Record<string, readonly [FlagKind, string]>>;
  readonly required: readonly string[];
  readonly takesId: boolean;
  build(values: Readonly<Record<string, unknown>>, id: string): AdminCall;
}

function query(values: Readonly<Record<string, unknown>>): string {
  const text = new URLSearchParams(Object.entries(values).map(([name, value]): [string, string] => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
const plain = (method: AdminCall['method'], path: string): Command => ({ flags: {}, required: [], takesId: false, build: () => ({ method, path }) });
const one = (method: AdminCall['method'], path: (id: string) => string): Command => ({ flags: {}, required: [], takesId: true, build: (_values, id) => ({ method, path: path(encodeURIComponent(id)) }) });

const COMMANDS: Readonly<Record<string, Command>> = {
  'account create': { flags: SETTINGS, required: ['name', 'tier'], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/accounts', body }) },
  'account set': { flags: SETTINGS, required: [], takesId: true, build: (body, id) => ({ method: 'PATCH', path: `/admin/accounts/${encodeURIComponent(id)}`, body }) },
  'account show': one('GET', (id) => `/admin/accounts/${id}`),
  'account list': plain('GET', '/admin/accounts'),
  'account suspend': one('POST', (id) => `/admin/accounts/${id}/suspend`),
  'key create': {
    flags: { account: ['text', 'account_id'], name: ['text', 'name'], 'expires-in': ['count', 'expires_in'], scopes: ['list', 'scopes'] },
    required: ['account', 'name'], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/keys', body }),
  },
  'key list': { flags: ACCOUNT, required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/keys${query(values)}` }) },
  'key revoke': { flags: { compromised: ['switch', 'compromised'] }, required: [], takesId: true, build: (values, id) => ({ method: 'DELETE', path: `/admin/keys/${encodeURIComponent(id)}${query(values)}` }) },
  quota: { flags: ACCOUNT, required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/quota${query(values)}` }) },
  ledger: {
    flags: { ...ACCOUNT, from: ['time', 'from_ms'], to: ['time', 'to_ms'], after: ['big', 'after'] },
    required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/ledger${query(values)}`, paged: 'ledger' }),
  },
  watermarks: plain('GET', '/admin/watermarks'),
  providers: plain('GET', '/admin/providers'),
  'catalog show': plain('GET', '/admin/catalog'),
  'catalog check': plain('POST', '/admin/catalog/check'),
  'catalog reload': plain('POST', '/admin/catalog/reload'),
};

export const USAGE = `usage: admin <command> [--json]\n${Object.entries(COMMANDS)
  .map(([name, command]) => `  ${name}${command.takesId ? ' ID' : ''}${Object.entries(command.flags).map(([flag, [kind]]) => (command.required.includes(flag) ? ` --${flag} X` : kind === 'switch' ? ` [--${flag}]` : ` [--${flag} X]`)).join('')}`)
  .join('\n')}\n`;

function valueOf(flag: string, kind: FlagKind, text: string): unknown {
  if (kind === 'usd') {
    let nano: bigint;
    try {
      nano = parseUsd(text);
    } catch {
      throw new UsageError(`--${flag} must be a decimal amount of US dollars with at most nine decimals.`);
    }
    if (nano < 0n || nano > CAP_NANO_USD_MAX) throw new UsageError(`--${flag} must be from 0 to 9000000 US dollars.`);
    return text;
  }
  if (kind === 'count' || kind === 'big') {
    if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${flag} must be a whole number.`);
    return kind === 'count' ? Number(text) : text;
  }
  if (kind === 'time') {
    // Unix seconds, or a date as in ISO 8601.
    const ms = /^\d{1,11}$/.test(text) ? Number(text) * 1_000 : Date.parse(text);
    if (!Number.isFinite(ms)) throw new UsageError(`--${flag} must be Unix seconds or an ISO 8601 time.`);
    return String(ms);
  }
  return kind === 'list' ? text.split(',').map((part) => part.trim()).filter((part) => part !== '') : text;
}

/** Throws UsageError on unknown commands and flags. */
export function parseCommand(words: readonly string[]): { readonly call: AdminCall; readonly json: boolean } {
  const rest = words.filter((word) => word !== '--json');
  const pair = rest.slice(0, 2).join(' ');
  const name = Object.hasOwn(COMMANDS, pair) ? pair : (rest[0] ?? '');
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw new UsageError('Unknown command.');
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  const ids: string[] = [];
  const queue = rest.slice(name.split(' ').length);
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (!word.startsWith('--')) {
      ids.push(word);
      continue;
    }
    const [flag = '', inline] = word.slice(2).split(/=(.*)/s);
    const known = Object.hasOwn(command.flags, flag) ? command.flags[flag] : undefined;
    if (known === undefined) throw new UsageError(`Unknown flag --${flag}.`);
    const [kind, field] = known;
    given.add(flag);
    if (kind === 'switch') {
      if (inline !== undefined && inline !== 'true' && inline !== 'false') throw new UsageError(`--${flag} is true or false.`);
      values[field] = inline !== 'false';
      continue;
    }
    const value = inline ?? queue.shift();
    if (value === undefined) throw new UsageError(`--${flag} needs a value.`);
    values[field] = valueOf(flag, kind, value);
  }
  const missing = command.required.find((flag) => !given.has(flag));
  if (missing !== undefined) throw new UsageError(`--${missing} is required.`);
  if (ids.length !== (command.takesId ? 1 : 0)) throw new UsageError(command.takesId ? 'One ID is required.' : 'Too many words.');
  return { call: command.build(values, ids[0] ?? ''), json: rest.length !== words.length };
}
