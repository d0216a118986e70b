// A process of its own: a PDF on standard input, its text as JSON on standard output. No environment, no files, no network
// are needed; the parent bounds time and memory, and whatever goes wrong here ends here.

// Standard output holds the answer and nothing else: the library warns of what it lacks.
for (const name of ['log', 'info', 'warn', 'error', 'debug']) console[name] = () => undefined;
// Drawing is never asked for, but the library names these as it loads.
for (const name of ['DOMMatrix', 'Path2D', 'ImageData']) globalThis[name] ??= class {};

const [maxPagesText = '1', maxCharsText = '1'] = process.argv.slice(2);
const maxPages = Number(maxPagesText);
const maxChars = Number(maxCharsText);
/** Empty pages whose images are looked for; further ones are taken for what these were. */
const LOOKED_AT_MAX = 3;

const { getDocument, OPS } = await import('pdfjs-dist/legacy/build/pdf.mjs');
const IMAGES = new Set([OPS.paintImageXObject, OPS.paintInlineImageXObject, OPS.paintImageMaskXObject, OPS.paintImageXObjectRepeat, OPS.paintImageMaskXObjectGroup, OPS.paintImageMaskXObjectRepeat, OPS.paintInlineImageXObjectGroup]);

async function readAll() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}

async function hasImage(page) {
  try {
    return (await page.getOperatorList()).fnArray.some((op) => IMAGES.has(op));
  } catch {
    return true;
  }
}

async function read() {
  const document = await getDocument({ data: await readAll(), isEvalSupported: false, disableFontFace: true, useSystemFonts: false, enableXfa: false, useWorkerFetch: false, isOffscreenCanvasSupported: false, verbosity: 0 }).promise;
  const pages = [];
  let chars = 0;
  let isCut = false;
  let lookedAt = 0;
  let wereImages = true;
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
    chars += text.length;
    let isScanned = false;
    if (text === '') {
      if (lookedAt < LOOKED_AT_MAX) {
        lookedAt += 1;
        wereImages = await hasImage(page);
      }
      isScanned = wereImages;
    }
    pages.push({ text, isScanned });
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
