/** Interfaces that running programs needs from outside. */
import type { ProgramEnd, ProgramLimits } from './program.js';

/** A process for one program. */
export interface ProgramProcess {
  /** True if the process has ended or could not be started. */
  readonly isOver: boolean;
  /** Call at most once. Resolves within the limits, whatever the program does; the process has ended then. Never rejects. */
  run(code: string, limits: ProgramLimits): Promise<ProgramEnd>;
  /** Kills the process. Safe at any time. */
  kill(): void;
}

export interface ProgramProcesses {
  /** True if the kernel blocks the network; false = only the interpreter does, which has no network functions. */
  readonly isNetworkFenced: boolean;
  /** Never throws: if the process cannot be started, `isOver` is true. */
  start(): ProgramProcess;
}
