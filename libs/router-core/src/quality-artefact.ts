/**
 * The file that training writes and routing loads, with what was learnt about models and prompts.
 *
 * Layout: 8 bytes of magic, length of the header (4 bytes, little endian), header as JSON, weights (one signed byte per
 * bucket and column, all columns of a bucket together), weight of each bucket (one byte), a bit set of known words, and
 * the SHA-256 of everything before. A file that is truncated, changed or of another feature schema is refused.
 */
import { isObject } from '@signalbox/kernel/json-object';
import { createHash } from 'node:crypto';
import { CLUSTERS, type Cluster } from './clusters.js';
import { BUCKETS, FEATURE_SCHEMA, SHAPE } from './features.js';

const MAGIC = 'SBXQUAL1';
const LENGTH_BYTES = 4;
const DIGEST_BYTES = 32;
/** Bits of the set of known words, a power of two; 25,000 words set about an eighth of them. */
export const WORD_BITS = 262_144;
export const ARTEFACT_BYTES_MAX = 8_000_000;

/** Columns that apply to all clusters come first. */
export const GENERAL_DIFFICULTY = 0;
export const GENERAL_NEED = 1;
export const GENERAL_COLUMNS = 2;

export interface Column {
  /** Value of one step of a quantised weight. */
  readonly scale: number;
  /** Weights of the standardised shape. */
  readonly shape: readonly number[];
}

/** How columns turn into log-odds within one cluster. */
export interface ClusterTerms {
  readonly cluster: Cluster;
  /** Its difficulty column; its `directions` follow it. */
  readonly firstColumn: number;
  readonly directions: number;
  /** Factors for: the cluster's own difficulty, general difficulty, the cluster's per-model terms (`g` in quality.ts), general need. */
  readonly difficulty: number;
  readonly generalDifficulty: number;
  readonly specific: number;
  readonly need: number;
  /** Added to the general ability of a model without measurements in this cluster. */
  readonly offset: number;
  /** Shares of known words: up to `knownFloor` the cluster's own columns do not count; below, the share from which they count in full. */
  readonly knownFloor: number;
  readonly knownFull: number;
  /** Weights, by standardised shape, of the log of an answer's length relative to the model's mean. */
  readonly lengthShape: readonly number[];
}

/** Measurements of a model in one cluster. */
export interface ModelCell {
  readonly cluster: Cluster;
  /** Log-odds of a right answer to a prompt of medium difficulty. */
  readonly ability: number;
  /** Standard deviation of `ability`. */
  readonly deviation: number;
  /** How much each direction changes the log-odds. */
  readonly directions: readonly number[];
  /** Mean tokens of an answer. */
  readonly outputTokens: number;
  readonly samples: number;
}

export interface MeasuredModel {
  readonly name: string;
  /** Log-odds over all its measurements, on one scale for all models. */
  readonly ability: number;
  /** Ability relative to the median; about -1 to 1, above 0 = more able. */
  readonly standing: number;
  readonly outputTokens: number;
  readonly cells: readonly ModelCell[];
}

