/**
 * Features of a prompt: one pass over at most 8 KB of text, no dictionary, no network.
 *
 * Words, their first four letters and pairs of words are hashed into buckets; a few counts describe the text's shape.
 * All runs of four characters, instead of a word's first, cost three times as much and predicted no better.
 * Training and serving both call this, so both see the same features. A change of their meaning must raise FEATURE_SCHEMA.
 */
import { clusterGiven, clusterOf, type Cluster, type PromptSetting } from './clusters.js';

export const FEATURE_SCHEMA = 1;
export const BUCKETS = 65_536;
/** Most characters read. */
export const TEXT_MAX = 8_192;
/** Most buckets of one text: a word, its beginning and a pair for each character. */
export const BUCKETS_MAX = 3 * TEXT_MAX;
/** Names of `shape`, in order. */
export const SHAPE = [
  'length', 'length-squared', 'numbers', 'options-length', 'options', 'is-exam', 'many-options', 'digits-in-options', 'symbols', 'negation',
  'blank', 'ends-as-question', 'statements', 'word-length', 'many-lines', 'non-latin',
] as const;

/** Views into buffers of the extractor: valid until its next call. */
export interface PromptFeatures {
  readonly cluster: Cluster;
  /** Distinct buckets of words, beginnings of words, and pairs. */
  readonly buckets: Uint16Array;
  /** Hashes of the words, to tell how many are known; repeated words are repeated. */
  readonly words: Uint32Array;
  /** In the order of SHAPE. */
  readonly shape: Float64Array;
}

export type FeatureExtractor = (text: string, setting: PromptSetting) => PromptFeatures;

const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
const FNV_START = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const SEED_WORD = 0x9e3779b1;
const SEED_PAIR = 0x85ebca77;
const SEED_STEM = 0xc2b2ae3d;

const DIGIT = 48;
const NEW_LINE = 10;
const UNDERSCORE = 95;
const BACKSLASH = 92;
const DOLLAR = 36;
const BACKTICK = 96;
const UPPER_A = 65;
const UPPER_Z = 90;
const TO_LOWER = 32;
const FIRST_NON_LATIN = 0x250;
/** From this code point on, each character is a word. */
const FIRST_IDEOGRAPH = 0x2e80;
/** Length of a word's beginning, which related words share. */
const STEM_LENGTH = 4;
/** Numbers of four or more digits share a bucket. */
const NUMBER_LENGTH_MAX = 4;
const OPTIONS_MAX = 10;
const STAMP_MAX = 0xffff;
/** Bits of a word's hash that rule most words out as cues. */
const CUE_MASK = 4_095;
/** Applied to the last characters only: over the whole text, many blank lines would take quadratic time. */
const ANSWER_CUE = /\n\s*answer:\s*$/i;
const ANSWER_CUE_MAX = 32;

