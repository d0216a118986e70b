/** Determines a file's type from its first bytes, regardless of its name or header. */

interface Signature {
  readonly type: string;
  /** Latin-1 text at an offset; all marks must match. */
  readonly marks: readonly (readonly [number, string])[];
}

const SIGNATURES: readonly Signature[] = [
  { type: 'image/png', marks: [[0, '\x89PNG\r\n\x1a\n']] },
  { type: 'image/jpeg', marks: [[0, '\xff\xd8\xff']] },
  { type: 'image/gif', marks: [[0, 'GIF87a']] },
  { type: 'image/gif', marks: [[0, 'GIF89a']] },
  {
    type: 'image/webp',
    marks: [
      [0, 'RIFF'],
      [8, 'WEBP'],
    ],
  },
  { type: 'image/heic', marks: [[4, 'ftypheic']] },
  { type: 'image/heif', marks: [[4, 'ftypmif1']] },
  { type: 'image/avif', marks: [[4, 'ftypavif']] },
  { type: 'application/pdf', marks: [[0, '%PDF-']] },
];

const SIGNED_TYPES: ReadonlySet<string> = new Set(SIGNATURES.map((signature) => signature.type));

/** Undefined if the bytes are not in a known binary format. */
export function sniffMediaType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16)).toString('latin1');
  return SIGNATURES.find(({ marks }) => marks.every(([at, text]) => head.startsWith(text, at)))?.type;
}

const PDF = 'application/pdf';
const PDF_SIGNATURE_WITHIN = 1_024;

/** A PDF's signature may follow a few other bytes, such as blank lines added by a server; PDF readers search for it too. */
function isPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, PDF_SIGNATURE_WITHIN)).includes('%PDF-');
}

/** The media type without parameters, in lower case, with common misspellings corrected; '' if there is none. */
export function essenceOf(contentType: string): string {
  const essence = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  if (essence === 'image/jpg' || essence === 'image/pjpeg') return 'image/jpeg';
  if (essence === 'application/x-pdf') return 'application/pdf';
  return essence === 'application/octet-stream' || essence === 'binary/octet-stream' ? '' : essence;
}

/** The accepted type of a file; undefined = not an accepted type, or the bytes do not match the declared type. */
export function mediaTypeOf(bytes: Uint8Array, declared: string, accepted: readonly string[]): string | undefined {
  const sniffed = sniffMediaType(bytes);
  if (sniffed !== undefined) return accepted.includes(sniffed) ? sniffed : undefined;
  // The declared format has a signature that the bytes lack, so the declaration is wrong.
  const essence = essenceOf(declared);
  if ((essence === PDF || essence === '') && accepted.includes(PDF) && isPdf(bytes)) return PDF;
  return accepted.includes(essence) && !SIGNED_TYPES.has(essence) ? essence : undefined;
}
