// Runs as a separate process: reads a PDF from standard input and writes its text as JSON to standard output. Needs no
// environment, no network and no files except the library's. The parent limits time and memory; a crash here harms nothing else.

import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';

// Standard output must contain only the answer, and the library logs warnings there.
for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = () => undefined;
// Nothing is drawn, but the library refers to these classes as it loads.
for (const name of ['DOMMatrix', 'Path2D', 'ImageData']) globalThis[name] ??= class {};

const [maxPagesText = '1', maxCharsText = '1'] = process.argv.slice(2);
const maxPages = Number(maxPagesText);
const maxChars = Number(maxCharsText);
/** Most empty pages examined for the reason; further ones are assumed to have the same reason. */
const LOOKED_AT_MAX = 3;

const { getDocument, OPS } = await import('pdfjs-dist/legacy/build/pdf.mjs');
/** Character maps for fonts that refer to a standard map instead of containing one, as Chinese, Japanese and Korean ones do. */
const MAPS = join(dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json')), 'cmaps') + sep;
const TEXTS = new Set([OPS.showText, OPS.showSpacedText, OPS.nextLineShowText, OPS.nextLineSetSpacingShowText]);
const IMAGES = new Set([OPS.paintImageXObject, OPS.paintInlineImageXObject, OPS.paintImageMaskXObject, OPS.paintImageXObjectRepeat, OPS.paintImageMaskXObjectGroup, OPS.paintImageMaskXObjectRepeat, OPS.paintInlineImageXObjectGroup]);

async function readAll() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}

/** True for a text operation that shows something. Without glyphs its font could not be read. */
const isShown = (glyphs) => glyphs.length === 0 || glyphs.some((glyph) => typeof glyph === 'object' && glyph !== null && !glyph.isSpace);

/** Why a page has no text: `unreadable` if it shows text all the same, `scanned` if it shows only images. */
async function kindOf(page) {
  try {
    const { fnArray, argsArray } = await page.getOperatorList();
    if (fnArray.some((op, at) => TEXTS.has(op) && isShown(argsArray[at][0] ?? []))) return 'unreadable';
    return fnArray.some((op) => IMAGES.has(op)) ? 'scanned' : 'empty';
  } catch {
    return 'unreadable';
  }
}

async function read() {
  const document = await getDocument({ data: await readAll(), isEvalSupported: false, disableFontFace: true, useSystemFonts: false, cMapUrl: MAPS, cMapPacked: true, enableXfa: false, useWorkerFetch: false, isOffscreenCanvasSupported: false, verbosity: 0 }).promise;
  const pages = [];
  let chars = 0;
  let isCut = false;
  let lookedAt = 0;
  let kind = 'empty';
  for (let number = 1; number <= Math.min(document.numPages, maxPages) && !isCut; number += 1) {
    const page = await document.getPage(number);
    let text = '';
    for (const item of (await page.getTextContent()).items) {
      if (typeof item.str === 'string') text += item.str;
      if (item.hasEOL === true) text += '\n';
      if (chars + text.length > maxChars) {
        text = text.slice(0, maxChars - chars).replace(/[\uD800-\uDBFF]$/, '');
        isCut = true;
        break;
      }
    }
    text = text.replace(/[ \t]+\n/g, '\n').trim();
    // Only glyph codes without a mapping to characters.
    if (!/[^\p{C}\s]/u.test(text)) text = '';
    // A font may call its glyphs anything, such as halves of the surrogate pair of an emoji. Providers refuse requests that contain one.
    text = text.replaceAll('\0', '').replace(/\p{Surrogate}/gu, '\uFFFD');
    chars += text.length;
    if (text === '' && lookedAt < LOOKED_AT_MAX) {
      lookedAt += 1;
      kind = await kindOf(page);
    }
    pages.push({ text, isScanned: text === '' && kind === 'scanned', ...(text === '' && kind === 'unreadable' ? { isUnreadable: true } : {}) });
    page.cleanup();
  }
  return { pageCount: document.numPages, pages, isCut };
}

let answer;
try {
  answer = await read();
} catch (error) {
  answer = { problem: error?.name === 'PasswordException' ? 'encrypted' : 'broken' };
}
process.stdout.write(JSON.stringify(answer), () => process.exit(0));
