/** Names by which edge and routing speak of what a request holds, beside those of its fields. */

/** A stop sequence of blank space alone, such as a line's end: some wires refuse it, and are not sent it. */
export const BLANK_STOP = 'stop.blank';
/** `top_p` of a request that has a temperature too: some models refuse both together, and are not sent it. */
export const SECOND_SAMPLING = 'top_p.second';

/** A stop sequence beside another: some hosts take one, and are sent the first. */
export const SECOND_STOP = 'stop.second';
/** Sampling of a request that asks for thoughts: some models fix it while they think, and are not sent it. By field. */
export const THINKING_SAMPLING: Readonly<Record<'temperature' | 'top_p', string>> = { temperature: 'temperature.thinking', top_p: 'top_p.thinking' };

const FIELDS: ReadonlyMap<string, string> = new Map([
  [BLANK_STOP, 'stop'],
  [SECOND_STOP, 'stop'],
  [SECOND_SAMPLING, 'top_p'],
  [THINKING_SAMPLING.temperature, 'temperature'],
  [THINKING_SAMPLING.top_p, 'top_p'],
]);

/** The field of the request that a name stands for. */
export function fieldOfParam(name: string): string {
  return FIELDS.get(name) ?? name;
}
