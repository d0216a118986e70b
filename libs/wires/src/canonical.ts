/** The common result of every wire, whatever the provider's protocol: canonical chunks, answers, usage and failures. */
import type { NanoUsd } from '@signalbox/kernel/money';
import { promptTokens, type TokenCounts } from '@signalbox/kernel/tokens';

/** Names as in the worker contract. */
export type FailureClass =
  | 'RATE_LIMITED'
  | 'PROVIDER_ERROR'
  | 'CREDENTIAL'
  | 'NOT_FOUND'
  | 'BAD_REQUEST'
  | 'CONTEXT_LENGTH'
  | 'CONTENT_POLICY'
  | 'CONNECT'
  | 'TIMEOUT_FIRST_BYTE'
  | 'TIMEOUT_IDLE'
  | 'DISCONNECTED'
  | 'GARBAGE'
  | 'EMPTY'
  | 'NO_CREDENTIAL'
  | 'QUOTA_AWAY'
  | 'ACCOUNTS_AWAY'
  | 'STOPPED';

export interface Failure {
  readonly class: FailureClass;
  /** HTTP status of the provider, 0 = none. */
  readonly status: number;
  /** Milliseconds, 0 = no hint; at most RETRY_AFTER_MS_MAX. */
  readonly retryAfterMs: number;
  /** Sentence for the client, only for BAD_REQUEST, CONTEXT_LENGTH and CONTENT_POLICY; else empty. */
  readonly publicMessage: string;
  readonly publicParam: string;
  /** True when another endpoint may succeed. */
  readonly retryable: boolean;
  /** The endpoint works, so that nothing counts against it: its model wrote what nobody can use, or it refuses one kind of request. Absent = `class` says. */
  readonly isEndpointWell?: boolean;
  /** It refuses streams to the credential's owner, and answers other requests. */
  readonly refusesStreams?: boolean;
}

/** 10 min: a hint beyond that says no more than "not now". */
export const RETRY_AFTER_MS_MAX = 600_000;

/** A failure without a status, hint or message. */
export function failure(failureClass: FailureClass, retryable = true, status = 0): Failure {
  return { class: failureClass, status, retryAfterMs: 0, publicMessage: '', publicParam: '', retryable };
}

/** The model wrote what nobody can use. The endpoint works, and another attempt may do better. */
export function modelsFault(): Failure {
  return { ...failure('PROVIDER_ERROR', true, 200), isEndpointWell: true };
}

/** The provider's content policy left nothing of an answer. */
export function emptiedByPolicy(): Failure {
  return { ...failure('CONTENT_POLICY', false, 200), publicMessage: 'The provider refused to answer for reasons of its content policy.' };
}

/** Token usage as a provider reported it. */
export interface Usage {
  readonly tokens: TokenCounts;
  readonly cachedKnown: boolean;
  readonly reasoningKnown: boolean;
  /** The figures contradict themselves: they were clamped. */
  readonly isSuspect: boolean;
  /** Its own figure for the cost of the whole call, in nano-USD; undefined = none, or one that cannot be a cost. */
  readonly costNanoUsd?: NanoUsd | undefined;
}

/** The input buckets alone of figures that need not be final; undefined when they hold none: no prompt has 0 tokens. */
export function promptOf({ tokens, cachedKnown, isSuspect }: Usage): Usage | undefined {
  if (promptTokens(tokens) === 0) return undefined;
  return { tokens: { ...tokens, outputText: 0, outputReasoning: 0 }, cachedKnown, reasoningKnown: false, isSuspect };
}

/** Canonical finish reasons; `error` only when an answer broke. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call' | 'error';

export type StreamEvent =
  | {
      readonly type: 'chunk';
      /** JSON array text of canonical choices, UTF-8. */
      readonly choices: Uint8Array;
      /** Carries content: from here on no other attempt may take over. */
      readonly content: boolean;
      readonly finish: boolean;
      /** Likewise: the finish of choices that have ended while others go on, to be given should the stream break off. */
      readonly ended?: Uint8Array;
    }
  /** The provider reported it, or violated its protocol. Nothing follows. */
  | { readonly type: 'failed'; readonly failure: Failure }
  /** The stream ended well. Nothing follows. */
  | { readonly type: 'done' };

