/** `usage` of the Messages API to disjoint buckets: `input_tokens` is already without what the cache read or wrote. */
import { isObject, type Usage } from '../canonical.js';
import { tokenCount } from '../token-count.js';

/** What one event told; undefined = not told. */
export interface UsageFigures {
  readonly input: number | undefined;
  readonly cacheRead: number | undefined;
  readonly cacheWrite: number | undefined;
  /** Part of `cacheWrite` that is kept for an hour, and dearer. */
  readonly hourWrite: number;
  readonly output: number | undefined;
  readonly thinking: number | undefined;
}

const NAMES = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'output_tokens'] as const;

/** undefined when a figure cannot be a token count, or there is none. */
export function readFigures(raw: unknown): UsageFigures | undefined {
  if (!isObject(raw)) return undefined;
  const told = NAMES.map((name) => raw[name]).filter((value) => value !== undefined && value !== null);
  if (told.length === 0 || told.some((value) => tokenCount(value) === undefined)) return undefined;
  const details = isObject(raw['output_tokens_details']) ? raw['output_tokens_details'] : {};
  const writes = isObject(raw['cache_creation']) ? raw['cache_creation'] : {};
  return {
    input: tokenCount(raw['input_tokens']),
    cacheRead: tokenCount(raw['cache_read_input_tokens']),
    cacheWrite: tokenCount(raw['cache_creation_input_tokens']),
    hourWrite: tokenCount(writes['ephemeral_1h_input_tokens']) ?? 0,
    output: tokenCount(raw['output_tokens']),
    thinking: tokenCount(details['thinking_tokens']),
  };
}

const inputOf = ({ input = 0, cacheRead = 0, cacheWrite = 0 }: UsageFigures): number => input + cacheRead + cacheWrite;

/** A stream's figures are running totals: the later ones count. Input that is left out later, or 0 on every side, was told before. */
export function laterFigures(before: UsageFigures | undefined, later: UsageFigures): UsageFigures {
  if (before === undefined) return later;
  const input = inputOf(later) > 0 ? later : before;
  return {
    input: input.input ?? (inputOf(input) > 0 ? 0 : undefined),
    cacheRead: input.cacheRead ?? before.cacheRead,
    cacheWrite: input.cacheWrite ?? before.cacheWrite,
    hourWrite: Math.max(before.hourWrite, later.hourWrite),
    output: later.output ?? before.output,
    thinking: later.thinking ?? before.thinking,
  };
}

/** As `usageOf`, of the prompt alone; undefined while input is not told. */
export function promptUsageOf(figures: UsageFigures | undefined): Usage | undefined {
  return figures === undefined ? undefined : usageOf({ ...figures, output: 0, thinking: undefined });
}

/** undefined while input or output is not told. */
export function usageOf(figures: UsageFigures | undefined): Usage | undefined {
  if (figures?.input === undefined || figures.output === undefined) return undefined;
  const { input, cacheRead, cacheWrite = 0, output, thinking, hourWrite } = figures;
  const outputReasoning = Math.min(thinking ?? 0, output);
  return {
    tokens: { inputUncached: input, cacheRead: cacheRead ?? 0, cacheWrite, outputText: output - outputReasoning, outputReasoning, audio: 0, image: 0 },
    cachedKnown: cacheRead !== undefined,
    reasoningKnown: thinking !== undefined,
    // Writes for an hour are never asked for: their price is not in the card.
    isSuspect: (thinking ?? 0) > output || hourWrite > 0,
  };
}
