import { describe, expect, test } from '@jest/globals';
import { parseCommand, usageFor, UsageError } from './commands.js';
import { ABOUT } from './help.js';

const parse = (text: string) => parseCommand(text.split(' '));
const EVERY = '--cost-cap-usd 5 --cost-cap-period week --hard-cap --included-tokens 9000000000000 --byok-tokens 5 --overage-usd-per-million 1.25 --rpm 60 --burst 7 --trial-credit-usd 0.5 --baseline-model openai/gpt-4o --variant B --store-answers';
const EVERY_BODY = {
  cost_cap_usd: '5', cost_cap_period: 'week', hard_cap: true, included_tokens: '9000000000000', byok_tokens: '5', overage_usd_per_million: '1.25', requests_per_minute: 60, burst_per_second: 7, trial_credit_usd: '0.5', baseline_model: 'openai/gpt-4o',
  variant: 'B', store_answers: true,
};

describe('words become one call', () => {
  test.each(['free', 'team', 'business', 'enterprise', 'pro'])('of an account of tier %s with every flag', (tier) => {
    expect(parse(`account create --name N --tier ${tier} ${EVERY} --json`)).toEqual({ call: { method: 'POST', path: '/admin/accounts', body: { name: 'N', tier, ...EVERY_BODY } }, json: true, inFlags: expect.any(Function) as unknown });
    expect(parse(`account set acct_1 --tier ${tier} ${EVERY}`)).toEqual({ call: { method: 'PATCH', path: '/admin/accounts/acct_1', body: { tier, ...EVERY_BODY } }, json: false, inFlags: expect.any(Function) as unknown });
  });

  test.each([
    ['account show acct_1', 'GET', '/admin/accounts/acct_1', undefined],
    ['account suspend acct_1', 'POST', '/admin/accounts/acct_1/suspend', undefined],
    ['account resume acct_1', 'POST', '/admin/accounts/acct_1/resume', undefined],
    ['account set acct_1 --hard-cap=false --store-answers=false --rpm none', 'PATCH', '/admin/accounts/acct_1', { hard_cap: false, store_answers: false, requests_per_minute: null }],
    ['account set a/../b --rpm 1', 'PATCH', '/admin/accounts/a%2F..%2Fb', { requests_per_minute: 1 }],
    ['account set acct_1 --cost-cap-usd 5 --cost-cap-period day --cost-cap-usd 9 --cost-cap-period total', 'PATCH', '/admin/accounts/acct_1', { cost_caps: [{ cap_usd: '5', period: 'day' }, { cap_usd: '9', period: 'total' }] }],
    ['key create --account acct_1 --name N --expires-in 60 --scopes inference,keys', 'POST', '/admin/keys', { account_id: 'acct_1', name: 'N', expires_in: 60, scopes: ['inference', 'keys'] }],
    ['key create --account acct_1 --name N --rpm 5 --cost-cap-usd 2 --cost-cap-period day --allowed-models openai/*,auto', 'POST', '/admin/keys', { account_id: 'acct_1', name: 'N', requests_per_minute: 5, cost_cap_usd: '2', cost_cap_period: 'day', allowed_models: ['openai/*', 'auto'] }],
    ['key set key_1 --disabled=false --rpm none --allowed-models none --cost-cap-usd none', 'PATCH', '/admin/keys/key_1', { disabled: false, requests_per_minute: null, allowed_models: null, cost_cap_usd: null }],
    ['key set key_1 --cost-cap-usd 1 --cost-cap-period day --cost-cap-usd 9 --cost-cap-period month', 'PATCH', '/admin/keys/key_1', { cost_caps: [{ cap_usd: '1', period: 'day' }, { cap_usd: '9', period: 'month' }] }],
    ['key rotate key_1 --grace-seconds 60', 'POST', '/admin/keys/key_1/rotate', { grace_seconds: 60 }],
    ['key rotate key_1', 'POST', '/admin/keys/key_1/rotate', {}],
    ['key revoke key_1', 'DELETE', '/admin/keys/key_1', undefined],
    ['key revoke key_1 --compromised', 'DELETE', '/admin/keys/key_1?compromised=true', undefined],
  ])('%s', (text, method, path, body) => {
    expect(parse(text).call).toEqual({ method, path, ...(body === undefined ? {} : { body }) });
  });
});

