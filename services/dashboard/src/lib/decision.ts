/** Why a request went where it went, in plain words, from its record. */
import type { PreviousError, RequestDetail } from './types.js';
import { formatUsd } from './money.js';
import { formatMs } from './format.js';

function attemptWords(attempt: RequestDetail['attempts'][number]): string {
  const where = attempt.model === null ? attempt.provider : `${attempt.model} at ${attempt.provider}`;
  // The books know no failure of the provider and no end of the answer: whoever asked was gone.
  if (attempt.failure === null && attempt.finish_reason === 'error') return `${where} was left after ${formatMs(attempt.latency_ms)}, before its answer was whole`;
  if (attempt.failure === null && (attempt.status === null || attempt.status < 400)) return `${where} answered in ${formatMs(attempt.latency_ms)}`;
  const reason = attempt.failure === null ? `status ${attempt.status}` : attempt.failure.replaceAll('_', ' ');
  return `${where} failed (${reason})`;
}

export function decisionInWords(request: RequestDetail): readonly string[] {
  const words: string[] = [];
  const asked = request.routed_from;
  if (request.status === 'failed') words.push(`You asked for ${asked ?? 'a model'}; none answered.`);
  else if (asked === 'auto' || asked === 'router-auto') words.push(`You asked for ${asked}: the gateway chose ${request.model ?? 'a model'} as the best value for this prompt among the models and providers your policy allows.`);
  else if (asked !== null && asked !== request.model) words.push(`You asked for ${asked}; ${request.model ?? 'another model'} answered.`);
  else if (request.model !== null) words.push(`You asked for ${request.model} by name, so only its provider was chosen.`);
  const last = request.attempts.at(-1);
  if (request.attempts.length > 1 && last !== undefined) words.push(`${request.attempts.slice(0, -1).map(attemptWords).join('; ')}. Then ${attemptWords(last)}.`);
  else if (last !== undefined) words.push(`${attemptWords(last)}.`);
  else words.push('No provider was tried.');
  if (request.byok) words.push('It ran on your own key at the provider: the amount is what is asked there, and not charged here. Its tokens count towards your plan, overage included.');
  else if (request.savings_usd > 0) words.push(`It cost ${formatUsd(request.cost_usd)}, which is ${formatUsd(request.savings_usd)} less than the same tokens at the baseline model.`);
  if (request.charge.adjustments.length > 0) words.push(`The charge was corrected ${request.charge.adjustments.length === 1 ? 'once' : `${request.charge.adjustments.length} times`} afterwards.`);
  return words;
}

/** How many endpoints a request's wishes or the account's policy left out; undefined when none. */
export function leftOutInWords(excluded: Readonly<Record<string, number>>): string | undefined {
  const reasons = Object.entries(excluded).filter(([, count]) => count > 0);
  if (reasons.length === 0) return undefined;
  return `Left out before that: ${reasons.map(([reason, count]) => `${count} for ${reason.replaceAll('_', ' ')}`).join(', ')}.`;
}

/** Whom a refused request was asked of; empty when nobody was. */
export function triedInWords(errors: readonly PreviousError[]): string {
  const tried = new Set(errors.map(({ provider, code }) => `${provider} (${code.replaceAll('_', ' ')})`));
  return tried.size === 0 ? '' : `Tried: ${[...tried].join(', ')}.`;
}
