/** Images and files as Converse has them: bytes, a format word, and names of a narrow kind. */
import type { MediaPart } from '../chat-turns.js';
import type { FetchedMedia, Media } from '../media.js';
import { base64Json } from '../raw-json.js';
import { createUniqueNames } from '../unique-names.js';
import { badInput, notTakenHere } from '../unsendable.js';

const IMAGE_FORMATS: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpeg', 'image/gif': 'gif', 'image/webp': 'webp' };
const FILE_FORMATS: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'application/msword': 'doc',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/plain': 'txt',
};
const NAME_CHARS_MAX = 180;

/** Media types that are worth fetching for this wire. */
export const FETCHED_TYPES = { image: Object.keys(IMAGE_FORMATS), audio: [], file: Object.keys(FILE_FORMATS) } as const;

/** Letters, digits, single blanks, hyphens, parentheses and brackets; each name once in a request. */
export function createFileNames(): (name: string) => string {
  const unique = createUniqueNames(2, (base, copy) => `${base} (${String(copy)})`);
  return (name) => unique(name.replace(/\.[A-Za-z0-9]{1,5}$/, '').replace(/[^A-Za-z0-9 ()[\]-]+/g, ' ').replace(/ +/g, ' ').trim().slice(0, NAME_CHARS_MAX).trim() || 'file');
}

function imageBlock({ param }: MediaPart, { mediaType, base64 }: Media): object {
  const format = IMAGE_FORMATS[mediaType];
  if (format === undefined) throw notTakenHere(param, 'This model takes PNG, JPEG, GIF and WebP images.');
  return { image: { format, source: { bytes: base64Json(base64) } } };
}

function documentBlock({ param, name }: MediaPart, { mediaType, base64 }: Media, nameOf: (name: string) => string): object {
  const format = FILE_FORMATS[mediaType];
  if (format === undefined) throw notTakenHere(param, 'This model takes PDF, office and text files.');
  return { document: { format, name: nameOf(name), source: { bytes: base64Json(base64) } } };
}

/** Throws Unsendable. */
export function mediaBlock(part: MediaPart, fetched: FetchedMedia, nameOf: (name: string) => string): object {
  if (part.kind === 'audio') throw notTakenHere(part.param, 'This model takes no sound.');
  const media = part.source.kind === 'inline' ? part.source : fetched.get(part.source.url);
  if (media === undefined) throw badInput(part.param, 'The address could not be fetched.');
  return part.kind === 'image' ? imageBlock(part, media) : documentBlock(part, media, nameOf);
}
