/** Watermarks: the highest sequence of a writer up to which everything is committed, and the ranges beyond a gap. */

/** Both ends included. */
export interface SeqRange {
  readonly first: bigint;
  readonly last: bigint;
}

export interface Progress {
  readonly watermark: bigint;
  /** Committed ranges above the watermark, ascending, with a gap before each. */
  readonly beyond: readonly SeqRange[];
}

/** Adds ranges, which may overlap and come in any order. */
export function mergeRanges(progress: Progress, added: readonly SeqRange[]): Progress {
  const sorted = [...progress.beyond, ...added].filter((range) => range.last >= range.first).sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  let watermark = progress.watermark;
  const beyond: SeqRange[] = [];
  for (const range of sorted) {
    if (range.first <= watermark + 1n) {
      if (range.last > watermark) watermark = range.last;
      continue;
    }
    const previous = beyond.at(-1);
    if (previous !== undefined && range.first <= previous.last + 1n) beyond[beyond.length - 1] = { first: previous.first, last: range.last > previous.last ? range.last : previous.last };
    else beyond.push(range);
  }
  return { watermark, beyond };
}