test('a ledger read to a date has that day too, and one read to an instant ends there', () => {
  expect(parse('ledger --account acct_1 --from 2026-11-22 --to 2026-11-22').call.path).toBe(`/admin/ledger?account=acct_1&from_ms=${Date.UTC(2026, 10, 22)}&to_ms=${Date.UTC(2026, 10, 23)}`);
  for (const to of ['2026-11-22T00:00:00Z', String(Date.UTC(2026, 10, 22) / 1_000)]) expect(parse(`ledger --account acct_1 --to ${to}`).call.path).toBe(`/admin/ledger?account=acct_1&to_ms=${Date.UTC(2026, 10, 22)}`);
});

test('an end at the beginning of time is no missing end', () => {
  expect(parse('ledger --account acct_1 --from 0 --to 0').call.path).toBe('/admin/ledger?account=acct_1&from_ms=0&to_ms=1');
});

test.each([
  ['account set a --rpm 0', 'requests_per_minute: Too small: expected number to be >=1. burst_per_second: Too big.', '--rpm: Too small: expected number to be >=1. --burst: Too big.'],
  ['usage --limit 0', 'limit must be from 1 to 1000.', '--limit must be from 1 to 1000.'],
  ['key create --account a --name N', 'account_id names no account.', '--account names no account.'],
  ['key create --account a --name N', 'name must not be blank.', '--name must not be blank.'],
  ['key set k --rpm 5', 'limits.requests_per_minute must be a whole number.', '--rpm must be a whole number.'],
  ['account set a --cost-cap-usd 5', 'cost_caps.1.period: expected one of day, week. cost_caps.0.cap_usd must be a number.', '--cost-cap-period: expected one of day, week. --cost-cap-usd must be a number.'],
  ['key set k --rpm 5', 'limits.cost_caps: must name each period once.', '--cost-cap-period: must name each period once.'],
  ['ledger recount', 'account names no account.', '--account names no account.'],
  ['usage --by day', 'The provider must be known.', 'The provider must be known.'],
  ['key rotate k', 'key_id names a key that is revoked.', 'key_id names a key that is revoked.'],
])('%s: what the server says of its members is told of the flags', (text, said, told) => {
  expect(parse(text).inFlags(said)).toBe(told);
});

test('times of usage are told as they were given, one day and one instant too', () => {
  expect(parse('usage --by day --from 2026-11-22 --to 2026-11-22').call.path).toBe('/admin/usage?group_by=day&from=2026-11-22&to=2026-11-22');
  expect(parse('usage --by day --from 1793491200 --to 1793491200').call.path).toBe('/admin/usage?group_by=day&from=1793491200&to=1793491200');
});

test.each([['ledger verify', { unless: 'ok' }], ['ledger recount', { unless: 'ok' }], ['catalog check', { if: 'problems' }]])('%s fails for a script when what it asks about is not well', (text, failure) => {
  expect(parse(text).call).toMatchObject({ failure });
});

test('a verification of all accounts comes in parts and can go on behind an account, one of an account does not', () => {
  expect(parse('ledger verify').call).toMatchObject({ path: '/admin/ledger/verify', partsAfter: '' });
  expect(parse('ledger verify --after acct_5').call).toMatchObject({ path: '/admin/ledger/verify', partsAfter: 'acct_5' });
  expect(parse('ledger verify --account acct_5').call).not.toHaveProperty('partsAfter');
  expect(() => parse('ledger verify --account acct_5 --after acct_4')).toThrow('leave out --account');
});

test.each([['ledger recount', {}], ['ledger recount --account acct_1 --closed', { account_id: 'acct_1', closed: true }]])('%s writes sums of closed periods by name alone', (text, body) => {
  expect(parse(text).call).toMatchObject({ method: 'POST', path: '/admin/ledger/recount', body });
});

test.each([['account list', '/admin/accounts', 'accounts'], ['key list --account acct_1', '/admin/keys?account=acct_1', 'keys'], ['byok list', '/admin/byok', 'provider_keys'], ['dead list --after 5', '/admin/dead-events?after=5', 'events'], ['ledger --account acct_1', '/admin/ledger?account=acct_1', 'rows']])('%s is read to its end', (text, path, paged) => {
  expect(parse(text).call).toEqual({ method: 'GET', path, paged });
});

