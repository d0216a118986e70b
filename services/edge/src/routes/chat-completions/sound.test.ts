import { describe, expect, test } from '@jest/globals';
import { soundTokensMax } from './sound.js';

interface Format {
  readonly tag?: number;
  /** Of an extension, which is left out without it. */
  readonly sub?: number;
  readonly id?: Buffer;
  readonly channels?: number;
  readonly rate?: number;
  readonly bits?: number;
  readonly block?: number;
  readonly perSecond?: number;
  /** Before the format, and behind it. */
  readonly first?: Buffer;
  readonly second?: Buffer;
}

/** The rest of an id that begins with the number of a format. */
const FORMAT_ID_REST = Buffer.from('000000001000800000aa00389b71', 'hex');

function part(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(content.length, 4);
  return Buffer.concat([head, content]);
}

function formatPart({ tag = 1, sub, id = FORMAT_ID_REST, channels = 1, rate = 24_000, bits = 16, block = (channels * bits) / 8, perSecond = rate * block }: Format): Buffer {
  const fields = Buffer.alloc(sub === undefined ? 16 : 26);
  fields.writeUInt16LE(tag, 0);
  fields.writeUInt16LE(channels, 2);
  fields.writeUInt32LE(rate, 4);
  fields.writeUInt32LE(perSecond, 8);
  fields.writeUInt16LE(block, 12);
  fields.writeUInt16LE(bits, 14);
  if (sub === undefined) return part('fmt ', fields);
  fields.writeUInt16LE(22, 16);
  fields.writeUInt16LE(bits, 18);
  fields.writeUInt16LE(sub, 24);
  return part('fmt ', Buffer.concat([fields, id]));
}

function wav(format: Format, bytes: number): string {
  const { first = Buffer.alloc(0), second = Buffer.alloc(0) } = format;
  return part('RIFF', Buffer.concat([Buffer.from('WAVE'), first, formatPart(format), second, part('data', Buffer.alloc(bytes, 7))])).toString('base64');
}

const tokensOf = (data: string, format = 'wav'): number | undefined => soundTokensMax(format, data.slice(0, 256), data.length);
/** As ffmpeg writes its own name. */
const NAMED = part('LIST', Buffer.from('INFOISFT\x0e\0\0\0Lavf61.1.100\0\0', 'latin1'));

describe('the most tokens of a recording', () => {
  test.each<[string, Format, number]>([
    ['a minute in 24 kHz', {}, 60],
    ['a minute of a telephone', { tag: 7, rate: 8_000, bits: 8 }, 60],
    ['ten seconds in stereo', { channels: 2, rate: 48_000, bits: 24 }, 10],
    ['floating point, in a form that says so elsewhere', { tag: 0xfffe, sub: 3, bits: 32 }, 10],
    ['hours in a few bytes', { rate: 1, bits: 8 }, 36_000],
    ['a hundredth of a second', { rate: 8_000, bits: 8 }, 0.01],
    ['one that a program has put its name into', { second: NAMED }, 60],
  ])('%s: those of its length and of a window', (_what, format, seconds) => {
    const perSecond = ((format.rate ?? 24_000) * (format.channels ?? 1) * (format.bits ?? 16)) / 8;
    const data = wav(format, perSecond * seconds);
    for (const told of [data, `data:audio/wav;base64,${data}`, `data:audio/x-wav;base64,${data}`]) {
      const tokens = tokensOf(told) ?? NaN;
      expect(tokens).toBeGreaterThanOrEqual(50 * (30 + seconds));
      // Whatever stands before the samples counts as well, a hundred bytes at most.
      expect(tokens).toBeLessThan(50 * (31 + seconds + 100 / perSecond));
    }
  });

  test.each<[string, string, string]>([
    ['of another form', Buffer.from('ID3…').toString('base64').repeat(40), 'wav'],
    ['that is said to be of another form', wav({}, 4_800), 'mp3'],
    ['in a data URL of another form', `data:audio/flac;base64,${wav({}, 4_800)}`, 'wav'],
    ['that is compressed', wav({ tag: 0x11, bits: 8 }, 4_800), 'wav'],
    ['with another part before its format', wav({ first: part('JUNK', Buffer.alloc(4)) }, 4_800), 'wav'],
    ['whose header contradicts itself', wav({ perSecond: 1 }, 4_800), 'wav'],
    ['whose samples overlap', wav({ block: 1 }, 4_800), 'wav'],
    ['of no samples', wav({ channels: 0 }, 4_800), 'wav'],
    ['that never begins', wav({ rate: 0 }, 4_800), 'wav'],
    ['that is over at once', wav({ rate: 100_000_000 }, 4_800), 'wav'],
    ['that ends within its header', wav({}, 0).slice(0, 40), 'wav'],
    ['that is compressed, as its extension says', wav({ tag: 0xfffe, sub: 0x55, bits: 32 }, 4_800), 'wav'],
    ['whose extension is of no known kind', wav({ tag: 0xfffe, sub: 1, id: Buffer.alloc(14) }, 4_800), 'wav'],
    ['whose extension is missing', wav({ tag: 0xfffe }, 4_800), 'wav'],
    ['of µ-law with more than a byte for a sample', wav({ tag: 7, bits: 64 }, 4_800), 'wav'],
    ['of more bits than there are', wav({ bits: 65_528 }, 4_800), 'wav'],
    ['with another format behind the first', wav({ second: formatPart({ rate: 4_000, bits: 8 }) }, 4_800), 'wav'],
    ['with a part of odd length, behind which programs read on at different places', wav({ second: part('LIST', Buffer.alloc(5)) }, 4_800), 'wav'],
    ['whose samples are far away', wav({ second: part('LIST', Buffer.alloc(400)) }, 4_800), 'wav'],
    ['whose beginning is not known', wav({}, 4_800).slice(0, 20), 'wav'],
  ])('are not known of one %s', (_what, data, format) => {
    expect(tokensOf(data, format)).toBeUndefined();
  });
});

