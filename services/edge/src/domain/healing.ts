/** Healing of one answer: whole or streamed, its texts and the arguments of its tool calls. */
import type { ChatRequest } from './chat-request.js';
import { healJson, JsonHealer, repairBudget, type HealStep, type JsonKind, type RepairBudget } from './heal-json.js';

/** Whether `text` (JSON) fits the account's `schema` (JSON text). Never rejects; undefined = no verdict in time, or no valid schema. */
export type SchemaCheck = (accountId: string, schema: string, text: string) => Promise<boolean | undefined>;

/** What JSON the client asked for. */
export interface HealingTerms {
  readonly kind: JsonKind;
  /** JSON text of the schema that the answer must fit; undefined for `json_object`, or if the client gave none. */
  readonly schema: string | undefined;
}

/** The text of one choice. */
export interface HealedText {
  readonly text: string;
  /** The model ended it by itself (`stop`): no limit, policy or tool call did. */
  readonly isEnded: boolean;
}

export interface HealedAnswer {
  /** In the order of `HealStep`. */
  readonly steps: readonly HealStep[];
  /** At least one text is not the JSON that was asked for. */
  readonly isBroken: boolean;
  /** Another attempt could do better: the model ended every broken text by itself. */
  readonly isWorthAnother: boolean;
  /** The texts of the choices, if there is a schema to check. */
  readonly texts: readonly HealedText[];
}

const PLUGIN = 'json-healing';
/** The steps reported for an answer that is not the JSON that was asked for. */
export const HEALING_FAILED: readonly string[] = ['failed'];
const ORDER: readonly HealStep[] = ['bom', 'fence', 'prose', 'syntax', 'closed'];

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined if healing does not apply: no JSON was asked for, or the client switched it off. */
export function healingTermsOf(request: Pick<ChatRequest, 'needs' | 'fields' | 'pluginOptions'>): HealingTerms | undefined {
  const format = request.needs.responseFormat ?? '';
  if (format === '') return undefined;
  const wish = request.pluginOptions[PLUGIN];
  if (isObject(wish) && wish['enabled'] === false) return undefined;
  if (format !== 'json_schema') return { kind: 'object', schema: undefined };
  const field = request.fields.find(({ name }) => name === 'response_format');
  return field === undefined ? ANY_JSON : schemaTermsOf(field.value);
}

const ANY_JSON: HealingTerms = { kind: 'any', schema: undefined };
/** By the field's bytes, so that a schema, which may have 100,000 members, is read once for a request. */
const termsOfFields = new WeakMap<Buffer, HealingTerms>();

function schemaTermsOf(value: Buffer): HealingTerms {
  let terms = termsOfFields.get(value);
  if (terms === undefined) termsOfFields.set(value, (terms = readTerms(JSON.parse(value.toString('utf8')))));
  return terms;
}

function readTerms(format: unknown): HealingTerms {
  const named = isObject(format) ? format['json_schema'] : undefined;
  const schema = isObject(named) ? named['schema'] : undefined;
  return isObject(schema) ? { kind: rootOf(schema), schema: JSON.stringify(schema) } : ANY_JSON;
}

function rootOf(schema: Json): JsonKind {
  const { type } = schema;
  return type === 'object' || type === 'array' ? type : 'any';
}

/** Collects the results for all texts of an answer. */
class Findings {
  readonly texts: HealedText[] = [];
  private readonly steps = new Set<HealStep>(); // kept: of one answer, and dropped with it.
  private isBroken = false;
  private isWorthAnother = true;

  constructor(private readonly keepsTexts: boolean) {}

  /** `isBeside`: the message also calls a tool. The text then is not the answer and need not be JSON. */
  text(text: string, steps: readonly HealStep[], isJson: boolean, finishReason: string, isBeside: boolean): void {
    for (const step of steps) this.steps.add(step);
    if (isBeside) return;
    const isEnded = finishReason === 'stop';
    if (this.keepsTexts) this.texts.push({ text, isEnded });
    if (isJson) return;
    this.isBroken = true;
    this.isWorthAnother &&= isEnded;
  }

  /** Arguments that cannot be healed stay unchanged and do not make the answer broken. */
  call(steps: readonly HealStep[]): void {
    for (const step of steps) this.steps.add(step);
  }

