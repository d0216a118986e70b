/** One program in QuickJS: an interpreter compiled to WebAssembly, which reaches nothing but its own memory. */
import { newQuickJSWASMModule, type QuickJSContext, type QuickJSHandle, type QuickJSRuntime, type QuickJSWASMModule } from 'quickjs-emscripten';
import type { ProgramEnd, ProgramLimits } from '../domain/program.js';

/** Small enough to end before the stack of the process does. */
const STACK_BYTES = 160 * 1_024;
/** Between two looks at the clock. */
const JOBS_AT_ONCE = 256;
const ERROR_CHARS_MAX = 2_000;
const FILE = 'program.js';

/**
 * Runs first, in the program's own world: `console`, and a function that turns values into text. Whatever the program
 * does to it harms the program only, since all that leaves is one string at a time, which is measured outside.
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

/** Text that leaves the program, at most so many bytes of UTF-8. */
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

  /** As much of it as there is room for. */
  fit(text: string): string {
    const left = this.bytesMax - this.bytes;
    if (text.length <= left && Buffer.byteLength(text) <= left) return text;
    this.isFull = true;
    const bytes = Buffer.from(text.slice(0, left));
    // A character that the cut would split is left out.
    let end = Math.min(left, bytes.length);
    while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    return bytes.subarray(0, end).toString('utf8');
  }

  text(): string {
    return this.parts.join('');
  }
}

/** Made before the program runs, so that nothing of the program runs in it. */
const QUOTE = '(function () { const { stringify } = JSON; return (text) => stringify(text); })()';

/** The text of a string. It leaves the interpreter as one that ends at a NUL, and in which half a surrogate pair is three characters: such a text leaves in quotes. */
function copied(context: QuickJSContext, quote: QuickJSHandle, handle: QuickJSHandle, length: number): string {
  const text = context.getString(handle);
  if (text.length === length) return text;
  const quoted = context.callFunction(quote, context.undefined, handle);
  if (quoted.error === undefined) return JSON.parse(quoted.value.consume((value) => context.getString(value))) as string;
  // No time or memory is left for it.
  quoted.error.dispose();
  return text;
}

/** Text of a handle that is a string, no longer than need be. Undefined: it is none. */
function stringOf(context: QuickJSContext, quote: QuickJSHandle, handle: QuickJSHandle, charsMax: number): string | undefined {
  if (context.typeof(handle) !== 'string') return undefined;
  const lengthOf = (text: QuickJSHandle): number => context.getProp(text, 'length').consume((told) => context.getNumber(told));
  const length = lengthOf(handle);
  // What is longer is not copied out of the program's memory as a whole.
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

/** What was thrown, without running anything of the program. */
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
      // Only modules may wait at their top; they have no last value.
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

  /** Undefined once nothing waits any more. */
  private runJobs(): ProgramEnd | undefined {
    for (;;) {
      const done = this.runtime.executePendingJobs(JOBS_AT_ONCE);
      if (done.error !== undefined) return this.failed(thrownOf(this.context, this.quote, done.error));
      if (this.output.isFull || this.checkTime()) return this.failed({ name: '', message: '', place: '' });
      if (done.value === 0) return undefined;
    }
  }

  /** A value as text; no text at all for what has no value, such as a module. */
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
    // Where there is no memory left for an error, the interpreter throws nothing in particular.
    const isOutOfMemory = (name === 'InternalError' && message === 'out of memory') || (this.bound.isMet && message === '');
    if (isOutOfMemory) return { status: 'OUT_OF_MEMORY', output, result, error: `The program was stopped: it needed more than ${Math.floor(this.limits.memoryBytes / 1_048_576)} MB.` };
    return { status: 'THREW', output, result, error: `${name}: ${message}${place === '' ? '' : ` (line ${place})`}`.slice(0, ERROR_CHARS_MAX) };
  }
}

/** Beside a program's values: the interpreter's code, tables and own stack. */
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

/** Of the one program that runs here. */
const bound: MemoryBound = { bytesMax: Infinity, isMet: false };

/**
 * Bounds the whole memory of the interpreter: its own limit counts what is asked for, not what is in use, so that many
 * small allocations pass below it. Refused growth is an allocation that fails, which the interpreter can tell.
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

/** The interpreter, loaded and unused. */
export function loadInterpreter(): Promise<QuickJSWASMModule> {
  return newQuickJSWASMModule();
}

/**
 * `interpreter` serves one program only: what it leaves behind is not for the next. `nowMs` is monotonic. Throws only
 * when a program breaks the interpreter itself: then its process is over.
 */
export function runProgram(interpreter: QuickJSWASMModule, code: string, limits: ProgramLimits, nowMs: () => number): ProgramEnd {
  bound.bytesMax = limits.memoryBytes + INTERPRETER_BYTES;
  bound.isMet = false;
  const runtime = interpreter.newRuntime();
  return new Program(runtime, runtime.newContext(), limits, bound, nowMs).run(code);
}
