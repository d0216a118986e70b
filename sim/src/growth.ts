/** Records the answers that workers got about the growth of each hold, to check them against how the answer ended. */
import type { ExtendHold } from '@signalbox/worker-kit/proof';
import type { Coverage } from './coverage.js';
import type { Scheduler } from './scheduler.js';

/** How long an answer waits at the end of its hold for an unreachable quota (ADR 11). */
const AWAY_PATIENCE_MS = 5_000;

interface Told {
  last: 'granted' | 'refused' | 'nothing';
  /** When quota first failed to answer since the last growth; undefined = it has not. */
  silentSinceMs: number | undefined;
}

export class GrowthRecord {
  private readonly told = new Map<string, Told>();
  /** Requests refused by the counters because of the admission's limits, in its epoch. */
  private readonly refused = new Set<string>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly coverage: Coverage,
  ) {}

  /** The counters found no room for more. */
  sawRefusal(requestId: string): void {
    this.refused.add(requestId);
  }

  /** Wraps `extendHold` and records its answers. */
  watch(extendHold: ExtendHold): ExtendHold {
    return async (accountId, requestId, ...amounts) => {
      const record = this.recordOf(requestId);
      try {
        const isGranted = await extendHold(accountId, requestId, ...amounts);
        record.last = isGranted ? 'granted' : 'refused';
        // Some of several questions may be lost, so a refusal does not end the wait.
        if (isGranted) record.silentSinceMs = undefined;
        this.coverage.took(isGranted ? 'growth: granted' : 'growth: refused');
        return isGranted;
      } catch (error) {
        record.last = 'nothing';
        record.silentSinceMs ??= this.scheduler.nowMs;
        this.coverage.took('growth: unanswered');
        throw error;
      }
    };
  }

  /** True if the limits left the request's hold no room, and that was the last answer to its worker. */
  wasRefused(requestId: string): boolean {
    return this.refused.has(requestId) && this.told.get(requestId)?.last === 'refused';
  }

  /** True if its worker got no answer for as long as an answer must wait. */
  wasWaitedFor(requestId: string): boolean {
    const sinceMs = this.told.get(requestId)?.silentSinceMs;
    return sinceMs !== undefined && this.scheduler.nowMs - sinceMs >= AWAY_PATIENCE_MS;
  }

  private recordOf(requestId: string): Told {
    let record = this.told.get(requestId);
    if (record === undefined) this.told.set(requestId, (record = { last: 'granted', silentSinceMs: undefined }));
    return record;
  }
}
