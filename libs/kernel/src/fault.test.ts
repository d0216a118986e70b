import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Fault, toFault } from './fault.js';

const framesOf = (error: unknown): readonly string[] => (error instanceof Error ? (error.stack ?? '') : '').split('\n').filter((line) => line.startsWith('    at '));

class StoreFault extends Fault {
  constructor() {
    super('store_unavailable', 'Redis is silent', { cause: new Error('socket') });
  }
}

let limit: PropertyDescriptor | undefined;

beforeEach(() => {
  limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  Error.stackTraceLimit = 7;
});

afterEach(() => {
  if (limit !== undefined) Object.defineProperty(Error, 'stackTraceLimit', limit);
});

describe('a fault is expected, and has no frames', () => {
  test.each([
    ['a fault', () => new Fault('overloaded', 'full')],
    ['one with a cause', () => new Fault('store_unavailable', 'gone', { cause: new Error('x'), retryAfterMs: 5 })],
    ['one of a class of its own', () => new StoreFault()],
    ['a bug as a fault', () => toFault(new TypeError('a bug'))],
  ])('%s: its stack is one line, and the limit is as before', (_what, make) => {
    const fault = make();
    // Whether the stack begins with the class name depends on the formatter.
    expect((fault.stack ?? '').replace(/^Error: /, 'Fault: ')).toBe(`Fault: ${fault.message}`);
    expect(Error.stackTraceLimit).toBe(7);
    expect(fault).toBeInstanceOf(Fault);
    expect(fault.name).toBe('Fault');
  });

  test('the limit is as before when it cannot be made', () => {
    // Error itself reads `cause`.
    const throwing = new Proxy({}, { has: () => { throw new RangeError('no cause'); } });
    expect(() => Reflect.construct(Object.getPrototypeOf(Fault) as new (...given: unknown[]) => Error, ['x', throwing, false])).toThrow(RangeError);
    expect(Error.stackTraceLimit).toBe(7);
  });
});

describe('what is a bug keeps its frames', () => {
  test('an error that is made afterwards', () => {
    const fault = new Fault('overloaded', 'full');
    expect(framesOf(new TypeError(fault.message))).toHaveLength(7);
  });

  test('the cause of a fault', () => {
    const bug = new TypeError('a bug');
    const frames = framesOf(bug);
    const fault = toFault(bug);
    expect(fault.code).toBe('internal_error');
    expect(fault.cause).toBe(bug);
    expect(framesOf(fault.cause)).toEqual(frames);
    expect(frames.length).toBeGreaterThan(0);
  });

  test('an internal error that nothing caused', () => {
    expect(framesOf(new Fault('internal_error', 'a row is missing')).length).toBeGreaterThan(0);
    expect(framesOf(new Fault('internal_error', 'a listener threw', { cause: new Error('x') }))).toEqual([]);
  });
});

describe('where the limit is not ours to set', () => {
  test.each([
    ['frozen', { value: 7, writable: false, configurable: true }],
    ['behind a getter', { get: () => 7, configurable: true }],
  ])('%s: the fault is made all the same, and the limit is untouched', (_what, descriptor) => {
    Object.defineProperty(Error, 'stackTraceLimit', descriptor);
    expect(new Fault('overloaded', 'full').message).toBe('overloaded: full');
    expect(Error.stackTraceLimit).toBe(7);
  });

  test('missing: it stays so', () => {
    Reflect.deleteProperty(Error, 'stackTraceLimit');
    expect(new Fault('overloaded', 'full').code).toBe('overloaded');
    expect(Object.hasOwn(Error, 'stackTraceLimit')).toBe(false);
  });
});
