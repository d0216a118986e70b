/** What running programs needs from the world. */
import type { ProgramEnd, ProgramLimits } from './program.js';

/** A process for one program. */
export interface ProgramProcess {
  /** Its process is gone, or never came to be: it runs nothing any more. */
  readonly isOver: boolean;
  /** Once, at most. Resolves within the limits, whatever the program does; the process is gone then. Never rejects. */
  run(code: string, limits: ProgramLimits): Promise<ProgramEnd>;
  /** Ends it now. Safe at any time. */
  kill(): void;
}

export interface ProgramProcesses {
  /** The kernel keeps them from the network; false = only the interpreter does, which has none. */
  readonly isNetworkFenced: boolean;
  /** Never throws: one that the system did not make is over. */
  start(): ProgramProcess;
}
