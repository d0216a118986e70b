import { beforeEach, describe, expect, test } from '@jest/globals';
import { createBreaker, type Breaker } from '@signalbox/router-core/breaker';
import { createFakeClock, type FakeClock } from '@signalbox/testkit/clock';
import { createLiveStats, type LiveStats, type Observation } from './live-stats.js';
import { createSlidingWindow } from './sliding-window.js';

describe('a window', () => {
  test('gives quantiles within five percent and forgets after five minutes', () => {
    const window = createSlidingWindow();
    for (let value = 1; value <= 1_000; value += 1) window.add(value, 0);
    expect(Math.abs((window.quantile(0.75, 0) ?? 0) - 750)).toBeLessThan(750 * 0.055);
    expect(window.count(299_999)).toBe(1_000);
    expect(window.count(300_000)).toBe(0);
    expect(window.quantile(0.5, 300_000)).toBeUndefined();
    window.add(5, 330_000);
    expect(window.count(330_000)).toBe(1);
  });

  test('tells what came after a moment by slots of 30 s that began no earlier', () => {
    const window = createSlidingWindow();
    window.add(10, 0);
    window.add(20, 45_000);
    window.add(40, 60_000);
    expect([window.count(60_000, 0), window.count(60_000, 1), window.count(60_000, 30_001), window.count(60_000, 90_000)]).toEqual([3, 2, 1, 0]);
    expect(window.quantile(0.5, 60_000, 31_000) ?? 0).toBeGreaterThan(35);
    expect(window.quantile(0.5, 60_000, 90_000)).toBeUndefined();
  });
});