  told(): HealedAnswer {
    return { steps: ORDER.filter((step) => this.steps.has(step)), isBroken: this.isBroken, isWorthAnother: this.isWorthAnother, texts: this.texts };
  }
}

/** Whether a message or delta calls tools. */
const hasCalls = ({ tool_calls: calls, function_call: call }: Json): boolean => (Array.isArray(calls) && calls.length > 0) || isObject(call);

const WORDLESS: ReadonlySet<string> = new Set(['content_filter', 'tool_calls', 'function_call']);

/** An empty text counts as broken, unless the answer calls tools, refuses or was stopped by a policy. */
const needsText = (isCalling: boolean, isRefusal: boolean, finishReason: string): boolean => !isCalling && !isRefusal && !WORDLESS.has(finishReason);

/** Heals the arguments of tool calls; true = something changed. Arguments that were cut off are not closed, since a client would take them for complete. */
function healCalls(calls: unknown, found: Findings, budget: RepairBudget): boolean {
  let isChanged = false;
  for (const call of Array.isArray(calls) ? (calls as readonly unknown[]) : []) {
    const called = isObject(call) ? call['function'] : undefined;
    const text = isObject(called) ? called['arguments'] : undefined;
    if (!isObject(called) || typeof text !== 'string' || text === '') continue;
    const healed = healJson(text, 'object', false, budget);
    found.call(healed.steps);
    if (healed.text === text) continue;
    called['arguments'] = healed.text;
    isChanged = true;
  }
  return isChanged;
}

/** Heals a whole answer. `choices`: JSON array text of canonical choices; the same bytes are returned if nothing changed. */
export function healChoices(choices: Buffer, { kind, schema }: HealingTerms): HealedAnswer & { readonly choices: Buffer } {
  const list = JSON.parse(choices.toString('utf8')) as readonly Json[];
  const found = new Findings(schema !== undefined);
  const budget = repairBudget();
  let isChanged = false;
  for (const choice of list) {
    const message = choice['message'];
    if (!isObject(message)) continue;
    const finishReason = String(choice['finish_reason'] ?? '');
    const isCut = finishReason === 'length';
    const content = typeof message['content'] === 'string' ? message['content'] : '';
    const isCalling = hasCalls(message);
    const isRefusal = typeof message['refusal'] === 'string' && message['refusal'] !== '';
    if (content !== '' ? finishReason !== 'content_filter' : needsText(isCalling, isRefusal, finishReason)) {
      const healed = healJson(content, kind, isCut, budget);
      found.text(healed.text, healed.steps, healed.isJson, finishReason, isCalling);
      if (healed.text !== content) {
        message['content'] = healed.text;
        isChanged = true;
      }
    }
    isChanged = healCalls(message['tool_calls'], found, budget) || isChanged;
  }
  return { ...found.told(), choices: isChanged ? Buffer.from(JSON.stringify(list)) : choices };
}

/** A chunk as it is passed on to the client. */
export interface HealedChunk {
  readonly choices: Uint8Array;
  readonly content: boolean;
  readonly finish: boolean;
  /** It is the text that was held back until the end of its choice. */
  readonly isRest?: boolean;
}

interface OpenText {
  readonly healer: JsonHealer;
  text: string;
}

interface OpenChoice {
  content: OpenText | undefined;
  /** By index of the call, once its arguments have begun. */
  readonly calls: Map<number, JsonHealer>;
  isCalling: boolean;
  hasRefusal: boolean;
  isFinished: boolean;
}

/** Heals a streamed answer, chunk by chunk. */
export class StreamHealing {
  private readonly choices = new Map<number, OpenChoice>(); // kept: of one answer, and dropped with it.
  private readonly found: Findings;
  private readonly budget = repairBudget();
  /** Characters that are kept until the end. */
  heldChars = 0;

  constructor(private readonly terms: HealingTerms) {
    this.found = new Findings(terms.schema !== undefined);
  }

  /** Reads a canonical chunk; returns the chunks that may be passed on by now. What is held back follows before its choice's finish. */
  push(choices: Buffer): readonly HealedChunk[] {
    const list = JSON.parse(choices.toString('utf8')) as readonly Json[];
    return list.flatMap((item) => this.read(item));
  }

  /** The answer ended; choices without a finish chunk end with `finishReason`. */
  end(finishReason: string): HealedAnswer & { readonly chunks: readonly HealedChunk[] } {
    const chunks: HealedChunk[] = [];
    for (const [index, choice] of this.choices) chunks.push(...this.finish(index, choice, finishReason));
    return { ...this.found.told(), chunks };
  }

