/** The operator's commands: translates words and flags to one call of the admin API. */
import { parseIsoTime } from '@signalbox/kernel/iso-time';
import { CAP_NANO_USD_MAX, parseUsd } from '@signalbox/kernel/money';
import { ABOUT, valueWord } from './help.js';

/** The command line is wrong: `message` gives the problem, `hint` the correct form; both are printed on one line. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  constructor(
    message: string,
    readonly hint: string = '`help` lists all commands.',
  ) {
    super(message);
  }
}

export type PagedMember = 'rows' | 'accounts' | 'keys' | 'provider_keys' | 'events';

export interface AdminCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Paginated member of the answer; its pages are joined into one document. */
  readonly paged?: PagedMember;
  /** The answer comes in parts, the first of which is behind this account; '' = from the beginning. */
  readonly partsAfter?: string;
  /** The answer is plain text, not a JSON document. */
  readonly isText?: boolean;
  /** File with a provider's report, sent in the body as `days`. */
  readonly report?: string;
  /** Member of the body that is read from standard input, since a secret on the command line would end up in the shell's history. */
  readonly bodyFromStdin?: string;
  /** Text file, sent in the body as `text`. */
  readonly document?: string;
  /** How the answer is formatted for people. */
  readonly shown?: 'what-if' | 'usage' | 'providers' | 'reconciled';
  /** Makes the command exit with a failure if the answer has this: a member that is not true, or a list that is not empty. */
  readonly failure?: { readonly unless: string } | { readonly if: string };
}

/** `time` is sent to the API in milliseconds, `instant` as it was given. */
type FlagKind = 'text' | 'usd' | 'count' | 'big' | 'switch' | 'list' | 'time' | 'instant';
/** Value that removes a setting, so that the tier's default applies again. */
const NONE = 'none';
/** Values that people write after a switch with a space instead of `=`. */
const SWITCHED: ReadonlySet<string> = new Set(['true', 'false', 'on', 'off', 'yes', 'no', NONE]);
const DAY_MS = 86_400_000;
const DAY = /^\d{4}-\d\d-\d\d$/;
const REMOVABLE: ReadonlySet<string> = new Set(['cost-cap-usd', 'included-tokens', 'byok-tokens', 'overage-usd-per-million', 'rpm', 'burst', 'trial-credit-usd', 'baseline-model', 'variant', 'allowed-models']);
/** Flags that may be repeated: each pair is one cap. */
const REPEATABLE: ReadonlySet<string> = new Set(['cost-cap-usd', 'cost-cap-period']);
const SETTINGS: Readonly<Record<string, readonly [FlagKind, string]>> = {
  name: ['text', 'name'], tier: ['text', 'tier'], 'cost-cap-usd': ['usd', 'cost_cap_usd'], 'cost-cap-period': ['text', 'cost_cap_period'], 'hard-cap': ['switch', 'hard_cap'],
  'included-tokens': ['big', 'included_tokens'], 'byok-tokens': ['big', 'byok_tokens'], 'overage-usd-per-million': ['usd', 'overage_usd_per_million'], rpm: ['count', 'requests_per_minute'], burst: ['count', 'burst_per_second'],
  'trial-credit-usd': ['usd', 'trial_credit_usd'], 'baseline-model': ['text', 'baseline_model'], variant: ['text', 'variant'], 'store-answers': ['switch', 'store_answers'],
};
/** Units of whole numbers that are not obvious from the flag. */
const COUNTED: Readonly<Record<string, string>> = { 'expires-in': ' of seconds', 'included-tokens': ' of tokens', 'byok-tokens': ' of tokens', 'grace-seconds': ' of seconds' };
const KEY_LIMITS = { rpm: ['count', 'requests_per_minute'], 'cost-cap-usd': ['usd', 'cost_cap_usd'], 'cost-cap-period': ['text', 'cost_cap_period'], 'allowed-models': ['list', 'allowed_models'] } as const;
const ACCOUNT = { account: ['text', 'account'] } as const;

