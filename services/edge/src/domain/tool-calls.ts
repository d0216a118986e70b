/** Runs the calls of plugins' tools that a model made in one round, within bounds of number, order and fees. */
import type { Bought } from '@signalbox/kernel/card-fees';
import { firstChars } from '@signalbox/plugin-kit/conversation';
import type { ServerTools, SpendingTerms, ToolCall, ToolOutcome } from './turn.js';

/** Calls of one round that are run; for further ones the model is told that there were too many. */
const CALLS_MAX = 16;
/** Calls of one round that run at once: few enough that several requests together stay within the sandbox's bound for an account. */
const CALLS_AT_ONCE = 4;
/** Images of one answer; all are kept in memory until its end. */
const IMAGES_MAX = 4;
/** Characters that a call which spends money returns to the model at most: the hold covers them before it runs. */
const SPENDING_CONTENT_CHARS_MAX = 512;
/** The same number of characters in their longest JSON form, for the hold. */
const SPENDING_CONTENT = 'x'.repeat(SPENDING_CONTENT_CHARS_MAX * 6);

export const feesOf = (outcomes: readonly (ToolOutcome | undefined)[]): bigint => outcomes.reduce((sum, outcome) => sum + (outcome?.stage.feeNanoUsd ?? 0n), 0n);

/** What the calls bought, one entry for each provider. */
export function boughtOf(outcomes: readonly ToolOutcome[]): readonly Bought[] {
  const sums = new Map<string, bigint>();
  for (const { stage: { bought } } of outcomes) if (bought !== undefined) sums.set(bought.provider, (sums.get(bought.provider) ?? 0n) + bought.nanoUsd);
  return [...sums].map(([provider, nanoUsd]) => ({ provider, nanoUsd }));
}

function notRun(name: string, reason: string, why: string): ToolOutcome {
  return { content: `Error: not run, since ${why}.`, images: [], stage: { stage: name, plugin: '', status: 'failed', durationMs: 0, feeNanoUsd: 0n, detail: { reason } } };
}

/** The results of `work` in the order of `items`; at most `CALLS_AT_ONCE` run at once. */
async function fewAtOnce<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  const go = async (): Promise<void> => {
    for (const [at, item] of left) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, go));
  return results;
}

/** The calls of one request; images are counted over all its rounds. */
export class ToolCalls {
  private imagesLeft = IMAGES_MAX;

  constructor(
    private readonly tools: ServerTools,
    /** Called before calls spend money with the most that they may spend, in nano-USD, and again with what they did. */
    private readonly onSpent: (nanoUsd: bigint) => void,
  ) {}

  /**
   * Runs the calls of one round; outcomes in their order. Those that spend money outside run last, and only once `hold`
   * covers the next round with their highest fees; `no-room` otherwise.
   */
  async run(calls: readonly ToolCall[], byok: boolean, signal: AbortSignal, hold: (contents: readonly string[], feeNanoUsd: bigint) => Promise<boolean>): Promise<readonly ToolOutcome[] | 'no-room'> {
    const { spending } = this.tools;
    const bought: { readonly call: ToolCall; readonly at: number; readonly terms: SpendingTerms }[] = [];
    const given = calls.map((call, at): ToolCall | ToolOutcome | undefined => {
      const terms = spending.get(call.name);
      if (at >= CALLS_MAX) return notRun(call.name, 'too_many_calls', `there were more than ${CALLS_MAX} calls at once`);
      if (terms === undefined) return call;
      if (terms.imagesMax > this.imagesLeft) return notRun(call.name, 'too_many_images', `an answer holds ${IMAGES_MAX} images at most`);
      this.imagesLeft -= terms.imagesMax;
      bought.push({ call, at, terms });
      return undefined;
    });
    const outcomes = await fewAtOnce(given, async (one) => (one === undefined || 'content' in one ? one : this.runTool(one, byok, signal)));
    if (bought.length > 0 && !signal.aborted) {
      const contents = outcomes.map((outcome) => outcome?.content ?? SPENDING_CONTENT);
      const spentMax = bought.reduce((sum, { terms }) => sum + terms.feeNanoUsdMax, 0n);
      if (!(await hold(contents, feesOf(outcomes) + spentMax))) return 'no-room';
      if (!byok) this.onSpent(spentMax);
      const paid = await fewAtOnce(bought, ({ call }) => this.runTool(call, byok, signal));
      for (const [index, { at, terms }] of bought.entries()) {
        const outcome = paid[index];
        if (outcome === undefined) continue;
        this.imagesLeft += terms.imagesMax - outcome.images.length;
        outcomes[at] = { ...outcome, content: firstChars(outcome.content, SPENDING_CONTENT_CHARS_MAX) };
      }
      // An aborted call may have spent money all the same, so the highest amount stays.
      if (!byok && !signal.aborted) this.onSpent(feesOf(paid));
    }
    return outcomes.flatMap((outcome) => (outcome === undefined ? [] : [outcome]));
  }

  /** Never rejects: if the service is away, the outcome tells the model so. */
  private async runTool(call: ToolCall, byok: boolean, signal: AbortSignal): Promise<ToolOutcome> {
    if (signal.aborted) return notRun(call.name, 'cancelled', 'nobody waits for it');
    try {
      return await this.tools.run(call, byok, signal);
    } catch {
      return { ...notRun(call.name, 'unavailable', ''), content: 'Error: the tool is not available at the moment.' };
    }
  }
}
