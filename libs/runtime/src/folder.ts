/** Folders that settings name, made and tried at the start. */
import { accessSync, constants, existsSync, mkdirSync, opendirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './config.js';

/** The folder and those above it, one by one: where the system refuses to make any, as below /proc, Node's own way never ends. */
function makeFolders(directory: string, mode: number): void {
  if (existsSync(directory)) return;
  makeFolders(dirname(directory), mode);
  if (!existsSync(directory)) mkdirSync(directory, { mode });
}

/** Makes the folder that the setting `variable` names when it is missing. Throws ConfigError where it cannot be written. */
export function makeFolder(directory: string, variable: string, mode: number): void {
  try {
    makeFolders(resolve(directory), mode);
    // Of a file it says that it is none.
    opendirSync(directory).closeSync();
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new ConfigError(`${variable}: ${onOneLine(directory)} is not a folder that can be written (${typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown'}).`, { cause: error });
  }
}

/** A name as it stands in a line: what would break it, or move the cursor, as JSON has it. */
const onOneLine = (name: string): string => name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