  private choiceOf(index: number): OpenChoice {
    let choice = this.choices.get(index);
    if (choice === undefined) this.choices.set(index, (choice = { content: undefined, calls: new Map(), isCalling: false, hasRefusal: false, isFinished: false }));
    return choice;
  }

  private read(item: Json): readonly HealedChunk[] {
    const index = Number(item['index'] ?? 0);
    const choice = this.choiceOf(index);
    const delta = isObject(item['delta']) ? item['delta'] : {};
    const told: Json = { ...delta };
    if (typeof delta['content'] === 'string' && delta['content'] !== '') {
      const given = this.pushText(choice, delta['content']);
      if (given !== '' || delta['role'] !== undefined) told['content'] = given;
      else delete told['content'];
    }
    if (typeof delta['refusal'] === 'string' && delta['refusal'] !== '') choice.hasRefusal = true;
    choice.isCalling ||= hasCalls(delta);
    if (Array.isArray(delta['tool_calls'])) {
      const calls = (delta['tool_calls'] as readonly unknown[]).map((call) => this.pushCall(choice, call)).filter((call) => call !== undefined);
      if (calls.length > 0) told['tool_calls'] = calls;
      else delete told['tool_calls'];
    }
    const reason = item['finish_reason'];
    const isFinish = typeof reason === 'string';
    const says = Object.keys(told).length > 0 || (item['logprobs'] ?? null) !== null;
    const said = says ? [chunkOf({ ...item, delta: told, finish_reason: null })] : [];
    return isFinish ? [...said, ...this.finish(index, choice, reason), chunkOf({ index, delta: {}, logprobs: null, finish_reason: reason })] : said;
  }

  /** The piece of a tool call with those arguments that are certain; undefined = none are. */
  private pushCall(choice: OpenChoice, call: unknown): unknown {
    const called = isObject(call) ? call['function'] : undefined;
    if (!isObject(call) || !isObject(called) || typeof called['arguments'] !== 'string' || called['arguments'] === '') return call;
    const position = Number(call['index'] ?? 0);
    let healer = choice.calls.get(position);
    if (healer === undefined) choice.calls.set(position, (healer = new JsonHealer('object', this.budget)));
    this.heldChars += called['arguments'].length;
    const given = healer.push(called['arguments']);
    if (given === '' && call['id'] === undefined && called['name'] === undefined) return undefined;
    return { ...call, function: { ...called, arguments: given } };
  }

  private pushText(choice: OpenChoice, text: string): string {
    const open = (choice.content ??= { healer: new JsonHealer(this.terms.kind, this.budget), text: '' });
    const given = open.healer.push(text);
    this.heldChars += text.length;
    if (this.terms.schema !== undefined) open.text += given;
    return given;
  }

  private finish(index: number, choice: OpenChoice, finishReason: string): readonly HealedChunk[] {
    if (choice.isFinished) return [];
    choice.isFinished = true;
    const isCut = finishReason === 'length';
    const delta: Json = {};
    const { content, calls, isCalling, hasRefusal } = choice;
    if (content !== undefined) {
      const last = content.healer.finish(isCut);
      if (last.text !== '') delta['content'] = last.text;
      this.found.text(content.text + last.text, last.steps, last.isJson || finishReason === 'content_filter', finishReason, isCalling);
    } else if (needsText(isCalling, hasRefusal, finishReason)) this.found.text('', [], false, finishReason, false);
    const rests: Json[] = [];
    for (const [position, healer] of calls) {
      const last = healer.finish(false);
      this.found.call(last.steps);
      if (last.text !== '') rests.push({ index: position, function: { arguments: last.text } });
    }
    if (rests.length > 0) delta['tool_calls'] = rests;
    return Object.keys(delta).length === 0 ? [] : [{ ...chunkOf({ index, delta, logprobs: null, finish_reason: null }), isRest: true }];
  }
}

function chunkOf(item: Json): HealedChunk {
  const delta = item['delta'] as Json;
  const content = Object.entries(delta).some(([name, value]) => name !== 'role' && value !== '' && value !== null);
  return { choices: Buffer.from(JSON.stringify([item])), content, finish: typeof item['finish_reason'] === 'string' };
}
