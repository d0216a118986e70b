/** What a model of the Claude line takes, told by its version: each new line dropped settings of the one before. */

export interface ClaudeTraits {
  /** `budget`: told how many tokens to think; `adaptive`: told how much effort to make. */
  readonly thinking: 'none' | 'budget' | 'adaptive';
  /** Thinks unless told not to. */
  readonly thinksByDefault: boolean;
  readonly canStopThinking: boolean;
  /** While it thinks, sampling cannot be set and no tool be forced. */
  readonly isThinkingExclusive: boolean;
  /** Leaves its thinking out of the answer unless asked for a summary. */
  readonly hidesThinking: boolean;
  readonly efforts: readonly string[];
  /** Takes temperature and top_p at all. */
  readonly takesSampling: boolean;
  /** Takes temperature beside top_p. */
  readonly takesBothSampling: boolean;
  /** Takes `output_config.format`. */
  readonly takesJsonFormat: boolean;
}

interface Version {
  readonly family: string;
  readonly major: number;
  readonly minor: number;
}

/** `claude-opus-4-7`, `claude-sonnet-4-5@20250929`, `claude-sonnet-4-20250514`: dates are no minor version. */
const FAMILY_FIRST = /(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/;
/** `claude-3-7-sonnet-20250219` */
const VERSION_FIRST = /claude-(\d{1,2})(?:[-.](\d{1,2}))?-(opus|sonnet|haiku)/;
const NEWEST: Version = { family: '', major: Infinity, minor: 0 };

function versionOf(model: string): Version {
  const name = model.toLowerCase();
  const older = VERSION_FIRST.exec(name);
  if (older !== null) return { family: older[3] ?? '', major: Number(older[1]), minor: Number(older[2] ?? 0) };
  const newer = FAMILY_FIRST.exec(name);
  return newer === null ? { ...NEWEST, family: /fable|mythos/.exec(name)?.[0] ?? '' } : { family: newer[1] ?? '', major: Number(newer[2]), minor: Number(newer[3] ?? 0) };
}

/** A name without a version is taken for the newest. */
export function claudeTraits(model: string): ClaudeTraits {
  const { family, major, minor } = versionOf(model);
  const isAtLeast = (otherMajor: number, otherMinor: number): boolean => major > otherMajor || (major === otherMajor && minor >= otherMinor);
  const isAlwaysThinking = family === 'fable' || family === 'mythos';
  return {
    thinking: isAtLeast(4, 6) ? 'adaptive' : isAtLeast(3, 7) ? 'budget' : 'none',
    thinksByDefault: isAtLeast(5, 0),
    canStopThinking: !isAlwaysThinking,
    isThinkingExclusive: true,
    hidesThinking: isAtLeast(4, 7),
    efforts: isAtLeast(4, 7) ? ['low', 'medium', 'high', 'xhigh', 'max'] : ['low', 'medium', 'high', 'max'],
    takesSampling: !isAtLeast(4, 7),
    takesBothSampling: !isAtLeast(4, 1),
    takesJsonFormat: isAtLeast(4, 5) || (family === 'opus' && isAtLeast(4, 1)),
  };
}