const DOCUMENT = { file: ['text', 'file'], title: ['text', 'title'], author: ['text', 'author'], url: ['text', 'url'], language: ['text', 'language'] } as const;

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
/** Returns the body; throws if it is empty, so that a mistyped command does not look like a successful change. */
function changed(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (Object.keys(body).length === 0) throw new UsageError('Nothing is to be changed.');
  return body;
}
/** Repeated pairs of `--cost-cap-usd` and `--cost-cap-period` become a list of caps. */
function withCaps(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { cost_cap_usd: amounts, cost_cap_period: periods, ...rest } = body;
  if (!Array.isArray(amounts) && !Array.isArray(periods)) return body;
  if (!Array.isArray(amounts) || !Array.isArray(periods) || amounts.length !== periods.length || amounts.includes(null)) throw new UsageError('Each of several --cost-cap-usd needs a --cost-cap-period.');
  return { ...rest, cost_caps: amounts.map((cap: unknown, index) => ({ cap_usd: cap, period: periods[index] as unknown })) };
}
const plain = (method: AdminCall['method'], path: string, paged?: PagedMember): Command => ({ flags: {}, required: [], takesId: false, build: () => ({ method, path, ...(paged === undefined ? {} : { paged }) }) });
const one = (method: AdminCall['method'], path: (id: string) => string): Command => ({ flags: {}, required: [], takesId: true, build: (_values, id) => ({ method, path: path(encodeURIComponent(id)) }) });

