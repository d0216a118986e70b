/** Process that runs one program: reads its text from stdin and writes how it ended to stdout. */
import type { ProgramEnd, ProgramLimits } from '../domain/program.js';
import { loadInterpreter, runProgram } from './program.js';

interface Task {
  readonly code: string;
  readonly limits: ProgramLimits;
}

const nowMs = (): number => performance.now();

async function readTask(): Promise<Task | undefined> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin as AsyncIterable<Buffer>) parts.push(part);
  const text = Buffer.concat(parts).toString('utf8');
  return text === '' ? undefined : (JSON.parse(text) as Task);
}

const interpreter = await loadInterpreter();
const task = await readTask();
if (task === undefined) process.exit(0);
// The parent measures the time limit from here on.
process.stdout.write('started\n');
let end: ProgramEnd;
try {
  end = runProgram(interpreter, task.code, task.limits, nowMs);
} catch (error) {
  const isStack = error instanceof RangeError;
  end = { status: isStack ? 'THREW' : 'CRASHED', output: '', result: '', error: isStack ? 'InternalError: stack overflow' : 'The program broke its interpreter.' };
}
process.stdout.write(JSON.stringify(end), () => process.exit(0));
