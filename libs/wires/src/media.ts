/** Images, sound and files that a client sends: data URLs read, bytes compared with what they claim to be. */
import { isBase64SetApart } from './long-strings.js';
import { badInput } from './unsendable.js';

export interface Media {
  /** Lower case, without parameters, such as `image/png`. */
  readonly mediaType: string;
  /** Standard alphabet, padded, no white space; of a client's the middle may be set apart. */
  readonly base64: string;
}

export type MediaSource = ({ readonly kind: 'inline' } & Media) | { readonly kind: 'url'; readonly url: string };

export type MediaKind = 'image' | 'audio' | 'file';

/** A reference that has to be fetched before the request can be composed. */
export interface MediaReference {
  readonly url: string;
  readonly kind: MediaKind;
  /** Names the message and part for the client. */
  readonly param: string;
}

/** Fetched media by URL. */
export type FetchedMedia = ReadonlyMap<string, Media>;

/** First bytes of formats that providers take, as base64 begins with them. */
const SIGNATURES: readonly (readonly [mediaType: string, base64: RegExp])[] = [
  ['image/png', /^iVBORw0KGgo/],
  ['image/jpeg', /^\/9j\//],
  ['image/gif', /^R0lGOD/],
  ['image/webp', /^UklGR.{6}XRUJQ/],
  ['application/pdf', /^JVBERi/],
];
const PDF = 'application/pdf';
/** Characters of base64 that hold the bytes within which readers look for a PDF's signature. */
const PDF_HEAD_CHARS = 1_368;
const PDF_HEAD_BYTES = 1_024;
/** Other words for a type. */
const SYNONYMS: Readonly<Record<string, string>> = { 'application/x-pdf': PDF, 'application/octet-stream': '', 'binary/octet-stream': '' };
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const PAD = '='.charCodeAt(0);
const PADS_MAX = 2;
/** By byte: what it is in the standard alphabet; 0 = it is of none, SKIPPED = white space. */
const SYMBOLS = new Uint8Array(256);
const SKIPPED = 1;
for (const symbol of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/') SYMBOLS[symbol.charCodeAt(0)] = symbol.charCodeAt(0);
SYMBOLS['-'.charCodeAt(0)] = '+'.charCodeAt(0);
SYMBOLS['_'.charCodeAt(0)] = '/'.charCodeAt(0);
for (const space of ' \t\r\n\f\v') SYMBOLS[space.charCodeAt(0)] = SKIPPED;
const SCHEME_CHARS = 'data:'.length;
const BASE64_MARK = ';base64';

/** Type by the first bytes; undefined for formats not known here. */
export function sniffMediaType(base64: string): string | undefined {
  const head = base64.slice(0, 32);
  return SIGNATURES.find(([, signature]) => signature.test(head))?.[0];
}

/** Whether it is a PDF whose signature stands behind a little junk, such as the blank lines of a careless server. */
function isJunkyPdf(base64: string): boolean {
  return Buffer.from(base64.slice(0, PDF_HEAD_CHARS), 'base64').subarray(0, PDF_HEAD_BYTES).includes('%PDF-');
}

const isPicture = (mediaType: string): boolean => mediaType.startsWith('image/');

/** What the bytes are, when that is what they claim to be; an empty claim is no claim. Throws Unsendable when they are something else. */
function checkedMedia(claimed: string, base64: string, kind: MediaKind, param: string): Media {
  const word = claimed.split(';')[0]?.trim().toLowerCase() ?? '';
  const mediaType = Object.hasOwn(SYNONYMS, word) ? (SYNONYMS[word] ?? '') : word;
  const isClaimed = mediaType !== '';
  const actual = sniffMediaType(base64) ?? ((mediaType === PDF || !isClaimed) && isJunkyPdf(base64) ? PDF : undefined);
  // Pictures with another picture's type are common, and harmless once the type is right.
  const fits = actual === undefined ? !SIGNATURES.some(([known]) => known === mediaType) : !isClaimed || actual === mediaType || (isPicture(actual) && isPicture(mediaType));
  const told = actual ?? (mediaType || word);
  if (!fits || (kind === 'image' && !isPicture(told))) throw badInput(param, `The ${kind} is not what its media type says.`);
  if (told === '') throw badInput(param, `The ${kind} has no media type.`);
  return { mediaType: told, base64 };
}

function toBase64(payload: string, isBase64: boolean, param: string): string {
  if (!isBase64) return Buffer.from(safelyDecoded(payload, param)).toString('base64');
  if (isBase64SetApart(payload)) return payload;
  const text = payload.includes('%') ? safelyDecoded(payload, param) : payload;
  if (text.length % 4 === 0 && BASE64.test(text)) return text;
  const bare = standardAlphabet(text);
  if (bare === undefined || bare === '' || bare.length % 4 === 1) throw badInput(param, 'The data is not base64.');
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, '=');
}

/** Base64 of either alphabet without white space and padding; undefined where it is none. In one pass over bytes: a text that is replaced piece by piece takes fifty times its memory. */
function standardAlphabet(text: string): string | undefined {
  const bytes = Buffer.from(text);
  let length = 0;
  let pads = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    const symbol = SYMBOLS[byte] as number;
    if (symbol > SKIPPED && pads === 0) {
      bytes[length] = symbol;
      length += 1;
    } else if (byte === PAD && pads < PADS_MAX) pads += 1;
    else if (symbol !== SKIPPED) return undefined;
  }
  return bytes.toString('latin1', 0, length);
}

function safelyDecoded(text: string, param: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badInput(param, 'The data URL is malformed.');
  }
}

/** A data URL's media. Throws Unsendable naming `param`. */
function readDataUrl(url: string, kind: MediaKind, param: string): Media {
  // A pattern would take a step back for each of a million semicolons, on the event loop, and overflow the stack on more.
  const comma = url.indexOf(',');
  if (comma < 0) throw badInput(param, 'The data URL is malformed.');
  const semicolon = url.indexOf(';');
  const typeEnd = semicolon < 0 ? comma : Math.min(semicolon, comma);
  const isBase64 = comma - BASE64_MARK.length >= typeEnd && url.slice(comma - BASE64_MARK.length, comma).toLowerCase() === BASE64_MARK;
  return checkedMedia(url.slice(SCHEME_CHARS, typeEnd), toBase64(url.slice(comma + 1), isBase64, param), kind, param);
}

/** A data or http(s) URL, or bare base64 whose first bytes tell its type. Throws Unsendable naming `param`. */
export function readMediaSource(text: string, kind: MediaKind, param: string): MediaSource {
  if (/^data:/i.test(text)) return { kind: 'inline', ...readDataUrl(text, kind, param) };
  if (/^https?:\/\//i.test(text)) return { kind: 'url', url: text };
  const base64 = toBase64(text, true, param);
  return { kind: 'inline', ...checkedMedia(sniffMediaType(base64) ?? '', base64, kind, param) };
}
