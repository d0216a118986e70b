/** The simulator's log probabilities, in OpenAI's format: made up, but always the same for the same text. */

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

/** A text in the pieces in which it is streamed. */
export function piecesOf(text: string): readonly string[] {
  const characters = Array.from(text);
  return Array.from({ length: Math.ceil(characters.length / PIECE_CHARS) }, (_, at) => characters.slice(at * PIECE_CHARS, (at + 1) * PIECE_CHARS).join(''));
}

/** Requested number of alternatives for each token; undefined = no log probabilities were requested. */
export function alternativesAsked({ logprobs, top_logprobs: top }: Json): number | undefined {
  const count = typeof top === 'number' ? top : 0;
  return logprobs === true || count > 0 ? count : undefined;
}

/** Splits into tokens of whole characters and at most four bytes; for ASCII, this gives as many tokens as usage counts. */
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

/** The chosen token has a probability of at least 0.5; each alternative has half of what is left. */
function probabilityOf(token: string, alternatives: number): Logprobs['content'][number] {
  const sum = Buffer.from(token).reduce((total, byte, at) => total + byte * (at + 1), 0);
  const chosen = 0.5 + (sum % 49) / 100;
  const others = [...LETTERS].filter((letter) => letter !== token).slice(0, Math.max(0, alternatives - 1));
  const top = alternatives === 0 ? [] : [told(token, chosen), ...others.map((other, rank) => told(other, (1 - chosen) / 2 ** (rank + 1)))];
  return { ...told(token, chosen), top_logprobs: top };
}

/** Log probabilities for one piece of a stream, or for all pieces of a text. */
export function logprobsOf(pieces: readonly string[], alternatives: number): Logprobs {
  return { content: pieces.flatMap(tokensOf).map((token) => probabilityOf(token, alternatives)), refusal: null };
}
