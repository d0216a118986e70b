/** Kinds of task, which select the measurements of a model that count for a prompt (docs/auto.md). */

/** `math` is written in notation, `word-problem` in sentences; `exam` offers lettered answers; `chat` is everything else. */
export const CLUSTERS = ['tools', 'extraction', 'long-context', 'exam', 'code', 'translation', 'math', 'word-problem', 'chat'] as const;
export type Cluster = (typeof CLUSTERS)[number];

/** Similar kinds: a model's ability in one stands in for the other if that was not measured. */
export const KIN: Partial<Readonly<Record<Cluster, Cluster>>> = { math: 'word-problem', 'word-problem': 'math' };

/** What is known about a request besides its text. */
export interface PromptSetting {
  readonly hasTools: boolean;
  readonly wantsJson: boolean;
  /** Estimate for the whole conversation. */
  readonly promptTokens: number;
}

/** For a short prompt without tools or JSON. */
export const PLAIN_SETTING: PromptSetting = { hasTools: false, wantsJson: false, promptTokens: 0 };

/** Counts from the pass over the text. */
export interface TextCounts {
  readonly options: number;
  readonly numbers: number;
  /** Backslash commands and `$` before something that is not a digit. */
  readonly notation: number;
  readonly codeCues: number;
  readonly codeFences: number;
  readonly quantityCues: number;
  readonly translationCues: number;
  readonly jsonCues: number;
  readonly endsAsQuestion: boolean;
}

const LONG_CONTEXT_TOKENS = 16_000;
const OPTIONS_MIN = 3;
const CODE_CUES_MIN = 3;
const NOTATION_MIN = 2;
const NUMBERS_MIN = 2;

/** The cluster of a prompt where its text makes no difference. */
export function clusterGiven({ hasTools, wantsJson }: PromptSetting): Cluster | undefined {
  if (hasTools) return 'tools';
  return wantsJson ? 'extraction' : undefined;
}

/** The cluster of a prompt: the first rule that applies. */
export function clusterOf(setting: PromptSetting, counts: TextCounts): Cluster {
  const given = clusterGiven(setting);
  if (given !== undefined) return given;
  if (counts.jsonCues > 0) return 'extraction';
  if (setting.promptTokens > LONG_CONTEXT_TOKENS) return 'long-context';
  if (counts.options >= OPTIONS_MIN) return 'exam';
  if (counts.codeFences > 0 || counts.codeCues >= CODE_CUES_MIN) return 'code';
  if (counts.translationCues > 0) return 'translation';
  if (counts.notation >= NOTATION_MIN) return 'math';
  if (counts.numbers >= NUMBERS_MIN && (counts.endsAsQuestion || counts.quantityCues > 0)) return 'word-problem';
  return 'chat';
}
