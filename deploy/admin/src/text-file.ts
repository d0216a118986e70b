/** Files that the operator hands over: text in UTF-8, and some of it. */
import { readFileSync } from 'node:fs';
import { Refusal } from './door.js';

const STANDARD_INPUT = 0;

/** `-` = what comes on standard input. Throws Refusal, which names the file. */
export function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file === '-' ? STANDARD_INPUT : file);
  } catch {
    throw new Refusal(`The file ${file} cannot be read.`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal(`The file ${file} is no text in UTF-8.`);
  }
  if (text.trim() === '') throw new Refusal(`The file ${file} is empty.`);
  return text;
}
