/** Bounds of the tokens that a recording counts as, where its beginning tells how long it can last. */

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

/** Bytes of a second of MP3 at its lowest rate, 8 kbit/s, less the part of a byte that a frame is rounded down by. Only frames of no told rate could be smaller: decoders leave those out, or take their size from the first frame. */
const MP3_BYTES_PER_SECOND_MIN = 990;
/** Of ID3, its version, flags and length, of seven bits a byte. */
const TAG_HEAD_BYTES = 10;
/** In its flags: it has a footer as long as its head, which its length leaves out. */
const TAG_HAS_FOOTER = 0x10;
const FRAME_HEAD_BYTES = 4;

/** Where the sound begins, behind a tag with the names of its author and the program. */
function soundFrom(head: Buffer): number {
  if (head.length < TAG_HEAD_BYTES || head.toString('latin1', 0, 3) !== 'ID3') return 0;
  const footerBytes = (head.readUInt8(5) & TAG_HAS_FOOTER) === 0 ? 0 : TAG_HEAD_BYTES;
  return TAG_HEAD_BYTES + head.subarray(6, TAG_HEAD_BYTES).reduce((length, byte) => length * 128 + (byte & 0x7f), 0) + footerBytes;
}

/** Whether a frame of MPEG audio, layer III, stands here: with a version and rates that there are. */
function isMp3Frame(head: Buffer, at: number): boolean {
  if (at + FRAME_HEAD_BYTES > head.length || head.readUInt8(at) !== 0xff) return false;
  const [kind, rates] = [head.readUInt8(at + 1), head.readUInt8(at + 2)];
  const [version, layer, bitRate, sampleRate] = [(kind >> 3) & 0x3, (kind >> 1) & 0x3, rates >> 4, (rates >> 2) & 0x3];
  return kind >= 0xe0 && version !== 1 && layer === 1 && bitRate !== 0 && bitRate !== 15 && sampleRate !== 3;
}

/** Of `fLaC`, and of the part that describes the stream. */
const FLAC_HEADER_BYTES = 42;

/** What a FLAC recording says of its length; undefined where it does not, as of one that was written while it was recorded. */
function flacSeconds(head: Buffer): number | undefined {
  if (head.length < FLAC_HEADER_BYTES || head.toString('latin1', 0, 4) !== 'fLaC' || (head.readUInt8(4) & 0x7f) !== 0) return undefined;
  const rate = head.readUIntBE(18, 3) >> 4;
  const samples = (head.readUInt8(21) & 0xf) * 2 ** 32 + head.readUInt32BE(22);
  return rate > 0 && samples > 0 ? samples / rate : undefined;
}

const tokensOf = (seconds: number): number => Math.ceil((seconds + WINDOW_S) * TOKENS_PER_SECOND_MAX);

/** By the name that a client gives the form: how it begins, and the most tokens of `bytes` bytes of it that begin with `head`, `chars` characters of base64. */
const FORMS: Readonly<Record<string, { readonly data: RegExp; readonly tokensMax: (head: Buffer, bytes: number, chars: number) => number | undefined }>> = {
  wav: {
    data: /^(?:data:audio\/(?:x-)?wav;base64,)?([\w+/-]{48,})/i,
    tokensMax: (head, bytes) => {
      const perSecond = bytesPerSecond(head);
      return perSecond === undefined ? undefined : tokensOf(bytes / perSecond);
    },
  },
  mp3: {
    data: /^(?:data:audio\/(?:mp3|mpeg);base64,)?([\w+/-]{48,})/i,
    tokensMax: (head, bytes) => (isMp3Frame(head, soundFrom(head)) ? tokensOf(bytes / MP3_BYTES_PER_SECOND_MIN) : undefined),
  },
  flac: {
    data: /^(?:data:audio\/(?:x-)?flac;base64,)?([\w+/-]{56,})/i,
    // Silence may be of nearly no bytes. That it is short is not believed.
    tokensMax: (head, _bytes, chars) => {
      const seconds = flacSeconds(head);
      return seconds === undefined ? undefined : Math.max(chars, tokensOf(seconds));
    },
  },
};

/** The most tokens of a recording with `chars` characters of base64, of which `head` is the beginning: more than its bytes where it is short, or says that few bytes last long. undefined = its bytes are to be counted. */
export function soundTokensMax(format: string, head: string, chars: number): number | undefined {
  const name = format.toLowerCase();
  const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  const base64 = form?.data.exec(head)?.[1];
  return base64 === undefined ? undefined : form?.tokensMax(Buffer.from(base64, 'base64'), (chars * 3) / 4, chars);
}
