/** Validates a PNG as any reader must: signature, checksums, header, and the number of pixel bytes. */
import { crc32, inflateSync } from 'node:zlib';

const SIGNATURE = '\x89PNG\r\n\x1a\n';
/** Samples per pixel, by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Returns the size in pixels. Throws with the reason if the file is not a displayable PNG. */
export function readPng(file: Buffer): { readonly width: number; readonly height: number } {
  const fail = (reason: string): never => {
    throw new Error(`Not a PNG: ${reason}.`);
  };
  if (file.toString('latin1', 0, 8) !== SIGNATURE) fail('the signature');
  const chunks: { readonly type: string; readonly data: Buffer }[] = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const [body, data] = [file.subarray(at + 4, at + 8 + length), file.subarray(at + 8, at + 8 + length)];
    if (crc32(body) !== file.readUInt32BE(at + 8 + length)) fail('a checksum');
    chunks.push({ type: body.toString('latin1', 0, 4), data });
    at += 12 + length;
  }
  const header = chunks[0]?.data ?? Buffer.alloc(0);
  if (chunks[0]?.type !== 'IHDR' || header.length !== 13 || chunks.at(-1)?.type !== 'IEND') fail('the order of its chunks');
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8] ?? 0, header[9] ?? 9];
  if (colour === 3 && !chunks.some(({ type, data }) => type === 'PLTE' && data.length % 3 === 0)) fail('no palette');
  const pixels = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  if (pixels.length !== height * (1 + Math.ceil((width * depth * (SAMPLES[colour] ?? 0)) / 8))) fail('the number of pixels');
  return { width, height };
}
