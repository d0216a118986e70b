/** What a file is by its first bytes, whatever its name or header says. */

interface Signature {
  readonly type: string;
  /** Latin-1 text at an offset; all must stand there. */
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

/** undefined when the bytes are none of the known binary formats. */
export function sniffMediaType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16)).toString('latin1');
  return SIGNATURES.find(({ marks }) => marks.every(([at, text]) => head.startsWith(text, at)))?.type;
}

const PDF = 'application/pdf';
const PDF_SIGNATURE_WITHIN = 1_024;

/** A PDF's signature may stand behind a little junk, such as the blank lines of a careless server: readers look for it. */
function isPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, PDF_SIGNATURE_WITHIN)).includes('%PDF-');
}

/** The type without parameters, lower case; usual misspellings set right; '' when nothing is said. */
export function essenceOf(contentType: string): string {
  const essence = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  if (essence === 'image/jpg' || essence === 'image/pjpeg') return 'image/jpeg';
  if (essence === 'application/x-pdf') return 'application/pdf';
  return essence === 'application/octet-stream' || essence === 'binary/octet-stream' ? '' : essence;
}

/** The type that a file is taken as, of those that are accepted; undefined = it is none of them, or not what it says. */
export function mediaTypeOf(bytes: Uint8Array, declared: string, accepted: readonly string[]): string | undefined {
  const sniffed = sniffMediaType(bytes);
  if (sniffed !== undefined) return accepted.includes(sniffed) ? sniffed : undefined;
  // A format with a signature that is not there is something else under its name.
  const essence = essenceOf(declared);
  if ((essence === PDF || essence === '') && accepted.includes(PDF) && isPdf(bytes)) return PDF;
  return accepted.includes(essence) && !SIGNED_TYPES.has(essence) ? essence : undefined;
}