const COMMANDS: Readonly<Record<string, Command>> = {
  'account create': { flags: SETTINGS, required: ['name', 'tier'], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/accounts', body: withCaps(body) }) },
  'account set': { flags: SETTINGS, required: [], takesId: true, build: (body, id) => ({ method: 'PATCH', path: `/admin/accounts/${encodeURIComponent(id)}`, body: withCaps(changed(body)) }) },
  'account show': one('GET', (id) => `/admin/accounts/${id}`),
  'account list': plain('GET', '/admin/accounts', 'accounts'),
  'account suspend': one('POST', (id) => `/admin/accounts/${id}/suspend`),
  'account resume': one('POST', (id) => `/admin/accounts/${id}/resume`),
  'key create': {
    flags: { account: ['text', 'account_id'], name: ['text', 'name'], 'expires-in': ['count', 'expires_in'], scopes: ['list', 'scopes'], ...KEY_LIMITS },
    required: ['account', 'name'], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/keys', body: withCaps(body) }),
  },
  'key set': {
    flags: { name: ['text', 'name'], ...KEY_LIMITS, disabled: ['switch', 'disabled'] },
    required: [], takesId: true, build: (body, id) => ({ method: 'PATCH', path: `/admin/keys/${encodeURIComponent(id)}`, body: withCaps(changed(body)) }),
  },
  'key rotate': { flags: { 'grace-seconds': ['count', 'grace_seconds'] }, required: [], takesId: true, build: (body, id) => ({ method: 'POST', path: `/admin/keys/${encodeURIComponent(id)}/rotate`, body }) },
  'key list': { flags: ACCOUNT, required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/keys${query(values)}`, paged: 'keys' }) },
  'key revoke': { flags: { compromised: ['switch', 'compromised'] }, required: [], takesId: true, build: (values, id) => ({ method: 'DELETE', path: `/admin/keys/${encodeURIComponent(id)}${query(values)}` }) },
  'byok set': {
    flags: { account: ['text', 'account_id'], provider: ['text', 'provider'], 'secret-stdin': ['switch', 'secret'], zdr: ['switch', 'zdr'], 'base-url': ['text', 'base_url'] },
    required: ['account', 'provider', 'secret-stdin'], takesId: false,
    build: ({ secret: _secret, ...body }) => ({ method: 'PUT', path: '/admin/byok', body, bodyFromStdin: 'secret' }),
  },
  'byok list': { flags: ACCOUNT, required: [], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/byok${query(values)}`, paged: 'provider_keys' }) },
  'byok remove': { flags: { ...ACCOUNT, provider: ['text', 'provider'] }, required: ['account', 'provider'], takesId: false, build: (values) => ({ method: 'DELETE', path: `/admin/byok${query(values)}` }) },
  quota: { flags: ACCOUNT, required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/quota${query(values)}` }) },
  usage: {
    flags: { by: ['text', 'group_by'], ...ACCOUNT, from: ['instant', 'from'], to: ['instant', 'to'], model: ['text', 'model'], provider: ['text', 'provider'], key: ['text', 'key'], limit: ['count', 'limit'] },
    required: [], takesId: false,
    build: (values) => ({ method: 'GET', path: `/admin/usage${query({ ...values, ...(values['group_by'] === 'day' ? {} : { order: 'cost' }) })}`, shown: 'usage' }),
  },
  request: one('GET', (id) => `/admin/requests/${id}`),
  ledger: {
    flags: { ...ACCOUNT, from: ['time', 'from_ms'], to: ['time', 'to_ms'], after: ['big', 'after'] },
    required: ['account'], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/ledger${query(values)}`, paged: 'rows' }),
  },
  'ledger verify': {
    flags: { ...ACCOUNT, after: ['text', 'after'] },
    required: [], takesId: false,
    build: ({ after = '', ...values }) => {
      const call = { method: 'GET', path: `/admin/ledger/verify${query(values)}`, failure: { unless: 'ok' } } as const;
      if (values['account'] === undefined) return { ...call, partsAfter: String(after) };
      if (after !== '') throw new UsageError('--after goes on with all accounts: leave out --account.');
      return call;
    },
  },
  'ledger recount': {
    flags: { account: ['text', 'account_id'], closed: ['switch', 'closed'] },
    required: [], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/ledger/recount', body, failure: { unless: 'ok' } }),
  },
  'ledger cost': {
    flags: { request: ['text', 'request_id'], attempt: ['count', 'attempt'], 'cost-usd': ['usd', 'cost_usd'], reason: ['text', 'reason'] },
    required: ['request', 'attempt', 'cost-usd', 'reason'], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/ledger/cost', body }),
  },
  'search add': {
    flags: DOCUMENT, required: ['file', 'url'], takesId: false, build: ({ file, ...body }) => ({ method: 'POST', path: '/admin/sources', body: { corpus: 'web', ...body }, document: String(file) }),
  },
  'search list': plain('GET', '/admin/sources?corpus=web'),
  'search remove': one('DELETE', (id) => `/admin/sources?corpus=web&key=${id}`),
  'book import': {
    flags: { ...DOCUMENT, id: ['text', 'key'] }, required: ['file'], takesId: false, build: ({ file, ...body }) => ({ method: 'POST', path: '/admin/sources', body: { corpus: 'books', ...body }, document: String(file) }),
  },
  'book list': plain('GET', '/admin/sources?corpus=books'),
  'book remove': one('DELETE', (id) => `/admin/sources?corpus=books&key=${id}`),
  reconcile: { flags: {}, required: [], takesId: false, build: () => ({ method: 'POST', path: '/admin/reconcile', shown: 'reconciled' }) },
  'reconcile import': {
    flags: { provider: ['text', 'provider'], file: ['text', 'file'] },
    required: ['provider', 'file'], takesId: false, build: ({ provider, file }) => ({ method: 'POST', path: '/admin/provider-usage', body: { provider }, report: String(file) }),
  },
  statement: {
    flags: { ...ACCOUNT, period: ['text', 'period'], csv: ['switch', 'csv'] },
    required: ['account', 'period'], takesId: false,
    build: ({ account, period, csv }) => ({ method: 'GET', path: `/admin/statement${query({ account, period, ...(csv === true ? { format: 'csv' } : {}) })}`, isText: csv === true }),
  },
  'period close': plain('POST', '/admin/periods/close'),
  'dead list': { flags: { after: ['big', 'after'] }, required: [], takesId: false, build: (values) => ({ method: 'GET', path: `/admin/dead-events${query(values)}`, paged: 'events' }) },
  'dead resolve': { flags: { note: ['text', 'note'] }, required: ['note'], takesId: true, build: (body, id) => ({ method: 'POST', path: `/admin/dead-events/${encodeURIComponent(id)}/resolve`, body }) },
  watermarks: plain('GET', '/admin/watermarks'),
  'writer lost': { flags: { note: ['text', 'note'] }, required: ['note'], takesId: true, build: (body, id) => ({ method: 'POST', path: `/admin/writers/${encodeURIComponent(id)}/lost`, body }) },
  providers: { flags: {}, required: [], takesId: false, build: () => ({ method: 'GET', path: '/admin/providers', shown: 'providers' }) },
  decision: one('GET', (id) => `/admin/decisions/${id}`),
  'what-if': {
    flags: {
      ...ACCOUNT, limit: ['count', 'limit'], mode: ['text', 'mode'], lambda: ['text', 'lambda'], 'baseline-model': ['text', 'baseline_model'], 'allow-models': ['list', 'allow_models'], 'deny-models': ['list', 'deny_models'],
      'allow-providers': ['list', 'allow_providers'], 'deny-providers': ['list', 'deny_providers'], catalog: ['text', 'catalog'],
    },
    required: [], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/what-if', body, shown: 'what-if' }),
  },
  'quality show': plain('GET', '/admin/quality'),
  'quality rollback': plain('POST', '/admin/quality/rollback'),
  'catalog show': plain('GET', '/admin/catalog'),
  'catalog check': { flags: {}, required: [], takesId: false, build: () => ({ method: 'POST', path: '/admin/catalog/check', failure: { if: 'problems' } }) },
  'catalog reload': { flags: { 'take-prices': ['switch', 'take_prices'] }, required: [], takesId: false, build: (body) => ({ method: 'POST', path: '/admin/catalog/reload', body }) },
};

