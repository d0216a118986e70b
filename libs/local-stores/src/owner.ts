/** Which process owns a data folder, so that a crash leaves nothing in the way and a second start harms nobody. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StoreError } from './child.js';

const FILE = 'owner.json';

/** A mark of the process's birth, so that a reused pid is not taken for it; empty where the system does not tell. */
function birthOf(pid: number): string {
  try {
    // Field 22 of stat, counted after the command in parentheses, which may hold blanks.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** True while a process of this number exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
  try {
    return !/^.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

/** Notes this process as the owner of `folder`. Throws StoreError when a live process owns it. */
export function claimFolder(folder: string): void {
  const path = join(folder, FILE);
  try {
    const owner = JSON.parse(readFileSync(path, 'utf8')) as { readonly pid: number; readonly birth: string };
    if (owner.pid !== process.pid && isAlive(owner.pid) && birthOf(owner.pid) === owner.birth) {
      throw new StoreError(`The data folder ${folder} is in use by process ${owner.pid}: stop it, or choose another DATA_DIR.`);
    }
  } catch (error) {
    if (error instanceof StoreError) throw error;
    // No owner yet, or a half-written note of one that died.
  }
  writeFileSync(path, JSON.stringify({ pid: process.pid, birth: birthOf(process.pid) }), { mode: 0o600 });
}

export function releaseFolder(folder: string): void {
  rmSync(join(folder, FILE), { force: true });
}
