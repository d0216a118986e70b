/** After how long a fact's recency has fallen to a third: 30 days, in milliseconds. */
export const RECENCY_MS = 30 * 24 * 3_600_000;
