import { beforeEach, describe, expect, test } from '@jest/globals';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createEndpointBreakers, type EndpointBreakers } from './endpoint-breakers.js';

type News = Parameters<EndpointBreakers['hear']>[0];

/** Replicas whose news the test carries, so that it may be late or lost. */
describe('breakers of replicas', () => {
  let clock: FakeClock;
  let probes: string[];
  const replica = (origin: string): EndpointBreakers => createEndpointBreakers({ clock, origin, onProbe: (endpointId, step) => void probes.push(`${origin} ${endpointId} ${step}`) });
  const attempt = (failure: 'PROVIDER_ERROR' | 'BAD_REQUEST' | undefined, forBreakers = true): News['attempts'][number] => ({
    endpointId: 'e1', ok: failure === undefined, failure: failure ?? 'FAILURE_CLASS_UNSPECIFIED', stream: true, ttftMs: 0, totalMs: 0, outputTokens: 0, retryAfterMs: 0, benchedMs: 0, atMs: '0', forBreakers,
  });
  const news = (origin: string, ...attempts: News['attempts']): News => ({ origin, pool: 0, attempts, probedEndpointIds: [], begunEndpointIds: [], voidEndpointIds: [] });
  const failures = (origin: string, count: number): News => news(origin, ...Array.from({ length: count }, () => attempt('PROVIDER_ERROR')));

  beforeEach(() => {
    clock = createFakeClock();
    probes = [];
  });

  test('end in turn: of calls that leave before any news arrives, one goes to the provider', () => {
    const [a, b, c] = [replica('a'), replica('b'), replica('c')];
    const all = [a, b, c];
    for (const each of all) for (const origin of ['a', 'b', 'c']) each.hear(news(origin));
    for (const each of all) each.hear(failures('elsewhere', 5));
    clock.advance(30_000);
    // "elsewhere" comes after them.
    expect(all.map((each) => each.admit('e1').waitMs)).toEqual([0, 250, 500]);
    expect(probes).toEqual(['a e1 sent']);
    // The first one's news is lost: the next goes on by itself.
    clock.advance(250);
    expect(all.map((each) => each.admit('e1').waitMs)).toEqual([29_750, 0, 250]);
  });

  test('wait for nobody that was not heard of for long, and a second at most', () => {
    const z = replica('z');
    for (let n = 0; n < 20; n += 1) z.hear(news(`gone-${String(n)}`));
    z.hear(failures('zz', 5));
    clock.advance(30_000);
    expect(z.admit('e1').waitMs).toBe(1_000);
    clock.advance(150_000);
    expect(z.admit('e1').waitMs).toBe(0);
  });

  test('one that hears of another’s try waits for its end, which counts', () => {
    const a = replica('a');
    a.hear(failures('b', 5));
    clock.advance(30_000);
    a.hear({ origin: 'b', pool: 0, attempts: [], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] });
    expect(a.admit('e1').waitMs).toBe(30_000);
    a.hear(news('b', attempt(undefined)));
    expect(a.admit('e1').waitMs).toBe(0);
    expect(a.states()).toEqual({ closed: 1, 'half-open': 0, open: 0 });
  });

  test.each(['begunEndpointIds', 'voidEndpointIds'] as const)('one that hears of a place that is left waits its turn, behind the one that left it (%s)', (told) => {
    const all = [replica('a'), replica('b')];
    for (const each of all) for (const origin of ['a', 'b']) each.hear(news(origin));
    for (const each of all) each.hear(failures('elsewhere', 5));
    const [a, b] = all as [EndpointBreakers, EndpointBreakers];
    clock.advance(30_250);
    expect(b.admit('e1')).toEqual({ waitMs: 0, isProbe: true });
    a.hear({ ...news('b'), probedEndpointIds: ['e1'] });
    clock.advance(500);
    if (told === 'begunEndpointIds') b.begun('e1');
    else b.giveBack('e1');
    expect(b.admit('e1').waitMs).toBe(0);
    expect(probes).toEqual(['b e1 sent', `b e1 ${told === 'begunEndpointIds' ? 'begun' : 'void'}`, 'b e1 sent']);
    a.hear({ ...news('b'), [told]: ['e1'] });
    expect(a.admit('e1').waitMs).toBe(0);
    expect(b.admit('e1').waitMs).toBe(30_250);
  });

  test('one that hears of rate limits waits as long as all credentials do, and then asks without a try', () => {
    const a = replica('a');
    const limited = { ...attempt(undefined), ok: false, failure: 'RATE_LIMITED' as const, retryAfterMs: 2_000 };
    a.hear(news('b', ...Array.from({ length: 9 }, () => limited)));
    for (let n = 0; n < 9; n += 1) a.record('e1', 'RATE_LIMITED', true);
    expect(a.admit('e1').waitMs).toBe(2_000);
    clock.advance(2_000);
    expect([a.admit('e1').waitMs, a.admit('e1').waitMs]).toEqual([0, 0]);
    expect(probes).toEqual([]);
    a.hear(news('b', ...Array.from({ length: 5 }, () => ({ ...limited, retryAfterMs: 0 }))));
    expect(a.admit('e1').waitMs).toBe(1_000);
  });

  test('rate limits of one of two credentials, told by a burst before the other has answered, close the endpoint for a second', () => {
    const a = replica('a');
    for (let n = 0; n < 20; n += 1) a.record('e1', 'RATE_LIMITED', false);
    expect(a.admit('e1').waitMs).toBe(1_000);
    clock.advance(1_000);
    expect(a.admit('e1')).toEqual({ waitMs: 0, isProbe: false });
  });

  test('two credentials that are limited round after round are waited for as long as they say, however many rounds', () => {
    const a = replica('a');
    for (let round = 0; round < 50; round += 1) {
      expect(a.admit('e1')).toEqual({ waitMs: 0, isProbe: false });
      a.record('e1', 'RATE_LIMITED', false);
      a.record('e1', 'RATE_LIMITED', true);
      clock.advance(1_000);
    }
  });

  test('what a replica with other credentials met with them is no matter of this one, and whom it tried for waits no longer', () => {
    const of = (pool: number, failure: 'CREDENTIAL' | 'RATE_LIMITED' | 'PROVIDER_ERROR'): News =>
      ({ ...news('b', ...Array.from({ length: 9 }, () => ({ ...attempt('PROVIDER_ERROR'), failure, retryAfterMs: failure === 'PROVIDER_ERROR' ? 0 : 60_000 }))), pool });
    const withPool = (pool: number): EndpointBreakers => createEndpointBreakers({ clock, origin: 'a', pool, onProbe: () => undefined });
    const waitAfter = (told: News, own = 7): number => {
      const a = withPool(own);
      a.hear(told);
      return a.admit('e1').waitMs;
    };
    expect([of(8, 'CREDENTIAL'), of(8, 'RATE_LIMITED')].map((told) => waitAfter(told))).toEqual([0, 0]);
    // The same credentials, a version that does not tell, and what the provider itself is at fault for.
    expect([of(7, 'RATE_LIMITED'), of(0, 'RATE_LIMITED'), of(8, 'PROVIDER_ERROR')].map((told) => waitAfter(told))).toEqual([60_000, 60_000, 30_000]);
    expect(waitAfter(of(8, 'RATE_LIMITED'), 0)).toBe(60_000);
    const a = withPool(7);
    a.hear(of(8, 'PROVIDER_ERROR'));
    clock.advance(30_000);
    a.hear({ ...news('b'), pool: 8, probedEndpointIds: ['e1'] });
    expect(a.admit('e1').waitMs).toBeGreaterThan(0);
    a.hear(of(8, 'CREDENTIAL'));
    expect(a.admit('e1')).toEqual({ waitMs: 0, isProbe: true });
  });

  test.each<[string, News]>([
    ['its own news, which comes back to it', failures('a', 9)],
    ['news without an origin, of before there were any', failures('', 9)],
    ['attempts that no breaker counted: of an account’s own key, or unsent', news('b', ...Array.from({ length: 9 }, () => attempt('PROVIDER_ERROR', false)))],
    ['requests that were at fault themselves', news('b', ...Array.from({ length: 9 }, () => attempt('BAD_REQUEST')))],
    ['a try of an endpoint that is well here', { origin: 'b', pool: 0, attempts: [attempt(undefined)], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] }],
    ['a try of an endpoint that is unknown here', { origin: 'b', pool: 0, attempts: [], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] }],
  ])('are not opened by %s', (_name, told) => {
    const a = replica('a');
    a.hear(told);
    expect(a.admit('e1').waitMs).toBe(0);
    expect(probes).toEqual([]);
  });
});
