/** Names by which edge and routing speak of what a request holds, beside those of its fields. */

/** A stop sequence of blank space alone, such as a line's end: some wires refuse it, and are not sent it. */
export const BLANK_STOP = 'stop.blank';
/** `top_p` of a request that has a temperature too: some models refuse both together, and are not sent it. */
export const SECOND_SAMPLING = 'top_p.second';

/** A stop sequence beside another: some hosts take one, and are sent the first. */
export const SECOND_STOP = 'stop.second';
/** Sampling of a request that asks for thoughts: some models fix it while they think, and are not sent it. By field. */
export const THINKING_SAMPLING: Readonly<Record<'temperature' | 'top_p', string>> = { temperature: 'temperature.thinking', top_p: 'top_p.thinking' };

/** A penalty that rewards, or one above 1, which Cohere does not have: it is sent 0 or 1. By field. */
export const WIDE_PENALTIES: Readonly<Record<'presence_penalty' | 'frequency_penalty', string>> = { presence_penalty: 'presence_penalty.wide', frequency_penalty: 'frequency_penalty.wide' };
/** A `user` that is a mail address, a telephone number or very long: Anthropic refuses it, and is not sent it. */
export const PERSONAL_USER = 'user.personal';
/** An effort to think beside a limit that leaves no room for thoughts: models that are told how many tokens to think do not. */
export const CRAMPED_EFFORT = 'reasoning_effort.cramped';
/** An effort to think of an answer that is not streamed: some models think in streams alone, and else do not. */
export const WHOLE_EFFORT = 'reasoning_effort.whole';
/** `parallel_tool_calls: false`: some wires have no word for it, and their models may make several calls at once. */
export const SINGLE_CALLS = 'parallel_tool_calls.single';
/** Before the word of an effort to think: endpoints that lack it are sent the nearest. */
const EFFORT = 'reasoning_effort.of.';
/** By how much a model thinks. */
const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
/** Before the figure of a temperature: endpoints that take less are sent the most that they take. */
const WARM = 'temperature.of.';

const FIELDS: ReadonlyMap<string, string> = new Map([
  [PERSONAL_USER, 'user'],
  [CRAMPED_EFFORT, 'reasoning_effort'],
  [WHOLE_EFFORT, 'reasoning_effort'],
  [WIDE_PENALTIES.presence_penalty, 'presence_penalty'],
  [WIDE_PENALTIES.frequency_penalty, 'frequency_penalty'],
  [BLANK_STOP, 'stop'],
  [SECOND_STOP, 'stop'],
  [SINGLE_CALLS, 'parallel_tool_calls'],
  [SECOND_SAMPLING, 'top_p'],
  [THINKING_SAMPLING.temperature, 'temperature'],
  [THINKING_SAMPLING.top_p, 'top_p'],
]);

/** The name under which a temperature says how high it is. */
export const warmthParam = (temperature: number): string => `${WARM}${String(temperature)}`;

/** The temperature that a name tells; undefined = it tells none. */
export function warmthOf(name: string): number | undefined {
  return name.startsWith(WARM) ? Number(name.slice(WARM.length)) : undefined;
}

/** The name under which an effort says which it is; undefined = a word that says nothing here. */
export const effortParam = (effort: unknown): string | undefined => (typeof effort === 'string' && EFFORTS.includes(effort) ? `${EFFORT}${effort}` : undefined);

/** The effort that a name tells; undefined = it tells none. */
export function effortOf(name: string): string | undefined {
  return name.startsWith(EFFORT) ? name.slice(EFFORT.length) : undefined;
}

/** Of those that an endpoint has, the one to send for `effort`: the next that thinks less, else the next that thinks more. No thought at all is sent only where it was asked for. */
export function nearestEffort(effort: string, known: readonly string[]): string | undefined {
  if (known.includes(effort)) return effort;
  const rank = EFFORTS.indexOf(effort);
  const has = (word: string): boolean => word !== 'none' && known.includes(word);
  return EFFORTS.slice(0, rank).findLast(has) ?? EFFORTS.slice(rank + 1).find(has);
}

/** The field of the request that a name stands for. */
export function fieldOfParam(name: string): string {
  if (effortOf(name) !== undefined) return 'reasoning_effort';
  return FIELDS.get(name) ?? (warmthOf(name) === undefined ? name : 'temperature');
}