export interface QualityHeader {
  readonly featureSchema: number;
  /** SHA-256 of the training data. */
  readonly dataHash: string;
  readonly shapeMean: readonly number[];
  readonly shapeDeviation: readonly number[];
  /** Shorter prompts count as if they were this long, so that a single word never decides. */
  readonly normMin: number;
  readonly columns: readonly Column[];
  readonly clusters: readonly ClusterTerms[];
  /**
   * For a kind of task without measurements: the factor for general need, and the `offset` of the hardest measured cluster.
   * Difficulty is not used: whether a harder prompt widens or narrows the gap between models depends on an unmeasured level.
   */
  readonly elsewhere: { readonly need: number; readonly offset: number; readonly outputTokens: number };
  /** From the catalog's ability in [0, 1] to log-odds: `offset + slope × ability`. */
  readonly catalogAbility: { readonly slope: number; readonly offset: number };
  readonly models: readonly MeasuredModel[];
  /** Results of validation, by data set and figure. */
  readonly metrics: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface QualityArtefact {
  /** Derived from the bytes. */
  readonly id: string;
  readonly header: QualityHeader;
  /** BUCKETS × columns. */
  readonly weights: Int8Array;
  /** Weight of a bucket in the norm of a prompt; 0 = never seen. */
  readonly bucketWeights: Uint8Array;
  readonly knownWords: Uint8Array;
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Writes an artefact as a file. */
export function encodeArtefact({ header, weights, bucketWeights, knownWords }: Omit<QualityArtefact, 'id'>): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(json.length);
  const body = Buffer.concat([Buffer.from(MAGIC), length, json, Buffer.from(weights.buffer, weights.byteOffset, weights.byteLength), bucketWeights, knownWords]);
  return Buffer.concat([body, digestOf(body)]);
}

export type ParsedArtefact = { readonly kind: 'artefact'; readonly artefact: QualityArtefact } | { readonly kind: 'refused'; readonly problem: string };

const refused = (problem: string): ParsedArtefact => ({ kind: 'refused', problem });

/** Reads a file written by `encodeArtefact`, or returns why it is invalid. Never throws. */
export function parseArtefact(bytes: Uint8Array): ParsedArtefact {
  if (bytes.length > ARTEFACT_BYTES_MAX) return refused('The artefact is larger than 8 MB.');
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const start = MAGIC.length + LENGTH_BYTES;
  if (file.length < start + DIGEST_BYTES || file.toString('latin1', 0, MAGIC.length) !== MAGIC) return refused('This is not a quality artefact.');
  const body = file.subarray(0, file.length - DIGEST_BYTES);
  const digest = digestOf(body);
  if (!digest.equals(file.subarray(body.length))) return refused('The artefact is cut or changed: its checksum is wrong.');
  const end = start + file.readUInt32LE(MAGIC.length);
  let header: QualityHeader;
  try {
    header = JSON.parse(body.toString('utf8', start, end)) as QualityHeader;
  } catch {
    return refused('The header of the artefact is not JSON.');
  }
  const problem = problemOf(header);
  if (problem !== undefined) return refused(problem);
  const weightsEnd = end + BUCKETS * header.columns.length;
  const bucketsEnd = weightsEnd + BUCKETS;
  if (body.length !== bucketsEnd + WORD_BITS / 8) return refused('The tables of the artefact have the wrong size.');
  const copy = Uint8Array.from(body.subarray(end));
  return {
    kind: 'artefact',
    artefact: {
      id: `qua_${digest.toString('hex').slice(0, 16)}`,
      header,
      weights: new Int8Array(copy.buffer, 0, weightsEnd - end),
      bucketWeights: copy.subarray(weightsEnd - end, bucketsEnd - end),
      knownWords: copy.subarray(bucketsEnd - end),
    },
  };
}

/** JSON turns NaN and Infinity into null, so a null anywhere is an invalid number. */
function isSound(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || Object.values(value).every(isSound);
}

const hasNumbers = (value: unknown, names: readonly string[]): boolean => isObject(value) && names.every((name) => typeof value[name] === 'number');
const isNumbers = (value: unknown, length: number): boolean => Array.isArray(value) && value.length === length && value.every((entry) => typeof entry === 'number');

function problemOf(header: unknown): string | undefined {
  if (!isObject(header) || !isSound(header)) return 'The header of the artefact holds something that is not a number.';
  if (header['featureSchema'] !== FEATURE_SCHEMA) return 'The artefact was trained with another feature schema.';
  const { columns, clusters, models, normMin } = header;
  const hasParts = typeof header['dataHash'] === 'string' && isNumbers(header['shapeMean'], SHAPE.length) && isNumbers(header['shapeDeviation'], SHAPE.length)
    && typeof normMin === 'number' && normMin > 0 && hasNumbers(header['elsewhere'], ['need', 'offset', 'outputTokens'])
    && hasNumbers(header['catalogAbility'], ['slope', 'offset']) && isObject(header['metrics']);
  if (!hasParts || !Array.isArray(columns) || !Array.isArray(clusters) || !Array.isArray(models)) return 'A part of the header of the artefact is missing.';
  if (columns.length < GENERAL_COLUMNS || !columns.every((column) => hasNumbers(column, ['scale']) && isNumbers((column as Column).shape, SHAPE.length))) return 'A column of the artefact is incomplete.';
  if (!clusters.every((entry) => isClusterTerms(entry, columns.length))) return 'A cluster of the artefact is incomplete.';
  const directions = new Map((clusters as readonly ClusterTerms[]).map((entry) => [entry.cluster, entry.directions]));
  if (models.length === 0 || !models.every((entry) => isModel(entry, directions))) return 'A model of the artefact is incomplete.';
  return undefined;
}

function isClusterTerms(entry: unknown, columns: number): boolean {
  if (!hasNumbers(entry, ['firstColumn', 'directions', 'difficulty', 'generalDifficulty', 'specific', 'need', 'offset', 'knownFloor', 'knownFull'])) return false;
  const terms = entry as ClusterTerms;
  return CLUSTERS.includes(terms.cluster) && isNumbers(terms.lengthShape, SHAPE.length) && terms.knownFull > terms.knownFloor
    && terms.firstColumn >= GENERAL_COLUMNS && terms.directions >= 0 && terms.firstColumn + terms.directions < columns;
}

function isModel(entry: unknown, directions: ReadonlyMap<string, number>): boolean {
  if (!hasNumbers(entry, ['ability', 'standing', 'outputTokens'])) return false;
  const model = entry as MeasuredModel;
  return typeof model.name === 'string' && model.outputTokens > 0 && Array.isArray(model.cells)
    && model.cells.every((cell) => hasNumbers(cell, ['ability', 'deviation', 'outputTokens', 'samples']) && cell.outputTokens > 0 && isNumbers(cell.directions, directions.get(cell.cluster) ?? -1));
}
