/** Patterns of credentials in a text. */

const KEYS: readonly RegExp[] = [
  // Prefixes that no ordinary word has.
  /\b(?:sk|sbx|gsk|csk|pplx|ghp|xox[abeoprs])[-_][\w-]{8,}/gi,
  /\b(?:pk|rk|fw|hf|r8|xai|tgp|npm|nvapi|gh[orsu]|github_pat|glpat|shpat|dop_v1)[-_][\w-]{16,}/gi,
  // AWS, Google, and JSON Web Tokens.
  /\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g,
  /\bAIza[\w-]{8,}/g,
  /\beyJ[\w-]{10,}(?:\.[\w-]+)*/g,
  /-----BEGIN [A-Z ]+-----.*/gs,
  // Not ordinary words: 24 or more letters and digits, ids in groups, and base64 outside of URLs and paths.
  /\b(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{24,}/gi,
  /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi,
  /(?<![\w./+=-])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*\d)[A-Za-z\d][\w+/=-]{23,}/g,
];

/** True if the text contains something with the form of a credential. */
export function holdsKey(text: string): boolean {
  return KEYS.some((pattern) => text.search(pattern) !== -1);
}

/** Replaces each by `mark`. */
export function withoutKeys(text: string, mark: string): string {
  return KEYS.reduce((rest, pattern) => rest.replace(pattern, () => mark), text);
}
