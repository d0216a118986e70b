/** What running programs needs from the world. */
import type { ProgramEnd, ProgramLimits } from './program.js';

/** A process for one program. */
export interface ProgramProcess {
  /** Once, at most. Resolves within the limits, whatever the program does; the process is gone then. Never rejects. */
  run(code: string, limits: ProgramLimits): Promise<ProgramEnd>;
  /** Ends it now. Safe at any time. */
  kill(): void;
}

export interface ProgramProcesses {
  /** The kernel keeps them from the network; false = only the interpreter does, which has none. */
  readonly isNetworkFenced: boolean;
  start(): ProgramProcess;
}
