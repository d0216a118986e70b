/** `reasoning_effort` as Gemini's thinking settings: levels from the third generation on, token budgets before. */

/** Tokens; what Google's own compatible endpoint makes of the same words. */
const BUDGETS: Readonly<Record<string, number>> = { none: 0, minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576, xhigh: 24_576, max: 24_576 };
/** 2.5 Pro cannot stop thinking. */
const PRO_BUDGET_MIN = 128;
const LEVELS: Readonly<Record<string, string>> = { none: 'MINIMAL', minimal: 'MINIMAL', low: 'LOW', medium: 'MEDIUM', high: 'HIGH', xhigh: 'HIGH', max: 'HIGH' };
/** Pro and the flash models after 3.7 have LOW for their least. */
const TAKES_MINIMAL = /^gemini-3(?:\.[0-7])?-flash/;

/** undefined when nothing was asked, the word is unknown or the model has no such setting. */
export function thinkingOf(effort: string, providerModelId: string): object | undefined {
  const model = providerModelId.replace(/^models\//, '');
  const budget = Object.hasOwn(BUDGETS, effort) ? BUDGETS[effort] : undefined;
  if (budget === undefined) return undefined;
  // Thoughts are told to those who asked for them.
  const includeThoughts = effort === 'none' ? {} : { includeThoughts: true };
  if (model.startsWith('gemini-2.5')) return { ...includeThoughts, thinkingBudget: model.includes('-pro') ? Math.max(PRO_BUDGET_MIN, budget) : budget };
  if (!/^gemini-(?:[3-9]|\d\d)/.test(model)) return undefined;
  const level = LEVELS[effort] ?? 'HIGH';
  return { ...includeThoughts, thinkingLevel: level === 'MINIMAL' && !TAKES_MINIMAL.test(model) ? 'LOW' : level };
}
