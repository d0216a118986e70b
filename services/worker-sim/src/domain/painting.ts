/** The simulator's images: real PNGs with a pattern of tiles that depends on the description. */
import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

export interface Canvas {
  /** Pixels, from 1 to SIDE_PIXELS_MAX. */
  readonly width: number;
  readonly height: number;
}

const SIDE_PIXELS_MAX = 2_048;
/** Number of tiles along the shorter side. */
const TILES = 8;
const PALETTE_COLOURS = 4;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const BITS_PER_PIXEL = 2;
const PIXELS_PER_BYTE = 8 / BITS_PER_PIXEL;
const INDEXED_COLOUR = 3;

/** Parses a size such as `1024x768`; undefined if it is not one or out of bounds. */
export function canvasOf(size: string): Canvas | undefined {
  const [, width = '', height = ''] = /^(\d{1,4})x(\d{1,4})$/.exec(size) ?? [];
  const canvas = { width: Number(width), height: Number(height) };
  return [canvas.width, canvas.height].every((side) => side >= 1 && side <= SIDE_PIXELS_MAX) ? canvas : undefined;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** Makes a PNG of four colours; the same description, number and canvas give the same bytes. */
export function paint(description: string, number: number, { width, height }: Canvas): Buffer {
  const digest = createHash('sha512').update(`${String(number)}\n${description}`).digest();
  const palette = Buffer.from(digest.subarray(0, PALETTE_COLOURS * 3));
  const tile = Math.max(1, Math.ceil(Math.min(width, height) / TILES));
  const colourAt = (column: number, row: number): number => (digest[(column * 7 + row * 13) % digest.length] ?? 0) % PALETTE_COLOURS;
  const rowBytes = Math.ceil(width / PIXELS_PER_BYTE);
  const lineOf = (row: number): Buffer => {
    // The first byte, 0, means that the line is not filtered.
    const line = Buffer.alloc(1 + rowBytes);
    for (let x = 0; x < width; x += 1) {
      const at = 1 + Math.floor(x / PIXELS_PER_BYTE);
      line[at] = (line[at] ?? 0) | (colourAt(Math.floor(x / tile), row) << (8 - BITS_PER_PIXEL * ((x % PIXELS_PER_BYTE) + 1)));
    }
    return line;
  };
  const lines = Array.from({ length: Math.ceil(height / tile) }, (_, row) => lineOf(row));
  const pixels = Buffer.concat(Array.from({ length: height }, (_, y) => lines[Math.floor(y / tile)] ?? Buffer.alloc(0)));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BITS_PER_PIXEL, INDEXED_COLOUR, 0, 0, 0], 8);
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('PLTE', palette), chunk('IDAT', deflateSync(pixels)), chunk('IEND', Buffer.alloc(0))]);
}