test.each([
  ['account make', 'Unknown command.'],
  ['account create --name N', '--tier is required.'],
  ['account create --tier free', '--name is required.'],
  ['account set --rpm 1', 'One ID is required.'],
  ['account show a b', 'One ID is required.'],
  ['account list extra', 'Too many words.'],
  ['account set a --colour red', 'Unknown flag --colour.'],
  ['account set a --rpm', '--rpm needs a value.'],
  ['account set a', 'Nothing is to be changed.'],
  ['account show ', 'One ID is required.'],
  ['quota --account=', '--account needs a value.'],
  ['byok list --account ', '--account needs a value.'],
  ['key create --account a --name N --expires-in 30d', '--expires-in must be a whole number of seconds.'],
  ['account set a --cost-cap-usd -5', '--cost-cap-usd must be from 0 to 9000000 US dollars.'],
  ['account set a --included-tokens -5', '--included-tokens must be a whole number of tokens.'],
  ['account set a --rpm --burst 5', '--rpm needs a value.'],
  ['account set a --rpm many', '--rpm must be a whole number.'],
  ['account set a --cost-cap-usd 1e3', '--cost-cap-usd must be a decimal amount of US dollars with at most nine decimals.'],
  ['account set a --cost-cap-usd 9000001', '--cost-cap-usd must be from 0 to 9000000 US dollars.'],
  ['account set a --hard-cap=maybe', '--hard-cap is true or false.'],
  ['account set a --hard-cap false', '--hard-cap takes a value behind = alone: --hard-cap=false takes it off.'],
  ['key set --disabled none key_1', '--disabled takes a value behind = alone: --disabled=false takes it off.'],
  ['account create --name N --tier free --rpm none', '--rpm must be a whole number.'],
  ['key create --account a', '--name is required.'],
  ['key set key_1', 'Nothing is to be changed.'],
  ['key rotate key_1 --grace-seconds 1h', '--grace-seconds must be a whole number of seconds.'],
  ['key list', '--account is required.'],
  ['statement --account a --period 2026-11 --csv --json', '--csv and --json are two forms: name one.'],
  ['ledger --account a --from=-5', '--from must be Unix seconds or an ISO 8601 time.'],
  ['ledger --account a --from 2026-11-03 --to 2026-11-02', '--from must not be after --to.'],
  ['usage --from 2026-11-03 --to 2026-11-02', '--from must not be after --to.'],
  ['usage --from 1793491201 --to 1793491200', '--from must not be after --to.'],
  ['usage --from yesterday', '--from must be Unix seconds or an ISO 8601 time.'],
  ['byok set --account a --provider p --secret-stdin=false', '--secret-stdin is required.'],
  ['quota --account a --account b', '--account stands twice.'],
  ['key revoke a --compromised --compromised=false', '--compromised stands twice.'],
  ['ledger --account a --to 2026-02-31', '--to must be Unix seconds or an ISO 8601 time.'],
])('%s is refused: %s', (text, message) => {
  expect(() => parse(text)).toThrow(new UsageError(message));
});

test('what is refused says in its line what would be right', () => {
  const hintOf = (text: string): string => {
    try {
      parse(text);
    } catch (error) {
      return error instanceof UsageError ? error.hint : '';
    }
    return '';
  };
  expect(hintOf('key list --colour red')).toBe('Usage: key list --account ID');
  expect(hintOf('key revoke')).toBe('Usage: key revoke ID [--compromised]');
  expect(hintOf('key set key_1')).toContain(' [--disabled[=false]]');
  expect(hintOf('acount list')).toBe('`help` lists all commands.');
  expect(hintOf('ledger')).toMatch(/^Usage: ledger --account ID \[--from TIME\] /);
  expect(hintOf('byok make')).toBe('There are: byok set, byok list, byok remove.');
  expect(usageFor(['key', 'revoke'])).toBe('usage: admin <command> [--json]\n  key revoke ID [--compromised]\n      revokes a key for good; running requests finish, unless --compromised cuts them\n');
  expect(usageFor(['key']).split('\n')).toHaveLength(12);
  expect(usageFor(['nonsense'])).toBe(usageFor([]));
});

test('help says of every command what it does, and of every value what it is', () => {
  const [, ...lines] = usageFor([]).trimEnd().split('\n');
  const abouts = lines.filter((_line, index) => index % 2 === 1);
  expect(abouts.filter((line) => !/^ {6}\S/.test(line))).toEqual([]);
  expect(abouts).toHaveLength(Object.keys(ABOUT).length);
  expect(usageFor(['key', 'create'])).toContain('key create --account ID --name TEXT [--expires-in SECONDS] [--scopes A,B] [--rpm N] [--cost-cap-usd USD] [--cost-cap-period day|week|month|total] [--allowed-models A,B]\n');
  expect(usageFor(['account', 'create'])).toContain(' --tier free|team|business|enterprise|pro ');
});
