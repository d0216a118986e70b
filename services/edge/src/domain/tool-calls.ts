/** Runs the calls of tools of ours that one round of a model made: which of them, in which order, and for how much. */
import type { Bought } from '@signalbox/kernel/card-fees';
import { firstChars } from '@signalbox/plugin-kit/conversation';
import type { ServerTools, SpendingTerms, ToolCall, ToolOutcome } from './turn.js';

/** Calls of one round that are run; the others are told that there were too many. */
const CALLS_MAX = 16;
/** Images of one answer: all are held until its end. */
const IMAGES_MAX = 4;
/** What a call that spends tells the model, in characters: held for before it runs. */
const SPENDING_CONTENT_CHARS_MAX = 512;
/** Its longest form in JSON. */
const SPENDING_CONTENT = 'x'.repeat(SPENDING_CONTENT_CHARS_MAX * 6);

export const feesOf = (outcomes: readonly (ToolOutcome | undefined)[]): bigint => outcomes.reduce((sum, outcome) => sum + (outcome?.stage.feeNanoUsd ?? 0n), 0n);

/** What calls bought, one entry a provider. */
export function boughtOf(outcomes: readonly ToolOutcome[]): readonly Bought[] {
  const sums = new Map<string, bigint>();
  for (const { stage: { bought } } of outcomes) if (bought !== undefined) sums.set(bought.provider, (sums.get(bought.provider) ?? 0n) + bought.nanoUsd);
  return [...sums].map(([provider, nanoUsd]) => ({ provider, nanoUsd }));
}

function notRun(name: string, reason: string, why: string): ToolOutcome {
  return { content: `Error: not run, since ${why}.`, images: [], stage: { stage: name, plugin: '', status: 'failed', durationMs: 0, feeNanoUsd: 0n, detail: { reason } } };
}

/** Of one request: what its answer may hold counts over all of its rounds. */
export class ToolCalls {
  private imagesLeft = IMAGES_MAX;

  constructor(
    private readonly tools: ServerTools,
    /** Before calls spend: the most that they may, in nano-USD, which nobody has paid for. Again with what they did spend, once that is known. */
    private readonly onSpent: (nanoUsd: bigint) => void,
  ) {}

  /**
   * Runs the calls of one round; outcomes in their order. Those that spend money outside run last, and only once
   * `hold` covers the round that is to pay for them at the most that they may cost: nothing is bought on credit.
   */
  async run(calls: readonly ToolCall[], byok: boolean, signal: AbortSignal, hold: (contents: readonly string[], feeNanoUsd: bigint) => Promise<boolean>): Promise<readonly ToolOutcome[] | 'no-room'> {
    const { spending } = this.tools;
    const bought: { readonly call: ToolCall; readonly at: number; readonly terms: SpendingTerms }[] = [];
    const others = calls.map((call, at): Promise<ToolOutcome> | undefined => {
      const terms = spending.get(call.name);
      if (at >= CALLS_MAX) return Promise.resolve(notRun(call.name, 'too_many_calls', `there were more than ${CALLS_MAX} calls at once`));
      if (terms === undefined) return this.runTool(call, byok, signal);
      if (terms.imagesMax > this.imagesLeft) return Promise.resolve(notRun(call.name, 'too_many_images', `an answer holds ${IMAGES_MAX} images at most`));
      this.imagesLeft -= terms.imagesMax;
      bought.push({ call, at, terms });
      return undefined;
    });
    const outcomes = await Promise.all(others);
    if (bought.length > 0) {
      const contents = outcomes.map((outcome) => outcome?.content ?? SPENDING_CONTENT);
      const spentMax = bought.reduce((sum, { terms }) => sum + terms.feeNanoUsdMax, 0n);
      if (!(await hold(contents, feesOf(outcomes) + spentMax))) return 'no-room';
      if (!byok) this.onSpent(spentMax);
      const given = await Promise.all(bought.map(({ call }) => this.runTool(call, byok, signal)));
      for (const [index, { at, terms }] of bought.entries()) {
        const outcome = given[index];
        if (outcome === undefined) continue;
        this.imagesLeft += terms.imagesMax - outcome.images.length;
        outcomes[at] = { ...outcome, content: firstChars(outcome.content, SPENDING_CONTENT_CHARS_MAX) };
      }
      // A call that was given up may have been paid for all the same.
      if (!byok && !signal.aborted) this.onSpent(feesOf(given));
    }
    return outcomes.flatMap((outcome) => (outcome === undefined ? [] : [outcome]));
  }

  /** Never rejects: a service that is away is told to the model. */
  private async runTool(call: ToolCall, byok: boolean, signal: AbortSignal): Promise<ToolOutcome> {
    try {
      return await this.tools.run(call, byok, signal);
    } catch {
      return { ...notRun(call.name, 'unavailable', ''), content: 'Error: the tool is not available at the moment.' };
    }
  }
}
