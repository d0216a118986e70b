/** Reads the quality artefact of `auto`. */
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ARTEFACT_BYTES_MAX, parseArtefact } from '@signalbox/router-core/quality-artefact';
import type { QualitySource } from '../domain/ports.js';

const SHIPPED_FILE = fileURLToPath(new URL('../../quality/quality.bin', import.meta.url));

/** `path` empty = the shipped artefact. `variable` is the setting that names the file, and begins the text of a problem with it. */
export function createQualityFile(path: string, variable: string): QualitySource {
  const from = path === '' ? SHIPPED_FILE : path;
  const said = path === '' ? 'The shipped quality artefact' : `${variable}: ${path}`;
  return {
    read: async () => {
      let bytes: Buffer;
      try {
        bytes = await readAtMost(from, ARTEFACT_BYTES_MAX + 1);
      } catch {
        return { kind: 'refused', problem: `${said} cannot be read.` };
      }
      const parsed = parseArtefact(bytes);
      return parsed.kind === 'refused' ? { ...parsed, problem: `${said}: ${parsed.problem}` } : parsed;
    },
  };
}

async function readAtMost(path: string, bytesMax: number): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, bytesMax));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
