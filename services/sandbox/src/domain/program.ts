/** What is asked of a program's run, and how it can end. */

export interface ProgramLimits {
  /** Of wall-clock time, which bounds its CPU time as well: a program has one thread. */
  readonly timeoutMs: number;
  /** Of all its values together. */
  readonly memoryBytes: number;
  /** Of what it prints and its last value together, in UTF-8. */
  readonly outputBytes: number;
}

export type ProgramStatus = 'COMPLETED' | 'THREW' | 'TIMED_OUT' | 'OUT_OF_MEMORY' | 'OUTPUT_LIMIT' | 'CRASHED' | 'OVERLOADED' | 'REFUSED';

export interface ProgramEnd {
  readonly status: ProgramStatus;
  readonly output: string;
  /** Its last value as text; empty when there is none. */
  readonly result: string;
  /** A sentence for the model; empty when completed. */
  readonly error: string;
}

/** Wall-clock limit, memory and output of the contract (section 9). */
export const TIMEOUT_MS_MAX = 5_000;
export const MEMORY_BYTES = 128 * 1_048_576;
export const OUTPUT_BYTES = 65_536;
export const CODE_BYTES_MAX = 262_144;
export const LANGUAGE = 'javascript';

export function refused(error: string): ProgramEnd {
  return { status: 'REFUSED', output: '', result: '', error };
}