function mix(value: number): number {
  let hash = value;
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x7feb352d);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x846ca68b);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function wordHash(word: string): number {
  let hash = FNV_START;
  for (let i = 0; i < word.length; i += 1) hash = Math.imul(hash ^ word.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

function hashes(words: string): ReadonlySet<number> {
  return new Set(words.split(' ').map(wordHash));
}

type Cue = 'negation' | 'statement' | 'code' | 'quantity' | 'number' | 'translation' | 'json';

const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13) || code === 0xa0;
const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isLetter = (code: number): boolean => (code >= 97 && code <= 122) || code >= 0xc0;
/** $ * + / < = > \ ^ */
const isMathSymbol = (code: number): boolean => code === 36 || code === 42 || code === 43 || code === 47 || (code >= 60 && code <= 62) || code === 92 || code === 94;

/** What a character is counted as; 0 = nothing. */
const MARK = { digit: 1, newLine: 2, underscore: 3, math: 4, backtick: 5, nonLatin: 6, upper: 7 } as const;
const MARKS = Uint8Array.from({ length: 65_536 }, (_, code) => {
  if (code >= FIRST_NON_LATIN) return MARK.nonLatin;
  if (isDigit(code)) return MARK.digit;
  if (isMathSymbol(code)) return MARK.math;
  if (code >= UPPER_A && code <= UPPER_Z) return MARK.upper;
  return code === NEW_LINE ? MARK.newLine : code === UNDERSCORE ? MARK.underscore : code === BACKTICK ? MARK.backtick : 0;
});

/** Kinds of characters. The order matters: every kind from `letter` on may follow a letter in a word. */
const KIND = { other: 0, space: 1, digit: 2, letter: 3, ideograph: 4 } as const;
const KINDS = Uint8Array.from({ length: 65_536 }, (_, code) => (isSpace(code) ? KIND.space : isDigit(code) ? KIND.digit : !isLetter(code) ? KIND.other : code < FIRST_IDEOGRAPH ? KIND.letter : KIND.ideograph));

/** A lettered answer at the start of a line: `A. ` or `A) `, in order from A to J. */
function isOptionAt(text: string, at: number, expected: number): boolean {
  if (text.charCodeAt(at) !== 65 + expected) return false;
  const mark = text.charCodeAt(at + 1);
  return (mark === 46 || mark === 41) && isSpace(text.charCodeAt(at + 2));
}

/** Words that hint at the kind of task, by hash. */
const CUES: ReadonlyMap<number, Cue> = new Map([
  ...[...hashes('not except least never')].map((hash) => [hash, 'negation'] as const),
  ...[...hashes('statement statements')].map((hash) => [hash, 'statement'] as const),
  ...[...hashes('def return import print const function class var let public void int str null elif self async await lambda struct python javascript typescript sql select')].map((hash) => [hash, 'code'] as const),
  ...[...hashes('how many much total')].map((hash) => [hash, 'quantity'] as const),
  ...[...hashes('one two three four five six seven eight nine ten twice half double triple third quarter dozen')].map((hash) => [hash, 'number'] as const),
  ...[...hashes('translate translation')].map((hash) => [hash, 'translation'] as const),
  ...[...hashes('json yaml xml')].map((hash) => [hash, 'json'] as const),
]);

interface WordCounts {
  readonly length: number;
  readonly letters: number;
  readonly cues: Readonly<Record<Cue, number>>;
}

/** By the low bits of a word's hash: 1 = the word may be a cue. */
const MAY_BE_CUE = new Uint8Array(CUE_MASK + 1);
for (const hash of CUES.keys()) MAY_BE_CUE[hash & CUE_MASK] = 1;

interface Scratch {
  readonly codes: Uint16Array;
  /** Hash of each token. */
  readonly tokens: Int32Array;
  /** What the bucket of each token's first four letters is made of; where it has no more than four or is no word, what its own is made of. */
  readonly beginnings: Int32Array;
  readonly words: Uint32Array;
  /** By bucket, the stamp of the last prompt that contained it. */
  readonly seen: Uint16Array;
  readonly buckets: Uint16Array;
  stamp: number;
}

/** Splits the text into words, numbers, which count by their length, and single other characters. */
function readTokens({ codes, tokens, beginnings, words }: Scratch, length: number): { readonly tokenCount: number; readonly words: WordCounts } {
  const cues: Record<Cue, number> = { negation: 0, statement: 0, code: 0, quantity: 0, number: 0, translation: 0, json: 0 };
  const codeWords = new Set<number>();
  let count = 0;
  let wordCount = 0;
  let letters = 0;
  let i = 0;
  while (i < length) {
    const code = codes[i] ?? 0;
    const kind = KINDS[code] ?? KIND.other;
    if (kind === KIND.space) {
      i += 1;
      continue;
    }
    let hash = Math.imul(FNV_START ^ code, FNV_PRIME);
    let end = i + 1;
    let stem = 0;
    if (kind === KIND.digit) {
      while (end < length && KINDS[codes[end] ?? 0] === KIND.digit) end += 1;
      hash = Math.imul(FNV_START ^ DIGIT, FNV_PRIME) ^ Math.min(end - i, NUMBER_LENGTH_MAX);
    } else if (kind >= KIND.letter) {
      if (kind === KIND.letter) {
        for (; end < length; end += 1) {
          const next = codes[end] ?? 0;
          if ((KINDS[next] ?? 0) < KIND.letter) break;
          hash = Math.imul(hash ^ next, FNV_PRIME);
          if (end === i + STEM_LENGTH - 1) stem = hash;
        }
      }
      if (end - i === STEM_LENGTH) stem = 0;
      words[wordCount] = hash;
      wordCount += 1;
      letters += end - i;
      const cue = MAY_BE_CUE[hash & CUE_MASK] === 1 ? CUES.get(hash >>> 0) : undefined;
      if (cue === 'code') codeWords.add(hash);
      else if (cue !== undefined) cues[cue] += 1;
    }
    i = end;
    tokens[count] = hash;
    beginnings[count] = stem === 0 ? hash ^ SEED_WORD : stem ^ SEED_STEM;
    count += 1;
  }
  cues.code = codeWords.size;
  return { tokenCount: count, words: { length: wordCount, letters, cues } };
}

/** 1 if the two differ, else 0, without a branch: whether a bucket is new cannot be predicted. */
const differ = (a: number, b: number): number => -(a ^ b) >>> 31;

/** Fills `buckets` with the distinct buckets of tokens, beginnings of words, and pairs of neighbours; returns their number. */
function findBuckets({ tokens, beginnings, seen, buckets, stamp }: Scratch, tokenCount: number): number {
  let count = 0;
  let previous = 0;
  for (let i = 0; i < tokenCount; i += 1) {
    const hash = tokens[i] ?? 0;
    const single = mix(hash ^ SEED_WORD) & (BUCKETS - 1);
    buckets[count] = single;
    count += differ(seen[single] ?? 0, stamp);
    seen[single] = stamp;
    const beginning = mix(beginnings[i] ?? 0) & (BUCKETS - 1);
    buckets[count] = beginning;
    count += differ(seen[beginning] ?? 0, stamp);
    seen[beginning] = stamp;
    if (previous !== 0) {
      const pair = mix(Math.imul(previous, SEED_PAIR) ^ hash) & (BUCKETS - 1);
      buckets[count] = pair;
      count += differ(seen[pair] ?? 0, stamp);
      seen[pair] = stamp;
    }
    previous = hash;
  }
  return count;
}

const EMPTY = { buckets: new Uint16Array(0), words: new Uint32Array(0), shape: new Float64Array(SHAPE.length) } as const;

/**
 * Buffers are reused between calls; the result depends only on the arguments. `isWeighed`: the kinds of task for which more
 * than the kind is wanted; for others the result holds no buckets and no words, and a shape of zeros.
 */
export function createFeatureExtractor(isWeighed: (cluster: Cluster) => boolean = () => true): FeatureExtractor {
  const scratch: Scratch = {
    codes: new Uint16Array(TEXT_MAX), tokens: new Int32Array(TEXT_MAX), beginnings: new Int32Array(TEXT_MAX), words: new Uint32Array(TEXT_MAX),
    seen: new Uint16Array(BUCKETS), buckets: new Uint16Array(BUCKETS_MAX), stamp: 0,
  };
  const codeBytes = Buffer.from(scratch.codes.buffer);

  /** Copies all characters at once: reading them from the string one by one costs more than all other work. */
  const readCodes = (text: string): void => {
    codeBytes.write(text, 0, 'utf16le');
    if (!IS_LITTLE_ENDIAN) codeBytes.subarray(0, text.length * 2).swap16();
  };

  return (whole, setting) => {
    const given = clusterGiven(setting);
    if (given !== undefined && !isWeighed(given)) return { cluster: given, ...EMPTY };
    const text = withoutAnswerCue(whole.length > TEXT_MAX ? whole.slice(0, TEXT_MAX) : whole);
    readCodes(text);
    const marks = readMarks(text, scratch.codes);
    const { tokenCount, words: { cues, letters, length: wordCount } } = readTokens(scratch, text.length);
    const endsAsQuestion = text.slice(Math.max(0, marks.bodyLength - 8), marks.bodyLength).trimEnd().endsWith('?');
    const cluster = clusterOf(setting, {
      options: marks.options, numbers: marks.numbers + cues.number, notation: marks.notation, codeCues: cues.code, codeFences: marks.codeFences,
      quantityCues: cues.quantity, translationCues: cues.translation, jsonCues: cues.json, endsAsQuestion,
    });
    if (!isWeighed(cluster)) return { cluster, ...EMPTY };
    scratch.stamp += 1;
    if (scratch.stamp === STAMP_MAX) {
      scratch.seen.fill(0);
      scratch.stamp = 1;
    }
    return {
      cluster,
      buckets: scratch.buckets.subarray(0, findBuckets(scratch, tokenCount)),
      words: scratch.words.subarray(0, wordCount),
      shape: shapeOf(text.length, marks, cues, letters, wordCount, endsAsQuestion),
    };
  };
}

function withoutAnswerCue(text: string): string {
  const cue = ANSWER_CUE.exec(text.slice(-ANSWER_CUE_MAX));
  return cue === null ? text : text.slice(0, text.length - cue[0].length);
}

/** Counts for the text before its lettered answers, unless a field's name says otherwise. */
interface Marks {
  readonly bodyLength: number;
  readonly options: number;
  readonly optionDigits: number;
  readonly numbers: number;
  readonly symbols: number;
  readonly notation: number;
  readonly codeFences: number;
  readonly blanks: number;
  readonly lines: number;
  readonly nonLatin: number;
}

/** Counts, and turns the letters A to Z of `codes` into lower case. */
function readMarks(text: string, codes: Uint16Array): Marks {
  const { length } = text;
  const startsWithOption = isOptionAt(text, 0, 0);
  let bodyEnd = startsWithOption ? 0 : -1;
  let options = Number(startsWithOption);
  let optionDigits = 0;
  let numbers = 0;
  let symbols = 0;
  let notation = 0;
  let codeFences = 0;
  let blanks = 0;
  let lines = 1;
  let nonLatin = 0;
  for (let i = 0; i < length; i += 1) {
    const code = codes[i] ?? 0;
    const mark = MARKS[code] ?? 0;
    // Most characters are small letters.
    if (mark === 0) continue;
    const previous = i === 0 ? NEW_LINE : (codes[i - 1] ?? 0);
    if (mark === MARK.upper) codes[i] = code + TO_LOWER;
    else if (mark === MARK.nonLatin) nonLatin += 1;
    else if (mark === MARK.newLine) {
      if (bodyEnd < 0) lines += 1;
      if (options < OPTIONS_MAX && isOptionAt(text, i + 1, options)) {
        if (options === 0) bodyEnd = i + 1;
        options += 1;
      }
    } else if (bodyEnd >= 0) {
      if (mark === MARK.digit) optionDigits += 1;
    } else if (mark === MARK.digit) {
      if (!isDigit(previous)) numbers += 1;
    } else if (mark === MARK.underscore) {
      if (previous === UNDERSCORE) blanks += 1;
    } else if (mark === MARK.math) {
      symbols += 1;
      if (code === BACKSLASH || (code === DOLLAR && !isDigit(i + 1 < length ? (codes[i + 1] ?? 0) : 0))) notation += 1;
    } else if (previous === BACKTICK && i + 1 < length && codes[i + 1] === BACKTICK) codeFences += 1;
  }
  return { bodyLength: bodyEnd < 0 ? length : bodyEnd, options, optionDigits, numbers, symbols, notation, codeFences, blanks, lines, nonLatin };
}

/** Values in the order of SHAPE, each of magnitude around 1. */
function shapeOf(textLength: number, marks: Marks, cues: Readonly<Record<Cue, number>>, letters: number, words: number, endsAsQuestion: boolean): Float64Array {
  const { bodyLength, options } = marks;
  const optionsLength = textLength - bodyLength;
  const length = Math.log(1 + bodyLength) / 5;
  return Float64Array.of(
    length, length ** 2, Math.log(1 + marks.numbers) / 3, Math.log(1 + optionsLength) / 5, options / OPTIONS_MAX, Number(options > 0), Number(options > 5),
    marks.optionDigits / (1 + optionsLength), (5 * marks.symbols) / (1 + bodyLength), Number(cues.negation > 0), Number(marks.blanks > 0), Number(endsAsQuestion), Number(cues.statement > 0),
    letters / (1 + words) / 10, Number(marks.lines > 3), marks.nonLatin / (1 + textLength),
  );
}
