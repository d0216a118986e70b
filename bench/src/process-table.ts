/** CPU time and memory of processes and all that they started, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts process time in hundredths of a second (USER_HZ). */
const US_PER_TICK = 10_000;

export interface ProcessStat {
  readonly pid: number;
  readonly name: string;
  readonly parentPid: number;
  /** Own user and system time, with that of children already waited for; µs in steps of 10,000. */
  readonly cpuUs: number;
}

export interface ProcessUse extends ProcessStat {
  /** Last part of the command line that tells what it is: a script's folder, or the program. */
  readonly role: string;
  /** Resident memory in bytes, shared pages counted in each process. */
  readonly rssBytes: number;
}

/** Reads the text of /proc/<pid>/stat; the name may hold spaces and brackets. Undefined when it is none. */
export function parseStat(text: string): ProcessStat | undefined {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const rest = text.slice(close + 2).trim().split(' ').map(Number);
  // After the name: state 0, ppid 1, utime 11, stime 12, cutime 13, cstime 14 (proc(5) fields 3, 4, 14 to 17).
  const [parentPid, user, system, childUser, childSystem] = [rest[1], rest[11], rest[12], rest[13], rest[14]];
  if (parentPid === undefined || user === undefined || system === undefined || childUser === undefined || childSystem === undefined) return undefined;
  return { pid: Number(text.slice(0, open)), name: text.slice(open + 1, close), parentPid, cpuUs: (user + system + childUser + childSystem) * US_PER_TICK };
}

/** The bytes of `VmRSS` in the text of /proc/<pid>/status; 0 when absent. */
export function parseRss(text: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024;
}

/** `roots` and every process below them, of a table of all processes. */
export function withDescendants(table: readonly ProcessStat[], roots: readonly number[]): ProcessStat[] {
  const wanted = new Set(roots);
  // Each pass finds one more generation; processes are not nested deeper than there are processes.
  for (let pass = 0, before = -1; pass < table.length && before !== wanted.size; pass += 1) {
    before = wanted.size;
    for (const { pid, parentPid } of table) if (wanted.has(parentPid)) wanted.add(pid);
  }
  return table.filter(({ pid }) => wanted.has(pid));
}

const readOr = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // The process ended meanwhile.
  }
};

/** The role that a command line plays: `worker-openai` of `…/services/worker-openai/dist/main.js`. */
export function roleOf(commandLine: string, name: string): string {
  const script = /([^/\0]+)\/(?:dist|src|build)\/[^\0]*\.js/.exec(commandLine)?.[1];
  return script ?? name;
}

/** Every process at or below `roots` now. */
export function readProcesses(roots: readonly number[]): ProcessUse[] {
  const table = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => parseStat(readOr(`/proc/${entry}/stat`)))
    .filter((stat) => stat !== undefined);
  return withDescendants(table, roots).map((stat) => ({
    ...stat,
    role: roleOf(readOr(`/proc/${String(stat.pid)}/cmdline`), stat.name),
    rssBytes: parseRss(readOr(`/proc/${String(stat.pid)}/status`)),
  }));
}

/** µs of CPU that all processes of a tree took until now. */
export function cpuUsOf(roots: readonly number[]): number {
  return readProcesses(roots).reduce((sum, { cpuUs }) => sum + cpuUs, 0);
}
