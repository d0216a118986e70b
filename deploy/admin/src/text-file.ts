/** Reads files given by the operator, which must be non-empty UTF-8 text. */
import { readFileSync } from 'node:fs';
import { Refusal } from './door.js';

const STANDARD_INPUT = 0;

/** `-` = standard input. Throws a Refusal that names the file. */
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
