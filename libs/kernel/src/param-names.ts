/** Names, beyond those of fields, by which edge tells routing about details of a request that some endpoints do not accept. */

/** A stop sequence of white space only, such as a line break: not sent to wires that refuse it. */
export const BLANK_STOP = 'stop.blank';
/** `top_p` in a request that also has a temperature: not sent to models that refuse both together. */
export const SECOND_SAMPLING = 'top_p.second';

/** A second stop sequence: hosts that accept only one are sent the first. */
export const SECOND_STOP = 'stop.second';
/** Sampling fields of a request with reasoning: not sent to models that fix sampling while they think. By field. */
export const THINKING_SAMPLING: Readonly<Record<'temperature' | 'top_p', string>> = { temperature: 'temperature.thinking', top_p: 'top_p.thinking' };

/** A negative penalty, or one above 1, which Cohere does not support: it is sent 0 or 1. By field. */
export const WIDE_PENALTIES: Readonly<Record<'presence_penalty' | 'frequency_penalty', string>> = { presence_penalty: 'presence_penalty.wide', frequency_penalty: 'frequency_penalty.wide' };
/** A `user` that is a mail address, a telephone number or very long: not sent to Anthropic, which refuses it. */
export const PERSONAL_USER = 'user.personal';
/** `reasoning_effort` with a token limit that leaves no room for reasoning: models that take a reasoning budget in tokens then do not think. */
export const CRAMPED_EFFORT = 'reasoning_effort.cramped';
/** `reasoning_effort` of an answer that is not streamed: some models think only in streams. */
export const WHOLE_EFFORT = 'reasoning_effort.whole';
/** `parallel_tool_calls: false`: some wires cannot express it, and their models may make several calls at once. */
export const SINGLE_CALLS = 'parallel_tool_calls.single';
/** Prefix of an effort's value: endpoints that lack it are sent the nearest. */
const EFFORT = 'reasoning_effort.of.';
/** In ascending order. */
const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
/** Prefix of a temperature's value: endpoints with a lower maximum are sent that. */
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

/** Encodes a temperature as such a name. */
export const warmthParam = (temperature: number): string => `${WARM}${String(temperature)}`;

/** Decodes a temperature from a name; undefined = the name has none. */
export function warmthOf(name: string): number | undefined {
  return name.startsWith(WARM) ? Number(name.slice(WARM.length)) : undefined;
}

/** Encodes an effort as such a name; undefined = not a known effort. */
export const effortParam = (effort: unknown): string | undefined => (typeof effort === 'string' && EFFORTS.includes(effort) ? `${EFFORT}${effort}` : undefined);

/** Decodes an effort from a name; undefined = the name has none. */
export function effortOf(name: string): string | undefined {
  return name.startsWith(EFFORT) ? name.slice(EFFORT.length) : undefined;
}

/** The effort to send for `effort`, of those that an endpoint supports: the next lower one, else the next higher one. `none` is used only if it was asked for. */
export function nearestEffort(effort: string, known: readonly string[]): string | undefined {
  if (known.includes(effort)) return effort;
  const rank = EFFORTS.indexOf(effort);
  const has = (word: string): boolean => word !== 'none' && known.includes(word);
  return EFFORTS.slice(0, rank).findLast(has) ?? EFFORTS.slice(rank + 1).find(has);
}

/** The request's field to which a name belongs. */
export function fieldOfParam(name: string): string {
  if (effortOf(name) !== undefined) return 'reasoning_effort';
  return FIELDS.get(name) ?? (warmthOf(name) === undefined ? name : 'temperature');
}
