/** Why the start failed, for a person. */

/**
 * What of it is said on stderr. Without DATABASE_URL the database is the private one in the data folder: an error that
 * named the variable would be looked for in a setting that does not exist.
 */
export function wordsOfStartFailure(error: unknown, environment: Readonly<Record<string, string | undefined>>): string {
  if (!(error instanceof Error)) return 'unknown cause';
  return (environment['DATABASE_URL'] ?? '') === '' ? error.message.replaceAll('The database at DATABASE_URL', 'The private database in DATA_DIR') : error.message;
}