describe('a breaker', () => {
  test('opens on the fifth failure in a row, lets one probe through after 30 s, and closes when it succeeds', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 4; i += 1) breaker.record(false, 0, 1_000);
    expect(breaker.state(1_000)).toBe('closed');
    breaker.record(false, 0, 1_000);
    expect(breaker.state(30_999)).toBe('open');
    breaker.record(true, 0, 5_000);
    expect(breaker.state(5_000)).toBe('open');
    expect(breaker.state(31_000)).toBe('half-open');
    breaker.noteProbe(31_000);
    expect(breaker.state(31_001)).toBe('open');
    breaker.record(true, 0, 32_000);
    expect(breaker.state(32_000)).toBe('closed');
  });

  test('counts one failure for all answers that one event breaks off, in a row and in the share', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 100; i += 1) breaker.cut(1_000 + i, 5_000 + i / 10);
    expect(breaker.state(5_010)).toBe('closed');
    // Each call was sent after the one before had broken off.
    for (let i = 0; i < 4; i += 1) breaker.cut(5_100 + i * 100, 5_150 + i * 100);
    expect(breaker.state(5_500)).toBe('open');
  });

  test('opens again when the probe fails, and offers another when it is never heard of', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 5; i += 1) breaker.record(false, 0, 0);
    breaker.noteProbe(30_000);
    expect(breaker.state(60_000)).toBe('half-open');
    breaker.noteProbe(60_000);
    breaker.record(false, 0, 61_000);
    expect(breaker.state(90_999)).toBe('open');
  });

  test('opens when more than half of ten calls fail, not at half', () => {
    const half = createBreaker();
    for (let i = 0; i < 10; i += 1) half.record(i % 2 === 0, 0, i);
    expect(half.state(10)).toBe('closed');
    half.record(false, 0, 11);
    expect(half.state(11)).toBe('open');
  });

  test('a probe of another replica keeps it open for 30 s, and its end counts; where it is closed nothing was heard', () => {
    const breaker = createBreaker();
    breaker.hearProbe(0);
    expect(breaker.state(0)).toBe('closed');
    for (let i = 0; i < 5; i += 1) breaker.record(false, 0, 0);
    // The report may arrive a moment before this breaker's own 30 s are over.
    breaker.hearProbe(29_990);
    expect(breaker.waitMs(30_000)).toBe(29_990);
    breaker.record(true, 0, 31_000);
    expect(breaker.state(31_000)).toBe('closed');
  });

  test('a probe that says nothing leaves its place to the next at once', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 5; i += 1) breaker.record(false, 0, 0);
    breaker.giveBack(1_000);
    expect(breaker.state(1_000)).toBe('open');
    breaker.noteProbe(30_000);
    breaker.giveBack(30_500);
    expect(breaker.state(30_500)).toBe('half-open');
    breaker.noteProbe(30_500);
    expect(breaker.waitMs(30_500)).toBe(30_000);
    breaker.record(false, 0, 31_000);
    breaker.giveBack(31_500);
    breaker.noteBegun(31_500);
    expect(breaker.state(60_999)).toBe('open');
  });

  test('a stream that begins lets the next one begin, five let all, and until one is whole the first that breaks opens it', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 5; i += 1) breaker.record(false, 0, 0);
    const begin = (nowMs: number): readonly string[] => {
      const before = breaker.state(nowMs);
      breaker.noteProbe(nowMs);
      const during = breaker.state(nowMs);
      breaker.noteBegun(nowMs + 100);
      return [before, during, breaker.state(nowMs + 100)];
    };
    for (let i = 0; i < 4; i += 1) expect(begin(30_000 + i * 100)).toEqual(['half-open', 'open', 'half-open']);
    expect(begin(30_400)).toEqual(['half-open', 'open', 'closed']);
    // A probe of another replica no longer matters.
    breaker.hearProbe(30_500);
    expect(begin(30_500)).toEqual(['closed', 'closed', 'closed']);
    breaker.record(false, 0, 31_000);
    expect(breaker.state(60_999)).toBe('open');
    expect(begin(61_000)).toEqual(['half-open', 'open', 'half-open']);
    breaker.record(true, 0, 62_000);
    for (let i = 0; i < 4; i += 1) breaker.record(false, 0, 62_001);
    expect(breaker.state(62_001)).toBe('closed');
  });

  test('a 429 opens it for its Retry-After, which a later shorter one does not cut', () => {
    const breaker = createBreaker();
    breaker.record(false, 60_000, 0);
    breaker.record(false, 1_000, 100);
    expect(breaker.state(59_999)).toBe('open');
    expect(breaker.state(60_000)).toBe('half-open');
  });

  test('a rate limit with a wait is over with the wait: it counts as no failure, and nobody has to try first', () => {
    const breaker = createBreaker();
    for (let i = 0; i < 20; i += 1) breaker.rest(1_000, i);
    breaker.rest(500, 30);
    expect([breaker.state(1_018), breaker.waitMs(1_018)]).toEqual(['open', 1]);
    expect(breaker.state(1_019)).toBe('closed');
  });

  test('rate limits of which no wait is known rest it after five in a row: a second, and each five more twice as long, up to 30 s', () => {
    const breaker = createBreaker();
    const waits: number[] = [];
    for (let nowMs = 0; waits.length < 7; nowMs += breaker.waitMs(nowMs)) {
      for (let i = 0; i < 4; i += 1) breaker.limit(nowMs);
      expect(breaker.state(nowMs)).toBe('closed');
      // The fifth limit arrives together with those of all other running requests.
      for (let i = 0; i < 50; i += 1) breaker.limit(nowMs);
      waits.push(breaker.waitMs(nowMs));
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  test.each<[string, (breaker: Breaker, nowMs: number) => void]>([
    ['an answer', (breaker, nowMs) => breaker.record(true, 0, nowMs)],
    ['a wait that is known', (breaker, nowMs) => breaker.rest(1_000, nowMs)],
  ])('%s begins their row anew: of two credentials that are limited in turn none is waited for longer than it said', (_name, between) => {
    const breaker = createBreaker();
    for (let nowMs = 0; nowMs < 100_000; nowMs += 1_000) {
      expect(breaker.state(nowMs)).toBe('closed');
      breaker.limit(nowMs);
      between(breaker, nowMs);
    }
  });

  test.each<[string, (breaker: Breaker) => void]>([
    ['a rate limit', (breaker) => breaker.rest(1_000, 31_000)],
    ['one without a wait', (breaker) => breaker.limit(31_000)],
  ])('a probe that meets %s leaves it open', (_name, meet) => {
    const breaker = createBreaker();
    for (let i = 0; i < 5; i += 1) breaker.record(false, 0, 0);
    breaker.noteProbe(30_000);
    meet(breaker);
    expect(breaker.state(60_999)).toBe('open');
    expect(breaker.state(61_000)).toBe('half-open');
  });
});

describe('live statistics', () => {
  const observation = (changes: Partial<Observation> = {}): Observation => ({ endpointId: 'a', isSuccess: true, isStreaming: true, firstTokenMs: 200, totalMs: 1_200, outputTokens: 100, retryAfterMs: 0, benchedMs: 0, isRateLimit: false, ...changes });

  test('tell latency, speed and success, ignore unknown endpoints, and are at most a second old', () => {
    let nowMs = 0;
    const live = createLiveStats({ nowMs: () => 0, monotonicMs: () => nowMs, setTimer: () => ({ cancel: () => undefined }) }, (id) => (id === 'a' ? ['a'] : undefined));
    live.observe(observation({ endpointId: 'stranger' }));
    expect(live.view().size).toBe(0);
    for (let i = 0; i < 30; i += 1) live.observe(observation());
    nowMs = 1_000;
    const seen = live.view().get('a');
    expect(seen?.samples).toBe(30);
    expect(Math.abs((seen?.latencyMsP75 ?? 0) - 200)).toBeLessThan(12);
    expect(Math.abs((seen?.throughputTpsP50 ?? 0) - 100)).toBeLessThan(6);
    expect(seen?.breaker).toBe('closed');
    for (let i = 0; i < 5; i += 1) live.observe(observation({ isSuccess: false }));
    expect(live.view().get('a')?.breaker).toBe('open');
    expect(live.view().get('a')?.successShare ?? 1).toBeLessThan(0.95);
  });

  test('an open breaker offers its endpoint a second after the workers would, and not while one of them tries it', () => {
    const clock = createFakeClock();
    const live = createLiveStats(clock, (id) => [id]);
    const state = (): string | undefined => live.view().get('a')?.breaker;
    for (let i = 0; i < 5; i += 1) live.observe(observation({ isSuccess: false }));
    clock.advance(30_999);
    expect(state()).toBe('open');
    clock.advance(1_001);
    expect(state()).toBe('half-open');
    live.hearProbe('a', 'sent');
    expect(state()).toBe('open');
    // The result of the probe is known soon; 30 s is only when it is abandoned.
    expect(live.view().get('a')?.waitMs).toBe(5_000);
    live.observe(observation());
    expect(state()).toBe('closed');
  });

  test('a plan that came to nothing keeps an endpoint that is to be tried from others for three seconds; its call, once it is heard of, until that says something', () => {
    const clock = createFakeClock();
    const live = createLiveStats(clock, (id) => [id]);
    const state = (): string | undefined => live.view().get('a')?.breaker;
    for (let i = 0; i < 5; i += 1) live.observe(observation({ isSuccess: false }));
    clock.advance(31_000);
    live.noteProbe('a');
    clock.advance(1_999);
    expect(state()).toBe('open');
    clock.advance(1_001);
    expect(state()).toBe('half-open');
    for (const step of ['begun', 'void'] as const) {
      live.noteProbe('a');
      live.hearProbe('a', 'sent');
      clock.advance(20_000);
      expect(state()).toBe('open');
      live.hearProbe('a', step);
      expect(state()).toBe('half-open');
    }
  });

  test('an endpoint whose credentials wait out a rate limit is offered to all when the wait is over, as clients were told, however many met it', () => {
    const clock = createFakeClock();
    const live = createLiveStats(clock, (id) => [id]);
    const state = (): string | undefined => live.view().get('a')?.breaker;
    for (let i = 0; i < 20; i += 1) live.observe(observation({ isSuccess: false, isRateLimit: true, retryAfterMs: 2_700 }));
    expect([state(), live.view().get('a')?.waitMs]).toEqual(['open', 2_700]);
    // Asked all the time, so that no view is older than the end of the wait.
    for (let waitedMs = 100; waitedMs < 2_700; waitedMs += 100) {
      clock.advance(100);
      expect(state()).toBe('open');
    }
    clock.advance(100);
    expect(state()).toBe('closed');
    // Without a Retry-After, five in a row cause a wait of a second, and nobody was told of one.
    for (let i = 0; i < 5; i += 1) live.observe(observation({ isSuccess: false, isRateLimit: true }));
    clock.advance(1_999);
    expect(state()).toBe('open');
    clock.advance(1_000);
    expect(state()).toBe('closed');
  });
});

describe('outliers in live statistics', () => {
  const all = ['a', 'b', 'c', 'd'];
  let clock: FakeClock;
  let live: LiveStats;
  beforeEach(() => {
    clock = createFakeClock();
    live = createLiveStats(clock, (id) => (all.includes(id) ? all : id === 'own' ? all : undefined));
  });
  const observe = (endpointId: string, changes: Partial<Observation> = {}): void => live.observe({ endpointId, isSuccess: true, isStreaming: true, firstTokenMs: 200, totalMs: 1_200, outputTokens: 100, retryAfterMs: 0, benchedMs: 0, isRateLimit: false, ...changes });
  /** Half of the calls fail, which opens no breaker. */
  const observeBad = (endpointId: string): void => {
    for (let i = 0; i < 20; i += 1) observe(endpointId, { isSuccess: i % 2 === 0 });
  };
  const observeWell = (...ids: readonly string[]): void => {
    for (const id of ids) for (let i = 0; i < 20; i += 1) observe(id);
  };
  const ejected = (): Readonly<Record<string, string>> => Object.fromEntries([...live.view()].flatMap(([id, { ejectedFor }]) => (ejectedFor === undefined ? [] : [[id, ejectedFor]])));
  const later = (ms: number): Readonly<Record<string, string>> => {
    clock.advance(ms);
    return ejected();
  };

  test('are left out within a second for 30 s, longer each time in a row, and come back by themselves', () => {
    observeWell('a', 'b', 'c');
    observeBad('d');
    expect(later(1_000)).toEqual({ d: 'failures' });
    expect(later(29_000)).toEqual({ d: 'failures' });
    expect(later(1_000)).toEqual({});
    expect(live.view().get('d')?.breaker).toBe('closed');
    // Earlier observations no longer count; those of the next slot of 30 s do.
    observe('d');
    expect(later(1_000)).toEqual({});
    expect(later(28_000)).toEqual({});
    observeBad('d');
    expect(later(1_000)).toEqual({ d: 'failures' });
    expect(later(59_000)).toEqual({ d: 'failures' });
    expect(later(1_000)).toEqual({});
    expect(later(29_000)).toEqual({});
    observeWell('d');
    expect(later(1_000)).toEqual({});
    for (let i = 0; i < 4; i += 1) observeBad('d');
    expect(later(1_000)).toEqual({ d: 'failures' });
    expect(later(30_000)).toEqual({});
  });

  test('may be slow to begin, or slow to write whole answers', () => {
    observeWell('a', 'b');
    for (let i = 0; i < 20; i += 1) observe('c', { firstTokenMs: 3_000, totalMs: 4_000 });
    expect(later(1_000)).toEqual({ c: 'latency' });
    for (let i = 0; i < 20; i += 1) {
      for (const id of ['a', 'b']) observe(id, { isStreaming: false, totalMs: 2_000, outputTokens: 200 });
      observe('d', { isStreaming: false, totalMs: 20_000, outputTokens: 200 });
    }
    expect(later(1_000)).toEqual({ c: 'latency', d: 'latency' });
  });

  test('are never more than half of those that serve a model', () => {
    observeWell('a');
    for (let i = 0; i < 20; i += 1) observe('b', { firstTokenMs: 3_000, totalMs: 4_000 });
    for (const id of ['c', 'd']) observeBad(id);
    for (let i = 0; i < 5; i += 1) expect(later(1_000)).toEqual({ c: 'failures', d: 'failures' });
  });

  test('are not looked for among endpoints that only accounts’ own credentials reach', () => {
    observeWell('a', 'b');
    observeBad('own');
    expect(later(1_000)).toEqual({});
  });
});
