/** Reads the catalog's files. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import type { CatalogSource } from '../../domain/ports.js';
import type { CatalogArchive } from './archive.js';
import { buildCatalog, SIMULATOR_PROVIDER, type OperatorTerms } from './build.js';
import { misspeltFields } from './misspelt-fields.js';
import { noticesOf } from './notices.js';
import { modelsFileSchema, providersFileSchema, simulatorFileSchema, type CatalogRows } from './schema.js';

export const SHIPPED_DIR = fileURLToPath(new URL('../../../catalog', import.meta.url));
const PROBLEMS_MAX = 50;

interface ReadFile<Rows> {
  /** SHA-256 of the bytes. */
  readonly digest: string;
  readonly rows: Rows;
}

/** The parser's message where a token cannot stand in JSON. It has no position then; at the end of a text that is too short the messages are others. */
const WRONG_TOKEN = /^Unexpected token/;

function hasWrongToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return error instanceof SyntaxError && WRONG_TOKEN.test(error.message);
  }
}

/** The first line up to which the text has a wrong token, which it has as a whole. */
function lineOfWrongToken(text: string): number {
  const lines = text.split('\n');
  let [good, bad] = [0, lines.length];
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (hasWrongToken(`${lines.slice(0, middle).join('\n')}\n`)) bad = middle;
    else good = middle;
  }
  return bad;
}

/** The line at which the text stops being valid JSON. */
function placeOf(error: SyntaxError, text: string): string {
  const position = /at position (\d+)/.exec(error.message)?.[1];
  if (position !== undefined) return ` in line ${String(text.slice(0, Number(position)).split('\n').length)}`;
  return WRONG_TOKEN.test(error.message) ? ` in line ${String(lineOfWrongToken(text))}` : ': it ends too early';
}

/** Names a field by the innermost record around it that has an id, such as `openai:openai/gpt-4o: pricing.input`; without one, by its path. */
function fieldOf(path: readonly PropertyKey[], json: unknown): string {
  let value: unknown = json;
  let found = path.join('.');
  for (const [index, part] of path.entries()) {
    if (typeof value !== 'object' || value === null) break;
    value = (value as Readonly<Record<PropertyKey, unknown>>)[part];
    const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined;
    if (typeof id === 'string' && index + 1 < path.length) found = `${id}: ${path.slice(index + 1).join('.')}`;
  }
  return found;
}

async function readOne<Shape extends z.ZodType>(directory: string, name: string, schema: Shape, problems: string[]): Promise<ReadFile<z.infer<Shape>> | undefined> {
  let json: unknown;
  let digest: string;
  let text = '';
  try {
    const bytes = await readFile(join(directory, name));
    digest = createHash('sha256').update(bytes).digest('hex');
    text = bytes.toString('utf8');
    json = JSON.parse(text);
  } catch (error) {
    problems.push(`${name}: ${error instanceof SyntaxError ? `is not JSON${placeOf(error, text)}` : 'cannot be read'}.`);
    return undefined;
  }
  const parsed = schema.safeParse(json);
  const misspelt = misspeltFields(schema, json).slice(0, PROBLEMS_MAX);
  for (const { path, meant } of misspelt) problems.push(`${name}: ${fieldOf(path, json)}: there is no such field; ${meant} is probably meant`);
  if (parsed.success) return misspelt.length > 0 ? undefined : { digest, rows: parsed.data };
  for (const issue of parsed.error.issues.slice(0, PROBLEMS_MAX)) problems.push(`${name}: ${fieldOf(issue.path, json)}: ${issue.message}`);
  return undefined;
}

export interface CatalogFilesOptions {
  /** Empty = the shipped catalog. */
  readonly directory: string;
  readonly withSimulator: boolean;
  readonly terms: Omit<OperatorTerms, 'today'>;
  /** Stores the catalogs that were read; absent = they are not stored. */
  readonly archive?: CatalogArchive | undefined;
}

/** A catalog source that reads models.json and providers.json of a directory. The simulator is always the shipped one. */
export function createCatalogFiles({ directory, withSimulator, terms, archive }: CatalogFilesOptions): CatalogSource {
  const from = directory === '' ? SHIPPED_DIR : directory;
  let lastRead: { readonly id: string; readonly rows: CatalogRows; readonly terms: OperatorTerms } | undefined;
  return {
    location: directory === '' ? 'shipped' : directory,
    read: async (today) => {
      const problems: string[] = [];
      const [providers, models, simulator] = await Promise.all([
        readOne(from, 'providers.json', providersFileSchema, problems),
        readOne(from, 'models.json', modelsFileSchema, problems),
        withSimulator ? readOne(SHIPPED_DIR, 'simulator.json', simulatorFileSchema, problems) : { digest: '', rows: { providers: [], models: [] } },
      ]);
      if (providers === undefined || models === undefined || simulator === undefined) return { problems };
      const schemaVersion = models.rows.schema_version;
      const rows: CatalogRows = {
        schemaVersion,
        digest: [providers.digest, models.digest, simulator.digest].join('|'),
        providers: [...providers.rows.providers, ...simulator.rows.providers],
        models: [...models.rows.models, ...simulator.rows.models],
      };
      const { catalog, problems: faults } = buildCatalog(rows, { ...terms, today });
      if (catalog === undefined) return { problems: faults.slice(0, PROBLEMS_MAX) };
      lastRead = { id: catalog.id, rows, terms: { ...terms, today } };
      return { problems: [], loaded: { catalog, schemaVersion, digest: rows.digest, providers: new Set([...rows.providers.map(({ id }) => id), SIMULATOR_PROVIDER]), notices: noticesOf(rows, today) } };
    },
    taken: (id) => {
      if (lastRead?.id === id) archive?.keep(id, lastRead.rows, lastRead.terms);
      lastRead = undefined;
    },
    recall: async (id) => {
      const kept = await archive?.find(id);
      return kept === undefined ? undefined : buildCatalog(kept.rows, kept.terms).catalog;
    },
  };
}
