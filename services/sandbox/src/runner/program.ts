/** Runs one program in QuickJS, an interpreter compiled to WebAssembly that can access only its own memory. */
import { newQuickJSWASMModule, type QuickJSContext, type QuickJSHandle, type QuickJSRuntime, type QuickJSWASMModule } from 'quickjs-emscripten';
import type { ProgramEnd, ProgramLimits } from '../domain/program.js';

/** Small enough that the program's stack overflows before that of the process. */
const STACK_BYTES = 160 * 1_024;
/** Jobs between two checks of the clock. */
const JOBS_AT_ONCE = 256;
const ERROR_CHARS_MAX = 2_000;
const FILE = 'program.js';

/**
 * Runs first, in the program's own context: defines `console` and a function that turns values into text. If the program
 * tampers with it, it harms only itself: output leaves one string at a time, and is measured outside.
 */
const PRELUDE = `(function (print) {
  'use strict';
  const { stringify } = JSON;
  const nameOf = (value) => (typeof value.name === 'string' && value.name !== '' ? value.name : 'anonymous');
  const plain = (key, value) => {
    if (typeof value === 'bigint') return String(value) + 'n';
    if (value instanceof Map) return { Map: [...value] };
    if (value instanceof Set) return { Set: [...value] };
    if (value instanceof Error) return String(value);
    return typeof value === 'function' ? '[Function ' + nameOf(value) + ']' : value;
  };
  const text = (value) => {
    if (typeof value === 'string') return value;
    if (typeof value === 'bigint') return String(value) + 'n';
    if (typeof value === 'symbol') return String(value);
    if (typeof value === 'function') return '[Function ' + nameOf(value) + ']';
    if (value instanceof Error) return String(value);
    if (typeof value === 'number' || typeof value !== 'object' || value === null) return String(value);
    try {
      return stringify(value, plain) ?? String(value);
    } catch (error) {
      return '[Unprintable: ' + String(error) + ']';
    }
  };
  const log = (...values) => {
    let line = '';
    for (let i = 0; i < values.length; i += 1) line += (i === 0 ? '' : ' ') + text(values[i]);
    print(line + '\\n');
  };
  globalThis.console = { log, info: log, warn: log, error: log, debug: log };
  globalThis.print = log;
  return text;
})`;

/** Output of the program, limited in bytes of UTF-8. */
class Output {
  private readonly parts: string[] = [];
  private bytes = 0;
  isFull = false;

  constructor(private readonly bytesMax: number) {}

  add(text: string): void {
    if (this.isFull) return;
    const fitting = this.fit(text);
    this.parts.push(fitting);
    this.bytes += Buffer.byteLength(fitting);
  }

  /** The part of the text for which there is room. */
  fit(text: string): string {
    const left = this.bytesMax - this.bytes;
    if (text.length <= left && Buffer.byteLength(text) <= left) return text;
    this.isFull = true;
    const bytes = Buffer.from(text.slice(0, left));
    // Do not split a character at the cut.
    let end = Math.min(left, bytes.length);
    while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    return bytes.subarray(0, end).toString('utf8');
  }

  text(): string {
    return this.parts.join('');
  }
}

/** Created before the program runs, so that the program cannot replace parts of it. */
const QUOTE = '(function () { const { stringify } = JSON; return (text) => stringify(text); })()';

/** Copies a string out of the interpreter. The copy would end at a NUL, and a lone surrogate would become three characters, so such strings are copied as quoted JSON. */
function copied(context: QuickJSContext, quote: QuickJSHandle, handle: QuickJSHandle, length: number): string {
  const text = context.getString(handle);
  if (text.length === length) return text;
  const quoted = context.callFunction(quote, context.undefined, handle);
  if (quoted.error === undefined) return JSON.parse(quoted.value.consume((value) => context.getString(value))) as string;
  // There is no time or memory left to quote it.
  quoted.error.dispose();
  return text;
}

