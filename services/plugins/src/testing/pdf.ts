/** Generates PDFs for tests: one line of text per page, or undefined for a page with only an image; also malicious files. */
import { deflateSync } from 'node:zlib';

type Body = string | Buffer;

function fileOf(objects: readonly Body[], trailer = ''): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  const offsets: number[] = [];
  let at = parts[0]?.length ?? 0;
  objects.forEach((body, index) => {
    const bytes = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n')]);
    offsets.push(at);
    at += bytes.length;
    parts.push(bytes);
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  parts.push(Buffer.from(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${at}\n%%EOF\n`));
  return Buffer.concat(parts);
}

const stream = (dictionary: string, bytes: Buffer): Buffer => Buffer.concat([Buffer.from(`<< ${dictionary} /Length ${bytes.length} >>\nstream\n`), bytes, Buffer.from('\nendstream')]);

const HELVETICA = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>';

/** Object 1 is the catalog, 2 the page tree, 3 the font, 4 an image, then page and content in turn. */
function documentOf(contents: readonly Buffer[], trailer?: string, font = HELVETICA): Buffer {
  const kids = contents.map((_, index) => `${5 + 2 * index} 0 R`).join(' ');
  const pages = contents.flatMap((content, index) => [
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << /Font << /F1 3 0 R >> /XObject << /I1 4 0 R >> >> /Contents ${6 + 2 * index} 0 R >>`,
    content,
  ]);
  return fileOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`,
      font,
      stream('/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8', Buffer.from([128])),
      ...pages,
    ],
    trailer,
  );
}

export function makePdf(pages: readonly (string | undefined)[]): Buffer {
  return documentOf(pages.map((text) => stream('', Buffer.from(text === undefined ? 'q 300 0 0 300 0 0 cm /I1 Do Q' : `BT /F1 12 Tf 20 200 Td (${text.replace(/[()\\]/g, '\\$&')}) Tj ET`))));
}

/** Text in a Chinese font that is not embedded: its characters are known only through a named map, such as `UniGB-UCS2-H`. */
export function makeChinesePdf(pages: readonly string[], map: string): Buffer {
  const descendant = '<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> /FontDescriptor << /Type /FontDescriptor /FontName /STSong-Light /Flags 6 /FontBBox [-25 -254 1000 880] /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 880 /StemV 93 >> >>';
  const hexOf = (text: string): string => [...text].map((character) => character.charCodeAt(0).toString(16).padStart(4, '0')).join('');
  return documentOf(pages.map((text) => stream('', Buffer.from(`BT /F1 12 Tf 20 200 Td <${hexOf(text)}> Tj ET`))), '', `<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /${map} /DescendantFonts [${descendant}] >>`);
}

/** A page that shows each of these glyphs, by their names, between two letters x. */
export function makeGlyphsPdf(glyphs: readonly string[]): Buffer {
  const codes = glyphs.map((_, index) => (index + 1).toString(16).padStart(2, '0'));
  const font = `<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding /Differences [1 ${glyphs.map((glyph) => `/${glyph}`).join(' ')}] >> >>`;
  return documentOf([stream('', Buffer.from(`BT /F1 12 Tf 20 200 Td <78${codes.map((code) => `${code}78`).join('')}> Tj ET`))], '', font);
}

/** A decompression bomb: a few kilobytes that unpack to `bytes` of content. */
export function makeBomb(bytes: number): Buffer {
  return documentOf([stream('/Filter [/FlateDecode /FlateDecode]', deflateSync(deflateSync(Buffer.alloc(bytes, 0x20))))]);
}

export function makeEncryptedPdf(): Buffer {
  const key = '<' + 'ab'.repeat(32) + '>';
  return documentOf([stream('', Buffer.from('BT (x) Tj ET'))], `/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard /V 1 /R 2 /O ${key} /U ${key} /P -44 >>`);
}