describe('the most tokens of a recording in MP3', () => {
  /** A frame of 128 kbit/s and 44.1 kHz. */
  const FRAME = [0xff, 0xfb, 0x90, 0x64];
  const mp3 = (first: readonly number[], bytes: number): string => Buffer.concat([Buffer.from(first), Buffer.alloc(bytes - first.length)]).toString('base64');
  const tag = (bytes: number, flags = 0): number[] => [...Buffer.from('ID3\x04\0', 'latin1'), flags, 0, 0, bytes >> 7, bytes & 0x7f, ...Buffer.alloc(bytes)];

  test.each([['its frames', FRAME], ['a tag', [...tag(35), ...FRAME]], ['a tag with a footer', [...tag(35, 0x10), ...Buffer.from('3DI_______'), ...FRAME]], ['frames of the lowest rate', [0xff, 0xf3, 0x14, 0xc4]]])('are those of the lowest rate there is: one that begins with %s', (_what, first) => {
    const data = mp3(first, 960_000);
    for (const told of [data, `data:audio/mp3;base64,${data}`, `data:audio/mpeg;base64,${data}`]) {
      const tokens = tokensOf(told, 'mp3') ?? NaN;
      // At 8 kbit/s it lasts 960 s.
      expect(tokens).toBeGreaterThanOrEqual(50 * (960 + 30));
      expect(tokens).toBeLessThan(50 * (960 * 1.011 + 31));
    }
  });

  test.each<[string, readonly number[], string]>([
    ['whose first frame tells no rate', [0xff, 0xfb, 0x00, 0x64], 'mp3'],
    ['whose first frame has a rate that there is not', [0xff, 0xfb, 0xf0, 0x64], 'mp3'],
    ['sampled as nothing is', [0xff, 0xfb, 0x9c, 0x64], 'mp3'],
    ['of no known version', [0xff, 0xeb, 0x90, 0x64], 'mp3'],
    ['that is AAC', [0xff, 0xf1, 0x50, 0x80], 'mp3'],
    ['that is FLAC behind a tag', [...tag(35), ...Buffer.from('fLaC')], 'mp3'],
    ['that is FLAC behind a footer that looks like a frame', [...tag(35, 0x10), ...FRAME, ...Buffer.alloc(6), ...Buffer.from('fLaC')], 'mp3'],
    ['whose tag goes on beyond what is known', [...tag(600), ...FRAME], 'mp3'],
    ['that is said to be of another form', FRAME, 'wav'],
    ['of a form that is no form', FRAME, 'constructor'],
  ])('are not known of one %s', (_what, first, format) => {
    expect(tokensOf(mp3(first, 4_800), format)).toBeUndefined();
  });
});

describe('the most tokens of a recording in FLAC', () => {
  const flac = (rate: number, samples: number, bytes: number): string => {
    const head = Buffer.alloc(42);
    head.write('fLaC\0\0\0\x22', 'latin1');
    head.writeUInt32BE(rate * 4_096 + 0x0f0, 18);
    head.writeUInt8(0xf0 + Math.floor(samples / 2 ** 32), 21);
    head.writeUInt32BE(samples % 2 ** 32, 22);
    return Buffer.concat([head, Buffer.alloc(bytes)]).toString('base64');
  };

  test('are those of hours of silence in a few bytes', () => {
    expect(tokensOf(flac(8_000, 8_000 * 36_000, 50_000), 'flac')).toBe(50 * 36_030);
    expect(tokensOf(flac(44_100, 2 ** 33, 50_000), 'flac')).toBe(Math.ceil(50 * (2 ** 33 / 44_100 + 30)));
  });

  test('are at least its bytes, however short it says to be', () => {
    const data = flac(44_100, 1, 50_000);
    expect(tokensOf(data, 'flac')).toBe(data.length);
  });

  test('are not known where it does not say its length', () => {
    for (const data of [flac(44_100, 0, 50_000), flac(0, 100, 50_000), flac(44_100, 100, 0).slice(0, 40)]) expect(tokensOf(data, 'flac')).toBeUndefined();
  });
});