/** Text of a string handle, cut to what is needed. Undefined = not a string. */
function stringOf(context: QuickJSContext, quote: QuickJSHandle, handle: QuickJSHandle, charsMax: number): string | undefined {
  if (context.typeof(handle) !== 'string') return undefined;
  const lengthOf = (text: QuickJSHandle): number => context.getProp(text, 'length').consume((told) => context.getNumber(told));
  const length = lengthOf(handle);
  // A longer string is not copied as a whole.
  if (length <= charsMax) return copied(context, quote, handle, length);
  const cut = context.evalCode('(text, end) => text.substring(0, end)', FILE);
  if (cut.error !== undefined) {
    cut.error.dispose();
    return '';
  }
  const end = context.newNumber(charsMax);
  const result = cut.value.consume((call) => context.callFunction(call, context.undefined, handle, end));
  end.dispose();
  if (result.error !== undefined) {
    result.error.dispose();
    return '';
  }
  return result.value.consume((short) => (context.typeof(short) === 'string' && lengthOf(short) <= charsMax ? copied(context, quote, short, lengthOf(short)) : ''));
}

interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly place: string;
}

/** Describes a thrown value without running any code of the program. */
function thrownOf(context: QuickJSContext, quote: QuickJSHandle, handle: QuickJSHandle): Thrown {
  const property = (name: string): string => context.getProp(handle, name).consume((value) => stringOf(context, quote, value, ERROR_CHARS_MAX) ?? '');
  if (context.typeof(handle) !== 'object') return { name: 'Error', message: `Thrown: ${stringOf(context, quote, handle, ERROR_CHARS_MAX) ?? String(context.dump(handle))}`, place: '' };
  try {
    return { name: property('name') || 'Error', message: property('message'), place: /program\.js:(\d+)/.exec(property('stack'))?.[1] ?? '' };
  } catch {
    return { name: 'Error', message: 'Something was thrown that cannot be read.', place: '' };
  }
}

class Program {
  private readonly output: Output;
  private readonly quote: QuickJSHandle;
  private deadlineMs = Infinity;
  private isLate = false;

  constructor(
    private readonly runtime: QuickJSRuntime,
    private readonly context: QuickJSContext,
    private readonly limits: ProgramLimits,
    private readonly bound: { readonly isMet: boolean },
    private readonly nowMs: () => number,
  ) {
    this.output = new Output(limits.outputBytes);
    this.quote = context.unwrapResult(context.evalCode(QUOTE, 'quote.js'));
    runtime.setMemoryLimit(limits.memoryBytes);
    runtime.setMaxStackSize(STACK_BYTES);
    runtime.setInterruptHandler(() => this.output.isFull || this.checkTime());
  }

  run(code: string): ProgramEnd {
    const { context } = this;
    const print = context.newFunction('print', (line) => {
      this.output.add(stringOf(context, this.quote, line, this.limits.outputBytes + 1) ?? '');
    });
    const prelude = context.unwrapResult(context.evalCode(PRELUDE, 'prelude.js'));
    const textOf = context.unwrapResult(context.callFunction(prelude, context.undefined, print));
    this.deadlineMs = this.nowMs() + this.limits.timeoutMs;
    let isModule = false;
    let evaluated = context.evalCode(code, FILE, { type: 'global' });
    if (evaluated.error !== undefined && /\bawait\b/.test(code) && thrownOf(context, this.quote, evaluated.error).name === 'SyntaxError') {
      // Only modules may have a top-level await, and modules have no last value.
      evaluated.error.dispose();
      isModule = true;
      evaluated = context.evalCode(code, FILE, { type: 'module' });
    }
    if (evaluated.error !== undefined) return this.failed(thrownOf(context, this.quote, evaluated.error));
    const jobs = this.runJobs();
    if (jobs !== undefined) return jobs;
    const state = context.getPromiseState(evaluated.value);
    if (state.type === 'rejected') return this.failed(thrownOf(context, this.quote, state.error));
    const value = state.type === 'fulfilled' ? state.value : undefined;
    const result = value === undefined ? '[A promise that nothing settles]' : isModule ? '' : this.show(textOf, value);
    if (typeof result !== 'string') return this.failed(result);
    const fitting = this.output.fit(result);
    return this.output.isFull ? this.failed({ name: '', message: '', place: '' }, fitting) : { status: 'COMPLETED', output: this.output.text(), result: fitting, error: '' };
  }

