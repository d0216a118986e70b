/** Bounds of the tokens that a recording counts as, where its header tells how long it lasts. */

/** Gemini counts 32 a second, GPT-4o ten; models that listen through Whisper's encoder have at most its 50. */
const TOKENS_PER_SECOND_MAX = 50;
/** Whisper's encoder listens to whole windows of this length. */
const WINDOW_S = 30;
/** No speech is sampled as rarely: what says so is no recording. */
const SAMPLE_RATE_MIN = 4_000;
/** Whole numbers, floating point, A-law and µ-law, and the form that may stand for each: a second of them has a fixed number of bytes. */
const PCM = new Set([0x1, 0x3, 0x6, 0x7, 0xfffe]);
/** Of RIFF, the length, WAVE, `fmt ` and the fields up to the bits of a sample. */
const HEADER_BYTES = 36;

/** Bytes of a second; undefined for what is no PCM whose header agrees with itself. */
function bytesPerSecond(header: Buffer): number | undefined {
  if (header.length < HEADER_BYTES || header.toString('latin1', 0, 4) !== 'RIFF' || header.toString('latin1', 8, 16) !== 'WAVEfmt ') return undefined;
  const [format, channels, rate, told, block, bits] = [header.readUInt16LE(20), header.readUInt16LE(22), header.readUInt32LE(24), header.readUInt32LE(28), header.readUInt16LE(32), header.readUInt16LE(34)];
  const isConsistent = channels > 0 && bits > 0 && bits % 8 === 0 && block === (channels * bits) / 8 && told === rate * block;
  return PCM.has(format) && rate >= SAMPLE_RATE_MIN && isConsistent ? told : undefined;
}

/** The most tokens of a WAV recording with `chars` characters of base64, of which `head` is the beginning; undefined = its length is not known. */
export function soundTokensMax(format: string, head: string, chars: number): number | undefined {
  if (format.toLowerCase() !== 'wav') return undefined;
  const base64 = /^(?:data:audio\/(?:x-)?wav;base64,)?([\w+/-]{48})/i.exec(head)?.[1];
  const perSecond = base64 === undefined ? undefined : bytesPerSecond(Buffer.from(base64, 'base64'));
  return perSecond === undefined ? undefined : Math.ceil(((chars * 3) / 4 / perSecond + WINDOW_S) * TOKENS_PER_SECOND_MAX);
}
