/** The file `.env`, which the launchers and the admin command line read. */
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { emptyBlanks } from './config.js';

/**
 * Adds the variables of `file` that `environment` lacks; without a file nothing. Then empties what is blank, so that the launchers,
 * which ask in many places whether a variable is set, take it for absent as the services do. Returns a line for a person if the file cannot be read, undefined otherwise.
 */
export function loadEnvFile(environment: Record<string, string | undefined>, file = '.env'): string | undefined {
  const unread = addVariables(environment, file);
  emptyBlanks(environment);
  return unread;
}

function addVariables(environment: Record<string, string | undefined>, file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown';
    return code === 'ENOENT' ? undefined : `${file}: cannot be read (${code}). It must be a file that this user may read, or not be there.`;
  }
  if (text.includes('\0')) return `${file}: is not UTF-8 text. Save it as UTF-8.`;
  // Some editors begin a file with a byte order mark, which would become a part of the first name.
  for (const [name, value] of Object.entries(parseEnv(text.replace(/^\uFEFF/, '')))) environment[name] ??= value;
  return undefined;
}