/** True for commands that change something existing: settings can be removed with `none`, and switches with `=false`. */
const takesOff = (command: string): boolean => command === 'account set' || command === 'key set';
const flagOf = (name: string, flag: string, kind: FlagKind): string => (kind === 'switch' ? `--${flag}${takesOff(name) ? '[=false]' : ''}` : `--${flag} ${valueWord(flag, kind)}`);
const usageOf = (name: string, command: Command): string =>
  `${name}${command.takesId ? ' ID' : ''}${Object.entries(command.flags).map(([flag, [kind]]) => (command.required.includes(flag) ? ` ${flagOf(name, flag, kind)}` : ` [${flagOf(name, flag, kind)}]`)).join('')}`;

/** Usage of the commands that begin with these words; of all if there are none. */
export function usageFor(words: readonly string[]): string {
  const asked = words.join(' ');
  const named = Object.entries(COMMANDS).filter(([name]) => name === asked || name.startsWith(`${asked} `));
  return `usage: admin <command> [--json]\n${(named.length > 0 ? named : Object.entries(COMMANDS)).map(([name, command]) => `  ${usageOf(name, command)}\n      ${ABOUT[name] ?? ''}\n`).join('')}`;
}

/** Unix seconds, or a date or time as in ISO 8601; a date as `to` means the whole day, as in the public interface. */
function msOf(flag: string, text: string): number {
  const begins = /^\d{1,11}$/.test(text) ? Number(text) * 1_000 : parseIsoTime(text);
  const ms = flag === 'to' && DAY.test(text) ? begins + DAY_MS : begins;
  if (!Number.isFinite(ms) || ms < 0) throw new UsageError(`--${flag} must be Unix seconds or an ISO 8601 time.`);
  return ms;
}

