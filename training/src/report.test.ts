import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { withFigures } from './report.js';
import { DOCUMENT_PATH, readArtefact } from './shipped.js';

describe('the figures of auto', () => {
  test('in the docs are those that the shipped artefact carries', () => {
    const document = readFileSync(DOCUMENT_PATH, 'utf8');
    expect(withFigures(document, readArtefact().header.metrics)).toBe(document);
  });

  test('are not written where there is no place for them', () => {
    expect(() => withFigures('# Other', {})).toThrow('no place');
  });
});
