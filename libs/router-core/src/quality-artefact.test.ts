import { describe, expect, test } from '@jest/globals';
import { encodeArtefact, parseArtefact, type QualityHeader } from './quality-artefact.js';
import { SMALL_HEADER, smallArtefact } from './small-artefact.js';

const artefact = smallArtefact({ red: { difficulty: 7, direction: -3 } });
const withHeader = (changes: Partial<Record<keyof QualityHeader, unknown>>): Buffer => encodeArtefact({ ...artefact, header: { ...SMALL_HEADER, ...changes } as QualityHeader });
const problemOf = (bytes: Uint8Array): string => {
  const parsed = parseArtefact(bytes);
  return parsed.kind === 'refused' ? parsed.problem : '';
};

describe('a quality artefact', () => {
  test('is read as it was written, and its id names its bytes', () => {
    const parsed = parseArtefact(encodeArtefact(artefact));
    expect(parsed).toMatchObject({ kind: 'artefact', artefact: { header: SMALL_HEADER, weights: artefact.weights, bucketWeights: artefact.bucketWeights, knownWords: artefact.knownWords } });
    const other = parseArtefact(withHeader({ dataHash: 'other' }));
    expect(parsed.kind === 'artefact' && other.kind === 'artefact' && parsed.artefact.id !== other.artefact.id).toBe(true);
  });

  test.each<[string, Uint8Array]>([
    ['blank', new Uint8Array(0)],
    ['of something else', Buffer.from('{"models":[]}'.repeat(20))],
    ['half-written', encodeArtefact(artefact).subarray(0, 100_000)],
    ['larger than allowed', new Uint8Array(8_000_001)],
  ])('is refused when the file is %s', (_how, bytes) => {
    expect(problemOf(bytes)).not.toBe('');
  });

  test('is refused when a single bit changed', () => {
    const bytes = encodeArtefact(artefact);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    expect(problemOf(bytes)).toMatch(/checksum/);
  });

  test.each<[string, Partial<Record<keyof QualityHeader, unknown>>]>([
    ['NaN', { normMin: NaN }],
    ['a NaN in a list', { shapeMean: SMALL_HEADER.shapeMean.map(() => NaN) }],
    ['another feature schema', { featureSchema: 999 }],
    ['a norm of nothing', { normMin: 0 }],
    ['no models', { models: [] }],
    ['a model with directions of another length', { models: [{ ...SMALL_HEADER.models[0], cells: [{ ...SMALL_HEADER.models[0]?.cells[0], directions: [1, 2] }] }] }],
    ['a cluster that points past the columns', { clusters: [{ ...SMALL_HEADER.clusters[0], firstColumn: 3 }] }],
    ['a cluster that nobody knows', { clusters: [{ ...SMALL_HEADER.clusters[0], cluster: 'gossip' }] }],
    ['a missing part', { elsewhere: undefined }],
  ])('is refused with %s in its header', (_what, changes) => {
    expect(problemOf(withHeader(changes))).not.toBe('');
  });
});
