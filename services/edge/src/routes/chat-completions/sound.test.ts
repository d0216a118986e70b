import { describe, expect, test } from '@jest/globals';
import { soundTokensMax } from './sound.js';

interface Format {
  readonly tag?: number;
  readonly channels?: number;
  readonly rate?: number;
  readonly bits?: number;
  readonly block?: number;
  readonly perSecond?: number;
  readonly first?: string;
}

function wav({ tag = 1, channels = 1, rate = 24_000, bits = 16, block = (channels * bits) / 8, perSecond = rate * block, first = 'fmt ' }: Format, bytes: number): string {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + bytes, 4);
  header.write(`WAVE${first}`, 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(tag, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(perSecond, 28);
  header.writeUInt16LE(block, 32);
  header.writeUInt16LE(bits, 34);
  return Buffer.concat([header, Buffer.alloc(bytes, 7)]).toString('base64');
}

const tokensOf = (data: string, format = 'wav'): number | undefined => soundTokensMax(format, data.slice(0, 96), data.length);

describe('the most tokens of a recording', () => {
  test.each<[string, Format, number]>([
    ['a minute in 24 kHz', {}, 60],
    ['a minute of a telephone', { tag: 7, rate: 8_000, bits: 8 }, 60],
    ['ten seconds in stereo', { channels: 2, rate: 48_000, bits: 24 }, 10],
    ['floating point, in a form that says so elsewhere', { tag: 0xfffe, bits: 32 }, 10],
  ])('%s: those of its length and of a window', (_what, format, seconds) => {
    const perSecond = ((format.rate ?? 24_000) * (format.channels ?? 1) * (format.bits ?? 16)) / 8;
    const data = wav(format, perSecond * seconds);
    for (const told of [data, `data:audio/wav;base64,${data}`, `data:audio/x-wav;base64,${data}`]) {
      const tokens = tokensOf(told) ?? NaN;
      expect(tokens).toBeGreaterThanOrEqual(50 * (30 + seconds));
      expect(tokens).toBeLessThan(50 * (31 + seconds));
    }
  });

  test.each<[string, string, string]>([
    ['of another form', Buffer.from('ID3…').toString('base64').repeat(40), 'wav'],
    ['that is said to be of another form', wav({}, 4_800), 'mp3'],
    ['in a data URL of another form', `data:audio/flac;base64,${wav({}, 4_800)}`, 'wav'],
    ['that is compressed', wav({ tag: 0x11, bits: 8 }, 4_800), 'wav'],
    ['with another part before its format', wav({ first: 'JUNK' }, 4_800), 'wav'],
    ['whose header contradicts itself', wav({ perSecond: 1 }, 4_800), 'wav'],
    ['whose samples overlap', wav({ block: 1 }, 4_800), 'wav'],
    ['of no samples', wav({ channels: 0 }, 4_800), 'wav'],
    ['that hardly lasts, or for ever', wav({ rate: 1, bits: 8 }, 4_800), 'wav'],
    ['that ends within its header', wav({}, 0).slice(0, 40), 'wav'],
    ['whose beginning is not known', wav({}, 4_800).slice(0, 20), 'wav'],
  ])('are not known of one %s', (_what, data, format) => {
    expect(tokensOf(data, format)).toBeUndefined();
  });
});
