/** Change log in memory, for tests. */
import type { Change, ChangeLog } from '../domain/ports.js';

export interface MemoryChangeLog extends ChangeLog {
  add(change: Change | undefined): void;
}

export function createMemoryChangeLog(): MemoryChangeLog {
  const changes: Change[] = [];
  return {
    add: (change) => {
      if (change !== undefined) changes.push(change);
    },
    list: async (after) => ({ cursor: String(changes.length), changes: after === '' ? [] : changes.slice(Number(after)), isUnbroken: after !== '', hasMore: false }),
  };
}
