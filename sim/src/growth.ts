/** What workers were told about the growth of each hold, to be held against how the answer ended. */
import type { ExtendHold } from '@signalbox/worker-kit/proof';
import type { Coverage } from './coverage.js';
import type { Scheduler } from './scheduler.js';

/** So long an answer waits at the end of its hold for a quota that is away (ADR 11). */
const AWAY_PATIENCE_MS = 5_000;

interface Told {
  last: 'granted' | 'refused' | 'nothing';
  /** When first nobody answered since the last growth; undefined = never. */
  silentSinceMs: number | undefined;
}

export class GrowthRecord {
  private readonly told = new Map<string, Told>();
  /** Refused by the counters, by the limits of the admission and in its life. */
  private readonly refused = new Set<string>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly coverage: Coverage,
  ) {}

  /** The counters found no room for more. */
  sawRefusal(requestId: string): void {
    this.refused.add(requestId);
  }

  /** Writes down what `extendHold` answers. */
  watch(extendHold: ExtendHold): ExtendHold {
    return async (accountId, requestId, ...amounts) => {
      const record = this.recordOf(requestId);
      try {
        const isGranted = await extendHold(accountId, requestId, ...amounts);
        record.last = isGranted ? 'granted' : 'refused';
        // Of several questions at one place some may be lost: a refusal is no end of the waiting.
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

  /** True when limits left the request's hold no room, and its worker was told so last. */
  wasRefused(requestId: string): boolean {
    return this.refused.has(requestId) && this.told.get(requestId)?.last === 'refused';
  }

  /** True when its worker has asked in vain for as long as an answer has to wait. */
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
