/** The conversation as generateContent has it: what answers calls stands by itself, right behind them. */
import { jsonRootOf } from '@signalbox/kernel/json-root';
import { failure, isObject, type JsonObject } from '../canonical.js';
import { extraOf, type Turn, type TurnCall, type UserPart } from '../chat-turns.js';
import type { LongStrings } from '../long-strings.js';
import type { FetchedMedia } from '../media.js';
import { base64Json, RawJson, rawObject } from '../raw-json.js';
import { Unsendable } from '../unsendable.js';

export interface TurnOptions {
  /** Send the ids of calls with their results; Vertex matches them by name and order alone. */
  readonly withCallIds: boolean;
  /** The model refuses calls of earlier turns that are not signed. */
  readonly needsSignature: boolean;
  /** Of the turns. */
  readonly strings: LongStrings;
}

type Result = Turn & { readonly role: 'tool' };

interface Content {
  readonly role: 'user' | 'model';
  readonly parts: object[];
}

/** Results of one turn's calls, by the ids of the calls in their order. */
interface Answers {
  readonly calls: Map<string, number>;
  readonly results: Result[];
}

/** Google's documented stand-in where a client did not send a signature back; without one a call in the history is refused. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

function signatureOf(extra: JsonObject): string {
  const google = extra['google'];
  const signature = isObject(google) ? google['thought_signature'] : undefined;
  return typeof signature === 'string' ? signature : '';
}

/** Both sides want objects; what is none goes in as a member. */
const objectOf = (text: string, member: string): RawJson | JsonObject => (text.trim() === '' ? {} : (rawObject(text) ?? { [member]: jsonValue(text) }));

/** What begins so may be JSON, of which an object goes in as such. */
const BEGINS_AS_JSON = /^[\s{["\d-]/;

const jsonValue = (text: string): unknown => (jsonRootOf(text) === undefined ? text : new RawJson(text));

/** Text of nothing is refused. */
function userParts(parts: readonly UserPart[], fetched: FetchedMedia): object[] {
  return parts.flatMap((part): object[] => {
    if (part.type === 'text') return part.text === '' ? [] : [{ text: part.text }];
    const media = part.source.kind === 'inline' ? part.source : fetched.get(part.source.url);
    if (media === undefined) throw new Unsendable(failure('BAD_REQUEST'));
    return [{ inlineData: { mimeType: media.mediaType, data: base64Json(media.base64) } }];
  });
}

function callPart(call: TurnCall, signature: string, { withCallIds }: TurnOptions): object {
  return { functionCall: { ...(withCallIds ? { id: call.id } : {}), name: call.name, args: objectOf(call.arguments, 'value') }, ...(signature === '' ? {} : { thoughtSignature: signature }) };
}

function modelParts(turn: Turn & { readonly role: 'assistant' }, options: TurnOptions): readonly object[] {
  const ofMessage = signatureOf(extraOf(turn.message));
  const text = turn.text === '' && ofMessage === '' ? [] : [{ text: turn.text, ...(ofMessage === '' ? {} : { thoughtSignature: ofMessage }) }];
  // Of parallel calls only the first is signed.
  const calls = turn.calls.map((call, position) => callPart(call, signatureOf(call.extra) || (options.needsSignature && position === 0 ? NO_SIGNATURE : ''), options));
  return [...text, ...calls];
}

function answersContent({ calls, results }: Answers, { withCallIds, strings }: TurnOptions): readonly Content[] {
  if (results.length === 0) return [];
  const sorted = [...results].sort((left, right) => (calls.get(left.callId) ?? 0) - (calls.get(right.callId) ?? 0));
  return [{ role: 'user', parts: sorted.map((turn) => ({ functionResponse: { ...(withCallIds ? { id: turn.callId } : {}), name: turn.name, response: objectOf(BEGINS_AS_JSON.test(turn.text) ? strings.whole(turn.text) : turn.text, 'output') } })) }];
}

/**
 * Neighbouring turns of the model become one: calls must follow the user's words or results. Results become one turn
 * that holds nothing else, wherever they stood. Turns that say nothing are left out. Throws Unsendable when a fetched
 * medium is missing. The contents are for writeJson; none where the conversation has only system turns.
 */
export function renderTurns(turns: readonly Turn[], fetched: FetchedMedia, options: TurnOptions): readonly object[] {
  const said: (Content | Answers)[] = [];
  const answersOf = new Map<string, Answers>();
  /** The model's turn that goes on, and what will answer it. */
  let open: { readonly content: Content; answers: Answers | undefined } | undefined;

  const addModel = (turn: Turn & { readonly role: 'assistant' }): void => {
    const parts = modelParts(turn, options);
    if (parts.length === 0) return;
    if (open === undefined) {
      open = { content: { role: 'model', parts: [] }, answers: undefined };
      said.push(open.content);
    }
    open.content.parts.push(...parts);
    if (turn.calls.length > 0 && open.answers === undefined) said.push((open.answers = { calls: new Map(), results: [] }));
    for (const { id } of turn.calls) {
      if (open.answers === undefined) break;
      open.answers.calls.set(id, open.answers.calls.size);
      answersOf.set(id, open.answers);
    }
  };

  const addResult = (turn: Result): void => {
    let answers = answersOf.get(turn.callId);
    if (answers === undefined) said.push((answers = { calls: new Map(), results: [] }));
    answers.results.push(turn);
    open = undefined;
  };

  for (const turn of turns) {
    if (turn.role === 'assistant') addModel(turn);
    else if (turn.role === 'tool') addResult(turn);
    else if (turn.role === 'user') {
      const parts = userParts(turn.parts, fetched);
      if (parts.length === 0) continue;
      said.push({ role: 'user', parts });
      open = undefined;
    }
  }
  const contents = said.flatMap((one) => ('parts' in one ? [one] : answersContent(one, options)));
  // Nor may a conversation begin with calls.
  if (contents[0]?.parts.some((part) => 'functionCall' in part) === true) contents.unshift({ role: 'user', parts: [{ text: 'Continue.' }] });
  return contents;
}
