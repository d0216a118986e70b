/** What quota needs to know of a Redis before it keeps counters there, read from INFO, since hosts often refuse CONFIG. */

export interface RedisInfo {
  /** Id of this run of the server. */
  readonly runId: string;
  /** True for a replica, which refuses writes. */
  readonly isReplica: boolean;
  /** True for a node of a cluster, which refuses the keys of others. */
  readonly isNode: boolean;
  /** Set if keys are deleted when `bytes` of memory are full. */
  readonly eviction: { readonly policy: string; readonly bytes: number } | undefined;
}

/** Reads the text that INFO returns. What is missing counts as harmless. */
export function readInfo(text: string): RedisInfo {
  const at = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(text)?.[1];
  const policy = at('maxmemory_policy') ?? 'noeviction';
  const bytes = Number(at('maxmemory') ?? 0);
  return { runId: at('run_id') ?? 'unnamed', isReplica: at('role') === 'slave', isNode: at('cluster_enabled') === '1', eviction: policy === 'noeviction' || bytes === 0 ? undefined : { policy, bytes } };
}
