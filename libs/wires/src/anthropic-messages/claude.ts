/** What a model of the Claude line takes, told by its version: each new line dropped settings of the one before. */

/** Highest temperature of the wire, whatever host it is spoken to. */
export const TEMPERATURE_MAX = 1;

export interface ClaudeTraits {
  /** `budget`: told how many tokens to think; `adaptive`: told how much effort to make. */
  readonly thinking: 'none' | 'budget' | 'adaptive';
  /** Thinks unless told not to. */
  readonly thinksByDefault: boolean;
  /** How it is told not to; undefined = it cannot but think. */
  readonly stopsThinkingBy: 'disabled' | 'between_tools' | undefined;
  /** While it thinks, sampling cannot be set and no tool be forced. */
  readonly isThinkingExclusive: boolean;
  /** Can be made to call a tool. */
  readonly takesForcedTools: boolean;
  /** Refuses thinking that is sent back behind another beginning than it was thought after, unless told to leave it out. */
  readonly bindsThinking: boolean;
  /** Leaves its thinking out of the answer unless asked for a summary. */
  readonly hidesThinking: boolean;
  readonly efforts: readonly string[];
  /** Takes temperature and top_p at all. */
  readonly takesSampling: boolean;
  /** Takes temperature beside top_p. */
  readonly takesBothSampling: boolean;
  /** Goes on with words of its own that end the conversation; others want the user to speak last. */
  readonly takesPrefill: boolean;
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

function versionIn(model: string): Version | undefined {
  const name = model.toLowerCase();
  const older = VERSION_FIRST.exec(name);
  if (older !== null) return { family: older[3] ?? '', major: Number(older[1]), minor: Number(older[2] ?? 0) };
  const newer = FAMILY_FIRST.exec(name);
  return newer === null ? undefined : { family: newer[1] ?? '', major: Number(newer[2]), minor: Number(newer[3] ?? 0) };
}

/** By the first name that tells a version: a deployment may be called anything. Where none does it is taken for the newest. */
export function claudeTraits(...names: readonly string[]): ClaudeTraits {
  const told = names.map(versionIn).find((version) => version !== undefined);
  const { family, major, minor } = told ?? { ...NEWEST, family: /fable|mythos|opus|sonnet|haiku/.exec(names.join(' ').toLowerCase())?.[0] ?? '' };
  const isAtLeast = (otherMajor: number, otherMinor: number): boolean => major > otherMajor || (major === otherMajor && minor >= otherMinor);
  const isSince55 = isAtLeast(5, 5);
  const isAlwaysThinking = family === 'fable' || family === 'mythos' || (isSince55 && family !== 'sonnet' && family !== 'haiku');
  return {
    thinking: isAtLeast(4, 6) ? 'adaptive' : isAtLeast(3, 7) ? 'budget' : 'none',
    thinksByDefault: isAtLeast(5, 0),
    stopsThinkingBy: isAlwaysThinking ? undefined : isSince55 && family === 'sonnet' ? 'between_tools' : 'disabled',
    isThinkingExclusive: true,
    takesForcedTools: !isAlwaysThinking && (!isSince55 || family === 'haiku'),
    bindsThinking: isAtLeast(5, 1),
    hidesThinking: isAtLeast(4, 7),
    efforts: isAtLeast(4, 7) ? ['low', 'medium', 'high', 'xhigh', 'max'] : ['low', 'medium', 'high', 'max'],
    takesSampling: !isAtLeast(4, 7),
    takesBothSampling: !isAtLeast(4, 1),
    takesPrefill: !isAtLeast(4, 6),
    takesJsonFormat: isAtLeast(4, 5) || (family === 'opus' && isAtLeast(4, 1)),
  };
}

/** Whether it goes on with words of its own that end the conversation: one that thinks wants to begin with that. */
export function takesPrefill(traits: ClaudeTraits, isThinking: boolean): boolean {
  return traits.takesPrefill && !(isThinking && traits.isThinkingExclusive);
}