/** A day ends where the next one begins, exclusive. */
const isAfter = (from: string, to: string): boolean => (DAY.test(to) ? msOf('from', from) >= msOf('to', to) : msOf('from', from) > msOf('to', to));

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
    if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${flag} must be a whole number${COUNTED[flag] ?? ''}.`);
    return kind === 'count' ? Number(text) : text;
  }
  // No data is from before 1970, and 0 would mean no bound.
  if (kind === 'time') return String(Math.max(msOf(flag, text), flag === 'to' ? 1 : 0));
  if (kind === 'instant') msOf(flag, text);
  return kind === 'list' ? text.split(',').map((part) => part.trim()).filter((part) => part !== '') : text;
}

/** What the server calls a flag's member elsewhere: in the list that repeated pairs of caps become, and in a query instead of a body. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = { 'cost-cap-usd': ['cost_caps\\.\\d+\\.cap_usd'], 'cost-cap-period': ['cost_caps\\.\\d+\\.period', 'cost_caps'], account: ['account'] };

/** Replaces members by flags, only at the beginning of a sentence. */
const inFlags = ({ flags }: Command, sentence: string): string =>
  Object.entries(flags).reduce((told, [flag, [, field]]) => told.replace(new RegExp(`(?<=^|[.] )(?:limits\\.)?(?:${[field, ...(OTHER_NAMES[flag] ?? [])].join('|')})(?=:| names?\\b| must\\b| has\\b| is\\b)`, 'g'), `--${flag}`), sentence);

export interface Parsed {
  readonly call: AdminCall;
  readonly json: boolean;
  /** Replaces names of body and query members in a server's sentence by the command's flags. */
  inFlags(sentence: string): string;
}

/** Throws a UsageError, one line for a person, on unknown commands and flags. */
export function parseCommand(words: readonly string[]): Parsed {
  const rest = words.filter((word) => word !== '--json');
  const pair = rest.slice(0, 2).join(' ');
  const name = Object.hasOwn(COMMANDS, pair) ? pair : (rest[0] ?? '');
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (rest.length === 0) throw new UsageError('A command is missing.');
  if (command === undefined) {
    const near = Object.keys(COMMANDS).filter((known) => known.startsWith(`${name} `));
    throw near.length === 0 ? new UsageError('Unknown command.') : new UsageError('Unknown command.', `There are: ${near.join(', ')}.`);
  }
  try {
    const call = callOf(name, command, rest.slice(name.split(' ').length));
    const json = rest.length !== words.length;
    if (json && call.isText === true) throw new UsageError('--csv and --json are two forms: name one.');
    return { call, json, inFlags: (sentence) => inFlags(command, sentence) };
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.message, `Usage: ${usageOf(name, command)}`);
    throw error;
  }
}

function callOf(name: string, command: Command, queue: string[]): AdminCall {
  const values: Record<string, unknown> = {};
  const given = new Map<string, string>();
  const ids: string[] = [];
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (!word.startsWith('--')) {
      ids.push(word);
      continue;
    }
    const [flag = '', inline] = word.slice(2).split(/=(.*)/s);
    const known = Object.hasOwn(command.flags, flag) ? command.flags[flag] : undefined;
    if (known === undefined) throw new UsageError(`Unknown flag --${flag}.`);
    const [kind, field] = known;
    if (given.has(flag) && !REPEATABLE.has(flag)) throw new UsageError(`--${flag} stands twice.`);
    if (kind === 'switch') {
      given.set(flag, '');
      if (inline === undefined && SWITCHED.has(queue[0] ?? '')) throw new UsageError(`--${flag} takes a value behind = alone: --${flag}=false takes it off.`);
      if (inline !== undefined && inline !== 'true' && inline !== 'false') throw new UsageError(`--${flag} is true or false.`);
      values[field] = inline !== 'false';
      continue;
    }
    // A word that begins with -- is the next flag, not a value; `--name=--x` passes such a value.
    const value = inline ?? (queue[0]?.startsWith('--') === true ? undefined : queue.shift());
    if (value === undefined || value === '') throw new UsageError(`--${flag} needs a value.`);
    given.set(flag, value);
    const read = value === NONE && REMOVABLE.has(flag) && takesOff(name) ? null : valueOf(flag, kind, value);
    const before = values[field];
    values[field] = !REPEATABLE.has(flag) || before === undefined ? read : Array.isArray(before) ? [...(before as unknown[]), read] : [before, read];
  }
  const missing = command.required.find((flag) => !given.has(flag) || values[command.flags[flag]?.[1] ?? ''] === false);
  if (missing !== undefined) throw new UsageError(`--${missing} is required.`);
  if (ids.length !== (command.takesId ? 1 : 0) || ids.includes('')) throw new UsageError(command.takesId ? 'One ID is required.' : 'Too many words.');
  const [from, to] = [given.get('from'), given.get('to')];
  if (from !== undefined && to !== undefined && isAfter(from, to)) throw new UsageError('--from must not be after --to.');
  return command.build(values, ids[0] ?? '');
}
