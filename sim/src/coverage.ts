/** Counts the transitions and faults that occurred in a batch of runs. */

/** Transitions of a request in the accounting. A batch in which one never occurs proves nothing about it. */
export const TRANSITIONS = [
  'new → reserved', 'new → 402', 'new → blocked by live holds', 'new → 503', 'new → served from an advance',
  'reserved → released', 'reserved → lease over', 'reserved → dispatched', 'dispatched → streaming',
  'ended: provider', 'ended: estimated', 'ended: orphan',
  'outcome: delivered', 'outcome: superseded', 'outcome: discarded', 'outcome: concluded by the worker',
  'growth: granted', 'growth: refused', 'growth: unanswered', 'stopped by a cap', 'ended: quota away',
  'settled', 'settled at 0', 'settled on being asked', 'adjusted', 'failed over', 'replica lost: another asked', 'replica lost: another answered',
  'new → 429 for tokens', 'terms: changed', 'terms: another tier', 'on trial credit', 'own: charged nothing',
  'rounds: charged together', 'rounds: no room for another', 'rounds: discarded', 'rounds: cut', 'fee: charged', 'fee: not charged',
  'reserve: given after all', 'reserve: bettered', 'reserve: left for another', 'repeat: open', 'repeat: running', 'repeat: done', 'repeat: run again',
  'left before the head: prompt alone', 'left after the head: prompt alone', 'left before the request was sent', 'cut off before the head',
  'edge: stopped', 'edge: stopped amid rounds of two replicas', 'edge: stopped and cut answers off',
  'worker: ended',
  'client: answered', 'client: cut', 'client: refused', 'client: left', 'client: reset',
] as const;
export type Transition = (typeof TRANSITIONS)[number];

export class Coverage {
  readonly transitions = new Map<Transition, number>();
  readonly faults = new Map<string, number>();

  took(transition: Transition, times = 1): void {
    if (times > 0) this.transitions.set(transition, (this.transitions.get(transition) ?? 0) + times);
  }

  struck(fault: string): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }

  add(other: { readonly transitions: Iterable<readonly [Transition, number]>; readonly faults: Iterable<readonly [string, number]> }): void {
    for (const [transition, times] of other.transitions) this.took(transition, times);
    for (const [fault, times] of other.faults) this.faults.set(fault, (this.faults.get(fault) ?? 0) + times);
  }

  missing(): readonly Transition[] {
    return TRANSITIONS.filter((transition) => !this.transitions.has(transition));
  }
}