export interface StreamSummary {
  /** Final usage: it came with the last output, or after it. */
  readonly usage: Usage | undefined;
  /** Input buckets as told so far, its output buckets are 0: what is left to go by when no final figures come. */
  readonly promptUsage: Usage | undefined;
  /** True when the provider sent usage figures that cannot be token counts. */
  readonly usageUnreadable: boolean;
  readonly finishReason: FinishReason | '';
  /** Bytes of generated text, names and arguments seen so far: about four a token. */
  readonly outputBytes: number;
  /** Those of them that are thoughts shown to the client. */
  readonly thoughtBytes: number;
  readonly contentSeen: boolean;
  /** Every choice seen has its finish reason. */
  readonly isFinished: boolean;
  /** Only the end of the stream is missing: finished, with final usage, and no further output can be expected. */
  readonly isComplete: boolean;
  readonly systemFingerprint: string;
  readonly serviceTier: string;
}

/** Bytes in, canonical events out. Pure; one per stream. */
export interface StreamTransducer {
  /** Texts that follow each other in `bytes` may come as one chunk. The chunks may be views of `bytes`. */
  push(bytes: Uint8Array): readonly StreamEvent[];
  /** The source ended. The last event is `done` or `failed`, unless one was given before. */
  close(): readonly StreamEvent[];
  /** A chunk with this finish reason for each choice that has none yet; undefined when all have one. `failed` where one ended in an error. */
  finishOpen(reason: FinishReason): StreamEvent | undefined;
  /** The answer breaks off: a chunk with the finish of each choice that has one, where others have none; undefined when that is so of all or none. Absent: there is one choice. */
  finishEnded?(): StreamEvent | undefined;
  /** What is known so far. The same object each time, updated in place. */
  summary(): StreamSummary;
  /** See `Answer`. Means something once the stream is done; absent: no model behind this wire is known for it. */
  saidNothing?(): boolean;
}

/** A whole answer. */
export interface Answer {
  /** JSON array text of canonical choices, UTF-8. */
  readonly choices: Uint8Array;
  readonly systemFingerprint: string;
  readonly serviceTier: string;
  readonly usage: Usage | undefined;
  readonly usageUnreadable: boolean;
  readonly finishReason: FinishReason;
  readonly outputBytes: number;
  /** Those of them that are thoughts shown to the client. */
  readonly thoughtBytes: number;
  /** The model came to its end without a word, and may say more when it is asked again. Absent = no. */
  readonly saidNothing?: boolean;
}

export type AnswerResult = { readonly ok: true; readonly answer: Answer } | { readonly ok: false; readonly failure: Failure; readonly usage: Usage | undefined };

/** Thrown inside a wire where what came cannot be an answer of it; never leaves the wire. */
export class Garbage extends Error {}

/** Most tool calls of one answer. No real answer has as many, and each is searched for among the others. */
export const CALLS_MAX = 128;

/** Most characters of arguments, of all calls of an answer: about a million tokens, several times the longest answer of any model. They are read, written and looked through in one go. */
export const ARGUMENTS_CHARS_MAX = 4_194_304;

/** Counts characters of arguments. Throws Garbage where they are more than any model writes. */
export type CountArguments = (chars: number) => void;

/** For the calls of one answer. */
export function createArgumentsCount(): CountArguments {
  let counted = 0;
  return (chars) => {
    counted += chars;
    if (counted > ARGUMENTS_CHARS_MAX) throw new Garbage('Longer arguments than an answer may hold.');
  };
}

/** JSON that nests without end exhausts the stack of whoever reads or writes it; anything else that is thrown is a bug. */
export function isGarbage(error: unknown): boolean {
  return error instanceof Garbage || error instanceof RangeError;
}

/** Whether a field called `error` tells one: some hosts write it empty into whatever they send. */
export function isError(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** What an error says stands at its beginning; in an event it may go on for megabytes, which a dozen patterns would be held against. */
const ERROR_CHARS_MAX = 8_192;

/** Text of an error's field, cut; empty for what is no text. */
export function errorText(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, ERROR_CHARS_MAX) : '';
}

/** A name that an answer or each of its chunks repeats: of a host's that is longer nothing is told. */
const LABEL_CHARS_MAX = 256;

/** `system_fingerprint` or `service_tier`; empty where there is none. */
export function labelOf(value: unknown): string {
  return typeof value === 'string' && value.length <= LABEL_CHARS_MAX ? value : '';
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** undefined when `text` is not JSON of an object. */
export function parsedObject(text: string): JsonObject | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}
