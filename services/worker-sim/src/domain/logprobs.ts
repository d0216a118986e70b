/** How probable the simulator says its words were: made up, always the same for the same text, and as OpenAI writes it. */

type Json = Readonly<Record<string, unknown>>;

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** UTF-8. */
  readonly bytes: readonly number[];
}

export interface Logprobs {
  readonly content: readonly (TokenLogprob & { readonly top_logprobs: readonly TokenLogprob[] })[];
  readonly refusal: null;
}

const PIECE_CHARS = 16;
const TOKEN_BYTES_MAX = 4;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** A text as it is streamed. */
export function piecesOf(text: string): readonly string[] {
  const characters = Array.from(text);
  return Array.from({ length: Math.ceil(characters.length / PIECE_CHARS) }, (_, at) => characters.slice(at * PIECE_CHARS, (at + 1) * PIECE_CHARS).join(''));
}

/** Alternatives asked for with each token; undefined = a request that asks for no probabilities. */
export function alternativesAsked({ logprobs, top_logprobs: top }: Json): number | undefined {
  const count = typeof top === 'number' ? top : 0;
  return logprobs === true || count > 0 ? count : undefined;
}

/** Whole characters of at most four bytes: as many tokens as usage counts, where the text is ASCII. */
function tokensOf(piece: string): readonly string[] {
  const tokens: string[] = [];
  let token = '';
  for (const character of piece) {
    if (token !== '' && Buffer.byteLength(token + character) > TOKEN_BYTES_MAX) {
      tokens.push(token);
      token = '';
    }
    token += character;
  }
  return token === '' ? tokens : [...tokens, token];
}

const told = (token: string, probability: number): TokenLogprob => ({ token, logprob: Number(Math.log(probability).toFixed(6)), bytes: [...Buffer.from(token)] });

/** More than half for what was said; each alternative has half of what those before left. */
function probabilityOf(token: string, alternatives: number): Logprobs['content'][number] {
  const sum = Buffer.from(token).reduce((total, byte, at) => total + byte * (at + 1), 0);
  const chosen = 0.5 + (sum % 49) / 100;
  const others = [...LETTERS].filter((letter) => letter !== token).slice(0, Math.max(0, alternatives - 1));
  const top = alternatives === 0 ? [] : [told(token, chosen), ...others.map((other, rank) => told(other, (1 - chosen) / 2 ** (rank + 1)))];
  return { ...told(token, chosen), top_logprobs: top };
}

/** Of a piece of a stream, or of all pieces of a text. */
export function logprobsOf(pieces: readonly string[], alternatives: number): Logprobs {
  return { content: pieces.flatMap(tokensOf).map((token) => probabilityOf(token, alternatives)), refusal: null };
}
