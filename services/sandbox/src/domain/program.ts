/** Limits of a program's run, and how it can end. */

export interface ProgramLimits {
  /** Wall-clock time, which also bounds CPU time, since a program has one thread. */
  readonly timeoutMs: number;
  /** For all values of the program together. */
  readonly memoryBytes: number;
  /** For printed text and the last value together, in UTF-8. */
  readonly outputBytes: number;
}

export type ProgramStatus = 'COMPLETED' | 'THREW' | 'TIMED_OUT' | 'OUT_OF_MEMORY' | 'OUTPUT_LIMIT' | 'CRASHED' | 'OVERLOADED' | 'REFUSED';

export interface ProgramEnd {
  readonly status: ProgramStatus;
  readonly output: string;
  /** The program's last value as text; empty if there is none. */
  readonly result: string;
  /** A sentence for the model; empty if completed. */
  readonly error: string;
}

/** Public limits of wall-clock time, memory and output (docs/plugins.md). */
export const TIMEOUT_MS_MAX = 5_000;
export const MEMORY_BYTES = 128 * 1_048_576;
export const OUTPUT_BYTES = 65_536;
export const CODE_BYTES_MAX = 262_144;
export const LANGUAGE = 'javascript';

export function refused(error: string): ProgramEnd {
  return { status: 'REFUSED', output: '', result: '', error };
}
