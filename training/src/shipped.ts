/** Where the trained artefact ships, and how it is read for evaluation. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArtefact, type QualityArtefact } from '@signalbox/router-core/quality-artefact';

export const ARTEFACT_PATH = fileURLToPath(new URL('../../services/routing/quality/quality.bin', import.meta.url));
/** Its figures stand here too. */
export const DOCUMENT_PATH = fileURLToPath(new URL('../../docs/auto.md', import.meta.url));

/** Throws when the file is not an artefact. */
export function readArtefact(path = ARTEFACT_PATH): QualityArtefact {
  const parsed = parseArtefact(readFileSync(path));
  if (parsed.kind === 'refused') throw new Error(parsed.problem);
  return parsed.artefact;
}
