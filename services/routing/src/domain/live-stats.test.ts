import { describe, expect, test } from '@jest/globals';
import { createBreaker } from '@signalbox/router-core/breaker';
import { createLiveStats, type Observation } from './live-stats.js';
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

  test('a 429 opens it for its Retry-After, which a later shorter one does not cut', () => {
    const breaker = createBreaker();
    breaker.record(false, 60_000, 0);
    breaker.record(false, 1_000, 100);
    expect(breaker.state(59_999)).toBe('open');
    expect(breaker.state(60_000)).toBe('half-open');
  });
});

describe('live statistics', () => {
  const observation = (changes: Partial<Observation> = {}): Observation => ({ endpointId: 'a', isSuccess: true, isStreaming: true, firstTokenMs: 200, totalMs: 1_200, outputTokens: 100, retryAfterMs: 0, ...changes });

  test('tell latency, speed and success, ignore unknown endpoints, and are at most a second old', () => {
    let nowMs = 0;
    const live = createLiveStats({ nowMs: () => 0, monotonicMs: () => nowMs, setTimer: () => ({ cancel: () => undefined }) }, (id) => id === 'a');
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
});
