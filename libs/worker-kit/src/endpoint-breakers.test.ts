import { beforeEach, describe, expect, test } from '@jest/globals';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createEndpointBreakers, type EndpointBreakers } from './endpoint-breakers.js';

type News = Parameters<EndpointBreakers['hear']>[0];

/** Replicas whose messages are carried by the test, so that they may be late or lost. */
describe('breakers of replicas', () => {
  let clock: FakeClock;
  let probes: string[];
  const replica = (origin: string): EndpointBreakers => createEndpointBreakers({ clock, origin, onProbe: (endpointId, step) => void probes.push(`${origin} ${endpointId} ${step}`) });
  const attempt = (failure: 'PROVIDER_ERROR' | 'BAD_REQUEST' | undefined, forBreakers = true): News['attempts'][number] => ({
    endpointId: 'e1', ok: failure === undefined, failure: failure ?? 'FAILURE_CLASS_UNSPECIFIED', stream: true, ttftMs: 0, totalMs: 0, outputTokens: 0, retryAfterMs: 0, benchedMs: 0, atMs: '0', forBreakers, cut: false, autoDecisionId: '',
  });
  const news = (origin: string, ...attempts: News['attempts']): News => ({ origin, pool: 0, attempts, probedEndpointIds: [], begunEndpointIds: [], voidEndpointIds: [] });
  const failures = (origin: string, count: number): News => news(origin, ...Array.from({ length: count }, () => attempt('PROVIDER_ERROR')));

  beforeEach(() => {
    clock = createFakeClock();
    probes = [];
  });

  test('let one call probe at a time: of calls made before any message arrives, one goes to the provider', () => {
    const [a, b, c] = [replica('a'), replica('b'), replica('c')];
    const all = [a, b, c];
    for (const each of all) for (const origin of ['a', 'b', 'c']) each.hear(news(origin));
    for (const each of all) each.hear(failures('elsewhere', 5));
    clock.advance(30_000);
    // "elsewhere" comes after them in the order.
    expect(all.map((each) => each.admit('e1').waitMs)).toEqual([0, 250, 500]);
    expect(probes).toEqual(['a e1 sent']);
    // The first one's messages are lost: the next replica goes on by itself.
    clock.advance(250);
    expect(all.map((each) => each.admit('e1').waitMs)).toEqual([29_750, 0, 250]);
  });

  test('count answers that one event broke off as one failure, here and there; a provider that breaks off one after the other is left alone after five', () => {
    const [a, b] = [replica('a'), replica('b')];
    const cutAfter = (ms: number, count: number): void => {
      for (let n = 0; n < count; n += 1) a.record('e1', 'DISCONNECTED', false, ms);
      b.hear(news('a', ...Array.from({ length: count }, () => ({ ...attempt('PROVIDER_ERROR'), cut: true, totalMs: ms }))));
    };
    const closed = { closed: 1, 'half-open': 0, open: 0 };
    clock.advance(60_000);
    cutAfter(20_000, 50);
    clock.advance(20);
    cutAfter(5_000, 50);
    expect([a.states(), b.states()]).toEqual([closed, closed]);
    for (let times = 2; times <= 4; times += 1) {
      clock.advance(300);
      cutAfter(250, 3);
    }
    expect([a.states(), b.states()]).toEqual([closed, closed]);
    clock.advance(300);
    cutAfter(250, 1);
    // `b` lets `a` go first.
    expect([a.admit('e1').waitMs, b.admit('e1').waitMs]).toEqual([30_000, 30_250]);
    // The probe's counts.
    clock.advance(30_000);
    expect(a.admit('e1').isProbe).toBe(true);
    clock.advance(1);
    a.record('e1', 'DISCONNECTED', false, 60_000);
    expect(a.admit('e1').waitMs).toBe(30_000);
  });

  test('do not wait for replicas that were not heard from for long, and wait a second at most', () => {
    const z = replica('z');
    for (let n = 0; n < 20; n += 1) z.hear(news(`gone-${String(n)}`));
    z.hear(failures('zz', 5));
    clock.advance(30_000);
    expect(z.admit('e1').waitMs).toBe(1_000);
    clock.advance(150_000);
    expect(z.admit('e1').waitMs).toBe(0);
  });

  test('a replica that hears of another’s probe waits for its end, which counts here too', () => {
    const a = replica('a');
    a.hear(failures('b', 5));
    clock.advance(30_000);
    a.hear({ origin: 'b', pool: 0, attempts: [], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] });
    expect(a.admit('e1').waitMs).toBe(30_000);
    a.hear(news('b', attempt(undefined)));
    expect(a.admit('e1').waitMs).toBe(0);
    expect(a.states()).toEqual({ closed: 1, 'half-open': 0, open: 0 });
  });

  test.each(['begunEndpointIds', 'voidEndpointIds'] as const)('a replica that hears that a probe is over waits its turn after the replica that made it (%s)', (told) => {
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

  test('a replica that hears of rate limits waits as long as all credentials rest, and then calls without a probe', () => {
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

  test('rate limits of one of two credentials, met in a burst before the other has answered, close the endpoint for a second', () => {
    const a = replica('a');
    for (let n = 0; n < 20; n += 1) a.record('e1', 'RATE_LIMITED', false);
    expect(a.admit('e1').waitMs).toBe(1_000);
    clock.advance(1_000);
    expect(a.admit('e1')).toEqual({ waitMs: 0, isProbe: false });
  });

  test('two credentials that are limited again and again are waited for only as long as they say', () => {
    const a = replica('a');
    for (let round = 0; round < 50; round += 1) {
      expect(a.admit('e1')).toEqual({ waitMs: 0, isProbe: false });
      a.record('e1', 'RATE_LIMITED', false);
      a.record('e1', 'RATE_LIMITED', true);
      clock.advance(1_000);
    }
  });

  test('failures of another replica’s different credentials do not count here, and end its probe without a result', () => {
    const of = (pool: number, failure: 'CREDENTIAL' | 'RATE_LIMITED' | 'PROVIDER_ERROR'): News =>
      ({ ...news('b', ...Array.from({ length: 9 }, () => ({ ...attempt('PROVIDER_ERROR'), failure, retryAfterMs: failure === 'PROVIDER_ERROR' ? 0 : 60_000 }))), pool });
    const withPool = (pool: number): EndpointBreakers => createEndpointBreakers({ clock, origin: 'a', pool, onProbe: () => undefined });
    const waitAfter = (told: News, own = 7): number => {
      const a = withPool(own);
      a.hear(told);
      return a.admit('e1').waitMs;
    };
    expect([of(8, 'CREDENTIAL'), of(8, 'RATE_LIMITED')].map((told) => waitAfter(told))).toEqual([0, 0]);
    // The same credentials, a version that does not tell its credentials, and failures of the provider itself.
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
    ['its own messages, which come back to it', failures('a', 9)],
    ['messages without an origin, from an older version', failures('', 9)],
    ['attempts that no breaker counts: with an account’s own key, or unsent', news('b', ...Array.from({ length: 9 }, () => attempt('PROVIDER_ERROR', false)))],
    ['failures caused by the requests themselves', news('b', ...Array.from({ length: 9 }, () => attempt('BAD_REQUEST')))],
    ['a probe of an endpoint that works here', { origin: 'b', pool: 0, attempts: [attempt(undefined)], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] }],
    ['a probe of an endpoint that is unknown here', { origin: 'b', pool: 0, attempts: [], probedEndpointIds: ['e1'], begunEndpointIds: [], voidEndpointIds: [] }],
  ])('are not opened by %s', (_name, told) => {
    const a = replica('a');
    a.hear(told);
    expect(a.admit('e1').waitMs).toBe(0);
    expect(probes).toEqual([]);
  });
});
