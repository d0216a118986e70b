import { describe, expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { createSchemaChecker, type SchemaThread } from './schema-checker.js';
import { createSchemaValidator } from './schema-validator.js';

interface FakeThread extends SchemaThread {
  readonly asked: number[];
  answer(id: number, verdict: boolean | undefined): void;
  exit(): void;
  isEnded: boolean;
}

function createFakeThread(isSlow: boolean): FakeThread {
  let onMessage: (message: { id: number; verdict: boolean | undefined }) => void = () => undefined;
  let onExit: () => void = () => undefined;
  const thread: FakeThread = {
    asked: [],
    isEnded: false,
    post: ({ id }) => {
      thread.asked.push(id);
      // The first check, made by the checker itself.
      if (thread.asked.length === 1 && !isSlow) onMessage({ id, verdict: true });
    },
    onMessage: (listener) => {
      onMessage = listener;
    },
    onExit: (listener) => {
      onExit = listener;
    },
    end: () => {
      thread.isEnded = true;
      return Promise.resolve();
    },
    answer: (id, verdict) => onMessage({ id, verdict }),
    exit: () => onExit(),
  };
  return thread;
}

function fakeChecker({ isSlow = false } = {}) {
  const clock = createFakeClock();
  const threads: FakeThread[] = [];
  const checker = createSchemaChecker({
    clock,
    start: () => {
      const thread = createFakeThread(isSlow);
      threads.push(thread);
      return thread;
    },
  });
  return { clock, threads, checker };
}

describe('the validator', () => {
  const validate = createSchemaValidator();
  const schema = (value: object): string => JSON.stringify(value);

  test.each([
    [{ type: 'object', required: ['a'] }, '{"a":1}', true],
    [{ type: 'object', required: ['a'] }, '{"b":1}', false],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', type: 'array', items: { $ref: '#/definitions/n' }, definitions: { n: { type: 'number' } } }, '[1,"x"]', false],
    [{ type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { enum: ['x'] } } }, '{"a":"y"}', false],
    [{ required: ['toString'] }, '{}', false],
    [{ properties: { toString: { type: 'string' } } }, '{}', true],
    [{ $async: true, type: 'object', required: ['a'] }, '{}', false],
    [{ $async: true, type: 'object', required: ['a'] }, '{"a":1}', true],
    [{ $async: {}, required: ['a'] }, '{}', undefined],
    [{ properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { $async: true, type: 'number' } } }, '{"a":"x"}', false],
    [{ $schema: 'http://json-schema.org/draft-04/schema#', type: 'object', required: ['a'] }, '{}', false],
    [{ $schema: 'http://json-schema.org/draft-06/schema#', type: 'object', required: ['a'] }, '{"a":1}', true],
    [{ $schema: 'https://json-schema.org/draft-07/schema', type: 'object', required: ['a'] }, '{}', false],
    [{ $schema: 'https://example.com/ours', type: 'object', required: ['a'] }, '{}', undefined],
    [{ $schema: 'http://json-schema.org/draft-04/schema#', type: 'number', minimum: 1, exclusiveMinimum: true }, '1', undefined],
    [{ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', required: ['a'] }, '{}', false],
    [{ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'nonsense' }, '{}', undefined],
    [{ $ref: 'https://json-schema.org/draft/2020-12/schema' }, '{"type":5}', false],
    [{ $id: 'https://example.com/named', type: 'string' }, '"x"', true],
    [{ $id: 'https://example.com/named', type: 'number' }, '"x"', false],
    [{ $ref: 'https://example.com/named' }, '"x"', undefined],
    [{ type: 'nonsense' }, '{}', undefined],
    [{ $ref: 'https://example.com/schema.json' }, '{}', undefined],
    [{ description: 'x'.repeat(200_000) }, '{}', undefined],
  ])('judges for the schema %j the text %s as %s', (value, text, verdict) => {
    expect(validate(schema(value), text)).toBe(verdict);
    expect(validate(schema(value), text)).toBe(verdict);
  });
});

describe('the checker', () => {
  test('starts its thread at the first check, and ends it after an idle minute', async () => {
    const { clock, threads, checker } = fakeChecker();
    expect(threads).toEqual([]);
    const first = checker.check('a', '{}', '1');
    const second = checker.check('a', '{}', '2');
    threads[0]?.answer(3, false);
    threads[0]?.answer(2, true);
    expect(await Promise.all([first, second])).toEqual([true, false]);
    clock.advance(60_000);
    expect([threads.length, threads[0]?.isEnded, clock.pendingTimers()]).toEqual([1, true, 0]);
  });

  test('drops a schema that hangs the thread and does not check it again, but checks others', async () => {
    const { clock, threads, checker } = fakeChecker();
    const hostile = checker.check('a', '{"pattern":"(a+)+$"}', '"x"');
    const behind = checker.check('b', '{"b":1}', '1');
    clock.advance(1_000);
    expect(await hostile).toBeUndefined();
    expect(threads[0]?.isEnded).toBe(true);
    // The checks behind it are not affected.
    threads[1]?.answer(threads[1].asked.at(-1) ?? 0, false);
    expect(await behind).toBe(false);
    expect(await checker.check('a', '{"pattern":"(a+)+$"}', '"x"')).toBeUndefined();
    expect(threads.length).toBe(2);
    const fine = checker.check('a', '{}', '1');
    threads[1]?.answer(threads[1].asked.at(-1) ?? 0, true);
    expect(await fine).toBe(true);
    await checker.stop();
    expect(clock.pendingTimers()).toBe(0);
  });

  test('stops checking for an account that hangs the thread repeatedly until the minute is over, but checks for others', async () => {
    const { clock, threads, checker } = fakeChecker();
    const hostile = Array.from({ length: 5 }, (_, at) => checker.check('a', `{"hostile":${String(at)}}`, '"x"'));
    const other = checker.check('b', '{}', '1');
    for (let at = 0; at < 3; at += 1) clock.advance(1_000);
    expect(await Promise.all(hostile)).toEqual(hostile.map(() => undefined));
    threads.at(-1)?.answer(threads.at(-1)?.asked.at(-1) ?? 0, true);
    expect([await other, await checker.check('a', '{}', '1'), threads.length]).toEqual([true, undefined, 4]);
    clock.advance(60_000);
    const later = checker.check('a', '{}', '1');
    threads.at(-1)?.answer(threads.at(-1)?.asked.at(-1) ?? 0, true);
    expect(await later).toBe(true);
    await checker.stop();
  });

  test('waits for a slow start and does not blame a schema for it', async () => {
    const { clock, threads, checker } = fakeChecker({ isSlow: true });
    const first = checker.check('a', '{}', '1');
    clock.advance(4_999);
    threads[0]?.answer(1, true);
    threads[0]?.answer(2, true);
    expect(await first).toBe(true);
    const other = fakeChecker({ isSlow: true });
    const never = other.checker.check('a', '{}', '1');
    other.clock.advance(5_000);
    expect(await never).toBeUndefined();
    const again = other.checker.check('a', '{}', '1');
    other.threads[1]?.answer(3, true);
    other.threads[1]?.answer(4, false);
    expect(await again).toBe(false);
    await other.checker.stop();
  });

  test('answers all waiting checks when the thread dies or is stopped', async () => {
    const { clock, threads, checker } = fakeChecker();
    const first = checker.check('a', '{}', '1');
    threads[0]?.exit();
    expect(await first).toBeUndefined();
    const second = checker.check('a', '{"a":1}', '1');
    await checker.stop();
    expect(await second).toBeUndefined();
    expect(clock.pendingTimers()).toBe(0);
  });
});