  /** Runs pending jobs; undefined once none is left. */
  private runJobs(): ProgramEnd | undefined {
    for (;;) {
      const done = this.runtime.executePendingJobs(JOBS_AT_ONCE);
      if (done.error !== undefined) return this.failed(thrownOf(this.context, this.quote, done.error));
      if (this.output.isFull || this.checkTime()) return this.failed({ name: '', message: '', place: '' });
      if (done.value === 0) return undefined;
    }
  }

  /** A value as text; empty if there is no value, as for a module. */
  private show(textOf: QuickJSHandle, value: QuickJSHandle): string | Thrown {
    const { context } = this;
    if (context.typeof(value) === 'undefined') return '';
    const shown = context.callFunction(textOf, context.undefined, value);
    if (shown.error !== undefined) return thrownOf(context, this.quote, shown.error);
    return stringOf(context, this.quote, shown.value, this.limits.outputBytes + 1) ?? '';
  }

  private checkTime(): boolean {
    this.isLate ||= this.nowMs() >= this.deadlineMs;
    return this.isLate;
  }

  private failed({ name, message, place }: Thrown, result = ''): ProgramEnd {
    const output = this.output.text();
    if (this.output.isFull) return { status: 'OUTPUT_LIMIT', output, result, error: `The program was stopped: it wrote more than ${this.limits.outputBytes} bytes.` };
    if (this.checkTime()) return { status: 'TIMED_OUT', output, result, error: `The program was stopped: it ran for longer than ${this.limits.timeoutMs} ms.` };
    // Without memory for an error object, the interpreter throws a value without meaning.
    const isOutOfMemory = (name === 'InternalError' && message === 'out of memory') || (this.bound.isMet && message === '');
    if (isOutOfMemory) return { status: 'OUT_OF_MEMORY', output, result, error: `The program was stopped: it needed more than ${Math.floor(this.limits.memoryBytes / 1_048_576)} MB.` };
    return { status: 'THREW', output, result, error: `${name}: ${message}${place === '' ? '' : ` (line ${place})`}`.slice(0, ERROR_CHARS_MAX) };
  }
}

/** Memory besides a program's values: the interpreter's code, tables and stack. */
const INTERPRETER_BYTES = 24 * 1_048_576;
const PAGE_BYTES = 65_536;

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

interface MemoryBound {
  bytesMax: number;
  /** Growth was refused. */
  isMet: boolean;
}

/** For the one program that runs in this process. */
const bound: MemoryBound = { bytesMax: Infinity, isMet: false };

/**
 * Limits the whole memory of the interpreter. QuickJS's own limit counts requested bytes, not memory in use, so many small
 * allocations can exceed it. When growth is refused, an allocation fails, and the interpreter reports it.
 */
function boundMemory(): void {
  const { prototype } = (globalThis as unknown as { readonly WebAssembly: { readonly Memory: { readonly prototype: WasmMemory } } }).WebAssembly.Memory;
  const grow = prototype.grow;
  prototype.grow = function (this: WasmMemory, pages) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > bound.bytesMax) {
      bound.isMet = true;
      throw new RangeError('The memory may not grow any more.');
    }
    return grow.call(this, pages);
  };
}

boundMemory();

/** Loads a fresh interpreter. */
export function loadInterpreter(): Promise<QuickJSWASMModule> {
  return newQuickJSWASMModule();
}

/**
 * Use each `interpreter` for one program only, so that nothing leaks into the next. `nowMs` is monotonic. Throws only
 * if a program breaks the interpreter itself: then its process must end.
 */
export function runProgram(interpreter: QuickJSWASMModule, code: string, limits: ProgramLimits, nowMs: () => number): ProgramEnd {
  bound.bytesMax = limits.memoryBytes + INTERPRETER_BYTES;
  bound.isMet = false;
  const runtime = interpreter.newRuntime();
  return new Program(runtime, runtime.newContext(), limits, bound, nowMs).run(code);
}
