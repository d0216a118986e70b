/** Creates and checks folders named in settings, at the start. */
import { accessSync, constants, existsSync, mkdirSync, opendirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './config.js';

/** Creates the folder and its parents one by one: where the system permits no folders, as below /proc, Node's recursive mkdir never returns. */
function makeFolders(directory: string, mode: number): void {
  if (existsSync(directory)) return;
  makeFolders(dirname(directory), mode);
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    // Another process may have made it meanwhile: workers that start together make the same parents.
    if (!existsSync(directory)) throw error;
  }
}

/** Creates the folder named by the setting `variable` if it is missing. Throws a ConfigError if it is not writable. */
export function makeFolder(directory: string, variable: string, mode: number): void {
  try {
    makeFolders(resolve(directory), mode);
    // Fails with ENOTDIR if it is a file.
    opendirSync(directory).closeSync();
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new ConfigError(`${variable}: ${onOneLine(directory)} is not a folder that can be written (${typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown'}).`, { cause: error });
  }
}

/** A name for a one-line message: escapes characters that break the line or move the cursor, as in JSON. */
const onOneLine = (name: string): string => name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
