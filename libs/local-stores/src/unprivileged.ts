/** Postgres refuses to run as root: how to run it as somebody else. */
import { spawnSync } from 'node:child_process';
import { StoreError } from './child.js';

export interface Identity {
  /** Put before the command. */
  readonly prefix: readonly string[];
  /** Real user to run as; the data folder must be given to it. */
  readonly uid?: number;
  readonly gid?: number;
}

const MAPPED = ['unshare', '--user', '--map-user=1000', '--map-group=1000'] as const;

function numberOf(flag: '-u' | '-g', user: string): number | undefined {
  const answer = spawnSync('id', [flag, user], { encoding: 'utf8', timeout: 3_000 });
  return answer.status === 0 ? Number(answer.stdout.trim()) : undefined;
}

/** Not root: as we are. Root: mapped to a plain user by a user namespace, else as `postgres` or `nobody`. Throws StoreError. */
export function findIdentity(): Identity {
  if (process.getuid?.() !== 0) return { prefix: [] };
  if (spawnSync(MAPPED[0], [...MAPPED.slice(1), 'true'], { stdio: 'ignore', timeout: 3_000 }).status === 0) return { prefix: MAPPED };
  for (const user of ['postgres', 'nobody']) {
    const uid = numberOf('-u', user);
    const gid = numberOf('-g', user);
    if (uid !== undefined && gid !== undefined && uid !== 0) return { prefix: [], uid, gid };
  }
  throw new StoreError('Postgres cannot run as root here: run as another user, or set DATABASE_URL to a database that exists.');
}
