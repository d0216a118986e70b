/** Postgres refuses to run as root: how to run it as somebody else. */
import { answerOf, StoreError } from './child.js';

export interface Identity {
  /** Put before the command. */
  readonly prefix: readonly string[];
  /** Real user to run as; the data folder must be given to it. */
  readonly uid?: number;
  readonly gid?: number;
}

const MAPPED = ['unshare', '--user', '--map-user=1000', '--map-group=1000'] as const;

const ANSWER_MS_MAX = 3_000;

async function numberOf(flag: '-u' | '-g', user: string): Promise<number | undefined> {
  const printed = await answerOf('id', [flag, user], { timeoutMs: ANSWER_MS_MAX });
  return printed === undefined ? undefined : Number(printed.trim());
}

/** Not root: as we are. Root: mapped to a plain user by a user namespace, else as `postgres` or `nobody`. Rejects with StoreError. */
export async function findIdentity(): Promise<Identity> {
  if (process.getuid?.() !== 0) return { prefix: [] };
  if ((await answerOf(MAPPED[0], [...MAPPED.slice(1), 'true'], { timeoutMs: ANSWER_MS_MAX })) !== undefined) return { prefix: MAPPED };
  for (const user of ['postgres', 'nobody']) {
    const uid = await numberOf('-u', user);
    const gid = await numberOf('-g', user);
    if (uid !== undefined && gid !== undefined && uid !== 0) return { prefix: [], uid, gid };
  }
  throw new StoreError('Postgres cannot run as root here: run as another user, or set DATABASE_URL to a database that exists.');
}
