/** Bounds of the tokens that a recording counts as, where its header tells how long it lasts. */

/** Gemini counts 32 a second, GPT-4o ten; models that listen through Whisper's encoder have at most its 50. */
const TOKENS_PER_SECOND_MAX = 50;
/** Whisper's encoder listens to whole windows of this length. */
const WINDOW_S = 30;
/** No sound is sampled as often: what says so is no recording. */
const SAMPLE_RATE_MAX = 384_000;
/** Bits that a sample may have, by format: whole numbers, floating point, A-law and µ-law. A second of them has a fixed number of bytes, but programs that read the last two take a byte for a sample whatever is told. */
const BITS: ReadonlyMap<number, readonly number[]> = new Map([[0x1, [8, 16, 24, 32]], [0x3, [32, 64]], [0x6, [8]], [0x7, [8]]]);
/** The format stands in an extension, as the beginning of an id that ends like this. It may be a compressed one. */
const EXTENSIBLE = 0xfffe;
const EXTENSIBLE_BYTES = 40;
const FORMAT_ID_REST = '000000001000800000aa00389b71';
/** Of RIFF, the length, WAVE, `fmt ` and the fields up to the bits of a sample. */
const HEADER_BYTES = 36;
/** Where the fields of `fmt ` begin, and how many bytes they have at least. */
const FORMAT_FROM = 20;
const FORMAT_BYTES_MIN = 16;
/** Of a part's name and length. */
const PART_HEAD_BYTES = 8;

/** The format's number; undefined where an extension that should tell it is not one. */
function formatOf(header: Buffer): number | undefined {
  const format = header.readUInt16LE(FORMAT_FROM);
  if (format !== EXTENSIBLE) return format;
  if (header.readUInt32LE(FORMAT_FROM - 4) !== EXTENSIBLE_BYTES || header.toString('hex', 46, 60) !== FORMAT_ID_REST) return undefined;
  return header.readUInt16LE(44);
}

/** Whether samples follow, before another `fmt `, which some programs would read in the place of the first one. */
function leadsToSamples(header: Buffer): boolean {
  const formatBytes = header.readUInt32LE(FORMAT_FROM - 4);
  if (formatBytes < FORMAT_BYTES_MIN || formatBytes % 2 !== 0) return false;
  for (let at = FORMAT_FROM + formatBytes; at + PART_HEAD_BYTES <= header.length; ) {
    const name = header.toString('latin1', at, at + 4);
    const bytes = header.readUInt32LE(at + 4);
    if (name === 'data') return true;
    // Programs differ in where the part behind one of odd length begins.
    if (name === 'fmt ' || bytes % 2 !== 0) return false;
    at += PART_HEAD_BYTES + bytes;
  }
  return false;
}

/** Bytes of a second; undefined for what is no PCM whose header agrees with itself. */
function bytesPerSecond(header: Buffer): number | undefined {
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, 4) !== 'RIFF' || header.toString('latin1', 8, 16) !== 'WAVEfmt ') return undefined;
  const [channels, rate, told, block, bits] = [header.readUInt16LE(22), header.readUInt32LE(24), header.readUInt32LE(28), header.readUInt16LE(32), header.readUInt16LE(34)];
  const isPcm = BITS.get(formatOf(header) ?? 0)?.includes(bits) === true;
  const isConsistent = channels > 0 && block === (channels * bits) / 8 && told === rate * block;
  return isPcm && rate > 0 && rate <= SAMPLE_RATE_MAX && isConsistent && leadsToSamples(header) ? told : undefined;
}

/** The most tokens of a WAV recording with `chars` characters of base64, of which `head` is the beginning: more than its bytes where it is short or sampled rarely. undefined = its length is not known. */
export function soundTokensMax(format: string, head: string, chars: number): number | undefined {
  if (format.toLowerCase() !== 'wav') return undefined;
  const base64 = /^(?:data:audio\/(?:x-)?wav;base64,)?([\w+/-]{48,})/i.exec(head)?.[1];
  const perSecond = base64 === undefined ? undefined : bytesPerSecond(Buffer.from(base64, 'base64'));
  return perSecond === undefined ? undefined : Math.ceil(((chars * 3) / 4 / perSecond + WINDOW_S) * TOKENS_PER_SECOND_MAX);
}
