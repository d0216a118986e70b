/** The OpenAI wire's stream: bytes in, canonical chunks out. Ordinary content chunks pass without being parsed. */
import { createArgumentsCount, emptiedByPolicy, failure, Garbage, isGarbage, isObject, labelOf, modelsFault, promptOf, type Failure, type FinishReason, type JsonObject, type StreamEvent, type StreamSummary, type StreamTransducer } from '../canonical.js';
import { finishWithCalls, isCutShort } from '../choice-parts.js';
import { withEnds, type ChoiceEnd } from '../ended-choices.js';
import { EVENT_BOUNDS, isWithin } from '../json-bounds.js';
import { elementsOf, sourceOf } from '../json-source.js';
import { createSseParser, type SseParser } from '../sse.js';
import { Envelope, recognise, type TextPiece } from './envelope.js';
import { classifyErrorFrame, errorIn } from './errors.js';
import { isFinishReason, isModelsFault, mapFinishReason } from './finish-reason.js';
import { decodedBytes } from './json-text.js';
import { keptFields, readContent, textBytes, thoughtBytes, toldCallBytes, withArgumentTexts, type ToldCall } from './message.js';
import { sourcesOf } from './sources.js';
import { Told } from './told.js';
import { createToolCallNumbering, finishOf, type ToolCallNumbering } from './tool-calls.js';
import { readUsage } from './usage.js';

const CHOICES_MAX = 128;
/** A chunk of more is no piece of a text: it is counted before it is read. */
const PASSED_BYTES_MAX = 65_536;
const DONE = Buffer.from('[DONE]');
const NO_EVENTS: readonly StreamEvent[] = [];

interface OpenChoice {
  hasRole: boolean;
  /** The last one told; undefined = none yet. */
  reason: FinishReason | undefined;
  /** It has a reason, and has generated nothing since. */
  isFinished: boolean;
  /** Its reason was told to the client: it says nothing more. */
  isClosed: boolean;
  /** Made when the first tool call comes. */
  calls: ToolCallNumbering | undefined;
}

class ChatTransducer implements StreamTransducer {
  private readonly told = new Told();
  private readonly sse: SseParser;
  private readonly choices = new Map<number, OpenChoice>();
  private readonly countArguments = createArgumentsCount();
  private finishedChoices = 0;
  private events: StreamEvent[] = [];
  private isOver = false;
  /** The source has ended: an event that nobody can read broke off. */
  private isClosing = false;
  /** An error: nothing more is said, and usage may follow, which is what it cost. */
  private failing: Failure | undefined;
  private hasFrames = false;
  /** A frame came that is neither chunk nor usage nor a known error: perhaps an error of no known shape. */
  private hasOddFrame = false;
  /** A choice went on after its finish: the host's word that one is over does not say so. */
  private isFinishEarly = false;
  /** Told at the end: each chunk names those so far. */
  private sources: readonly JsonObject[] | undefined;
  private hasAnnotations = false;
  /** Bytes of output when usage was last told: while more follows it is not final. */
  private usageAtBytes = Infinity;
  /** Of the newest chunk that the pattern recognised, and the choice it belongs to. */
  private envelope: Envelope | undefined;
  private envelopeChoice: OpenChoice | undefined;
  /** Texts in that envelope that came one after the other in one read: given on as one. */
  private texts: TextPiece[] = [];

  constructor(
    private readonly seed: string,
    private readonly choicesAsked: number,
    private readonly tellsCost: boolean,
  ) {
    this.sse = createSseParser((bytes, from, to) => this.onData(bytes, from, to));
  }

  push(bytes: Uint8Array): readonly StreamEvent[] {
    if (this.isOver) return NO_EVENTS;
    if (!this.sse.push(bytes) && !this.isOver) this.fail('GARBAGE');
    return this.take();
  }

  close(): readonly StreamEvent[] {
    if (this.isOver) return NO_EVENTS;
    this.isClosing = true;
    if (!this.sse.close() && !this.isOver) this.fail('GARBAGE');
    if (!this.isOver) {
      if (this.areAllFinished()) this.finishStream();
      else this.fail('DISCONNECTED');
    }
    return this.take();
  }

  finishOpen(reason: FinishReason): StreamEvent | undefined {
    const broken = this.failing ?? this.emptied();
    if (broken === undefined) return this.closing((choice) => (choice.isFinished ? choice.reason : undefined) ?? reason);
    return this.filtered() ?? { type: 'failed', failure: broken };
  }

  finishEnded(): StreamEvent | undefined {
    return this.finishedChoices < Math.max(this.choices.size, this.choicesAsked) ? this.closing((choice) => (choice.isFinished ? choice.reason : undefined)) : undefined;
  }

  summary(): StreamSummary {
    return this.told;
  }

  /** A choice of no reason stays open. */
  private closing(reasonOf: (choice: OpenChoice) => FinishReason | undefined): StreamEvent | undefined {
    const closing: object[] = [];
    for (const [index, choice] of this.choices) {
      const given = choice.isClosed ? undefined : reasonOf(choice);
      if (given === undefined) continue;
      const reason = finishOf(given, choice.calls);
      const calls = choice.calls?.close(isCutShort(reason)) ?? [];
      const head = choice.hasRole ? {} : { role: 'assistant', content: '' };
      choice.hasRole = true;
      choice.isClosed = true;
      this.finishChoice(index, choice, reason);
      const sources = index === 0 && !this.hasAnnotations ? this.sources : undefined;
      closing.push({ index, delta: { ...head, ...(sources === undefined ? {} : { annotations: sources }), ...(calls.length > 0 ? { tool_calls: calls } : {}) }, logprobs: null, finish_reason: reason });
    }
    if (closing.length === 0) return undefined;
    this.told.isFinished = this.areAllFinished();
    return { type: 'chunk', choices: Buffer.from(JSON.stringify(closing)), content: false, finish: true };
  }

  /** A policy stopped an answer in the middle. That ends it, unless a call is only half told: nobody can say what it would have been. */
  private isFiltered(): boolean {
    return this.failing?.class === 'CONTENT_POLICY' && this.told.contentSeen && [...this.choices.values()].every(({ reason, calls }) => reason !== 'error' && (calls?.areWhole() ?? true));
  }

  private filtered(): StreamEvent | undefined {
    const areAllFinished = this.areAllFinished();
    return this.isFiltered() ? this.closing((choice) => (choice.isFinished && !areAllFinished ? choice.reason : undefined) ?? 'content_filter') : undefined;
  }

  private areAllFinished(): boolean {
    return this.finishedChoices > 0 && this.finishedChoices === this.choices.size;
  }

  private take(): readonly StreamEvent[] {
    this.giveTexts();
    const { events, told } = this;
    if (told.outputBytes > this.usageAtBytes) {
      told.usage = undefined;
      this.usageAtBytes = Infinity;
    }
    this.events = [];
    return this.choicesAsked > 1 ? withEnds(events, this.ends(), Math.max(this.choices.size, this.choicesAsked)) : events;
  }

  private ends(): readonly ChoiceEnd[] {
    return [...this.choices].flatMap(([index, { reason, hasRole, isFinished, isClosed, calls }]): readonly ChoiceEnd[] => (reason !== undefined && hasRole && isFinished && !isClosed && (calls?.areWhole() ?? true) ? [[index, finishWithCalls(reason, calls?.count() ?? 0)]] : []));
  }

  private give(event: StreamEvent): void {
    this.giveTexts();
    this.events.push(event);
  }

  private fail(failureClass: 'GARBAGE' | 'DISCONNECTED' | 'EMPTY'): void {
    this.failAs(this.failing ?? failure(failureClass, true, 200));
  }

  private failAs(reason: Failure): void {
    const last = this.filtered();
    this.isOver = true;
    if (last !== undefined) this.give(last);
    this.give(last === undefined ? { type: 'failed', failure: reason } : { type: 'done' });
  }

  private finishStream(): void {
    if (this.failing !== undefined) {
      this.failAs(this.failing);
      return;
    }
    if (!this.hasFrames || this.choices.size === 0) {
      this.fail('EMPTY');
      return;
    }
    const open = [...this.choices.values()].filter(({ reason }) => reason === undefined);
    // vLLM says that a stream is over whatever became of it, and so do some gateways: that it said nothing is no answer.
    if (open.length === this.choices.size && !this.told.contentSeen && !open.some(({ calls }) => calls?.hasUntold() === true)) {
      this.fail('EMPTY');
      return;
    }
    if ((this.hasOddFrame && !this.areAllFinished()) || open.some(({ calls }) => calls?.isCutShort() === true)) {
      this.fail('DISCONNECTED');
      return;
    }
    const emptied = this.emptied();
    const closing = emptied === undefined ? this.closing(({ reason }) => reason ?? 'stop') : undefined;
    if (closing !== undefined) this.give(closing);
    this.isOver = true;
    this.give(emptied === undefined ? { type: 'done' } : { type: 'failed', failure: emptied });
  }

  /** Why nothing is left of an answer; undefined where something is, or it was empty from the first. */
  private emptied(): Failure | undefined {
    const all = [...this.choices.values()];
    if (this.told.contentSeen || all.length === 0) return undefined;
    if (all.every(({ reason }) => reason === 'content_filter')) return emptiedByPolicy();
    return all.some(({ calls }) => calls?.hasUntold() === true) ? failure('GARBAGE', true, 200) : undefined;
  }

  private onData(bytes: Buffer, from: number, to: number): void {
    if (this.isOver || to === from) return;
    if (this.failing === undefined && (this.passText(bytes, from, to) || this.passOrdinary(bytes, from, to))) {
      this.hasFrames = true;
      return;
    }
    if (to - from === DONE.length && bytes.compare(DONE, 0, DONE.length, from, to) === 0) {
      this.finishStream();
      return;
    }
    if (!isWithin(bytes, from, to, EVENT_BOUNDS)) {
      this.fail('GARBAGE');
      return;
    }
    const text = bytes.toString('utf8', from, to).trim();
    if (text === '') return;
    if (text === '[DONE]') {
      this.finishStream();
      return;
    }
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      frame = undefined;
    }
    if (!isObject(frame)) {
      // What broke off behind the answer was usage or the last word, unless it was more of a choice.
      if (!this.isClosing || !this.told.isFinished || text.includes('"delta"')) this.fail('GARBAGE');
      return;
    }
    this.hasFrames = true;
    try {
      this.readFrame(frame, text);
    } catch (error) {
      if (!isGarbage(error)) throw error;
      this.fail('GARBAGE');
    }
  }

  /** A chunk in the known envelope. */
  private passText(bytes: Buffer, from: number, to: number): boolean {
    const { envelope, envelopeChoice } = this;
    if (envelope === undefined || envelopeChoice === undefined || envelopeChoice.isFinished) return false;
    const textTo = to - from > PASSED_BYTES_MAX ? -1 : envelope.textTo(bytes, from, to);
    if (textTo === -1) return false;
    const textFrom = envelope.textFrom(from);
    this.texts.push({ bytes, from: textFrom, to: textTo });
    this.countText(decodedBytes(bytes, textFrom, textTo));
    return true;
  }

  private giveTexts(): void {
    const { envelope, texts } = this;
    if (texts.length === 0 || envelope === undefined) return;
    this.texts = [];
    this.events.push({ type: 'chunk', choices: envelope.choices(texts), content: texts.some(({ from, to }) => to > from), finish: false });
  }

  /** A chunk that is canonical as it stands. */
  private passOrdinary(bytes: Buffer, from: number, to: number): boolean {
    const ordinary = recognise(bytes, from, to);
    if (ordinary === undefined) return false;
    const choice = this.choiceOf(ordinary.index);
    if (choice.isFinished || choice.hasRole === ordinary.hasRole) return false;
    const { told } = this;
    if (told.systemFingerprint === '') {
      told.systemFingerprint = labelOf(ordinary.systemFingerprint);
      told.serviceTier = labelOf(ordinary.serviceTier) || told.serviceTier;
    }
    choice.hasRole = true;
    const { choicesFrom, choicesTo, textFrom, textTo } = ordinary;
    this.give({ type: 'chunk', choices: bytes.subarray(choicesFrom, choicesTo), content: textTo > textFrom, finish: false });
    this.countText(decodedBytes(bytes, textFrom, textTo));
    if (!ordinary.hasRole) {
      this.envelope = new Envelope(bytes, from, to, ordinary);
      this.envelopeChoice = choice;
    }
    return true;
  }

  private countText(length: number): void {
    this.told.outputBytes += length;
    this.told.contentSeen ||= length > 0;
  }

  private readFrame(frame: JsonObject, text: string): void {
    const { told } = this;
    const saidBefore = told.outputBytes;
    this.readParts(frame, text);
    // Hosts that tell a finish and usage with every chunk have said something in it.
    told.isComplete = told.isFinished && told.usage !== undefined && this.usageAtBytes === told.outputBytes && told.outputBytes === saidBefore;
  }

  private readParts(frame: JsonObject, text: string): void {
    const { told } = this;
    told.systemFingerprint = labelOf(frame['system_fingerprint']) || told.systemFingerprint;
    told.serviceTier = labelOf(frame['service_tier']) || told.serviceTier;
    const raw = Array.isArray(frame['choices']) ? (frame['choices'] as readonly unknown[]).filter(isObject) : [];
    // Groq's older streams tell usage under x_groq, Moonshot's within the choice that ends: of several each would tell its own.
    const usage = frame['usage'] ?? (isObject(frame['x_groq']) ? frame['x_groq']['usage'] : undefined) ?? (this.choicesAsked === 1 ? raw[0]?.['usage'] : undefined);
    const read = usage === undefined || usage === null ? undefined : readUsage(usage, this.tellsCost);
    if (usage !== undefined && usage !== null) told.usageUnreadable = read === undefined;
    if (read !== undefined) {
      told.usage = read;
      told.promptUsage = promptOf(read) ?? told.promptUsage;
      this.usageAtBytes = told.outputBytes;
    }
    const broken = raw.filter((choice) => isFinishReason(choice['finish_reason']) && mapFinishReason(choice['finish_reason'], false) === 'error');
    const isErrorFinish = broken.length > 0;
    const error = errorIn(frame);
    if (error !== undefined || isErrorFinish) this.failing ??= isErrorFinish && broken.every(isModelsFault) ? modelsFault() : classifyErrorFrame(error ?? {});
    if (this.failing !== undefined) {
      // Usage comes with the finish or behind it; an error without a finish is the last that comes, but for that of a policy.
      if (read !== undefined || (error !== undefined && !isErrorFinish && !this.isFiltered())) this.failAs(this.failing);
      told.isFinished = true;
      return;
    }
    if (!Array.isArray(frame['choices']) && !isObject(usage)) this.hasOddFrame = true;
    this.sources = sourcesOf(frame) ?? this.sources;
    let elements: readonly string[] | undefined;
    const textOf = (position: number): string => (elements ??= elementsOf(text, ['choices']).filter((_text, at) => isObject((frame['choices'] as readonly unknown[])[at])))[position] ?? '{}';
    const mapped = raw.map((choice, position) => this.mapChoice(choice, position, (path) => sourceOf(textOf(position), path))).filter((choice) => choice !== undefined);
    // Usage told with the last of the output is final.
    if (read !== undefined) this.usageAtBytes = told.outputBytes;
    if (mapped.length === 0) return;
    const content = mapped.some((choice) => choice.content);
    told.contentSeen ||= content;
    this.give({ type: 'chunk', choices: Buffer.from(JSON.stringify(mapped.map((choice) => choice.canonical))), content, finish: false });
  }

  /** `textOf` gives JSON text of the choice. A finish reason is not told on before the stream's end: its choice may have more to say. */
  private mapChoice(raw: JsonObject, position: number, textOf: (path: readonly string[]) => string | undefined): { canonical: object; content: boolean } | undefined {
    const index = typeof raw['index'] === 'number' && Number.isInteger(raw['index']) && raw['index'] >= 0 ? raw['index'] : position;
    if (index >= CHOICES_MAX) return undefined;
    const choice = this.choiceOf(index);
    if (choice.isClosed) return undefined;
    // A message behind the finish is the whole of what was said.
    // What a completions endpoint answers: its words stand where no chat has any.
    if (typeof raw['text'] === 'string' && raw['text'] !== '' && !isObject(raw['delta']) && !isObject(raw['message'])) throw new Garbage('Text outside of a message.');
    const source = isObject(raw['delta']) ? raw['delta'] : isObject(raw['message']) && !choice.isFinished ? raw['message'] : {};
    const { content, reasoning } = readContent(source['content']);
    const toolCalls = this.mapCalls(index, choice, withArgumentTexts(source['tool_calls'], () => textOf([source === raw['delta'] ? 'delta' : 'message', 'tool_calls'])));
    const told: Record<string, unknown> = { ...(content === undefined || content === null ? {} : { content }), ...(reasoning === '' ? {} : { reasoning_content: reasoning }), ...keptFields(source) };
    this.hasAnnotations ||= Array.isArray(told['annotations']) && told['annotations'].length > 0;
    const isFirst = !choice.hasRole;
    const thoughts = thoughtBytes(told);
    const bytes = textBytes(told) + thoughts + toldCallBytes(toolCalls);
    const isSaying = bytes > 0 || toolCalls.length > 0;
    const hasContent = isSaying || Object.entries(told).some(([name, value]) => name !== 'content' && value !== '' && !(Array.isArray(value) && value.length === 0));
    this.told.outputBytes += bytes;
    this.told.thoughtBytes += thoughts;
    if (isSaying && choice.isFinished) this.reopen(choice);
    if (isFinishReason(raw['finish_reason'])) this.finishChoice(index, choice, mapFinishReason(raw['finish_reason'], callCount(choice) > 0));
    if (!isFirst && !hasContent && (raw['logprobs'] === undefined || raw['logprobs'] === null)) return undefined;
    choice.hasRole = true;
    const head = isFirst ? { role: 'assistant', ...(told['content'] === undefined ? { content: toolCalls.length > 0 ? null : '' } : {}) } : {};
    return {
      canonical: { index, delta: { ...head, ...told, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) }, logprobs: raw['logprobs'] ?? null, finish_reason: null },
      content: hasContent,
    };
  }

  private mapCalls(index: number, choice: OpenChoice, raw: unknown): readonly ToldCall[] {
    if (!Array.isArray(raw) || raw.length === 0) return [];
    choice.calls ??= createToolCallNumbering(index === 0 ? this.seed : `${this.seed}${String(index)}`, this.countArguments);
    return choice.calls.map(raw);
  }

  private choiceOf(index: number): OpenChoice {
    let choice = this.choices.get(index);
    if (choice === undefined) {
      choice = { hasRole: false, reason: undefined, isFinished: false, isClosed: false, calls: undefined };
      this.choices.set(index, choice);
      this.told.isFinished = false;
    }
    return choice;
  }

  private finishChoice(index: number, choice: OpenChoice, reason: FinishReason): void {
    choice.reason = reason;
    if (!choice.isFinished) this.finishedChoices += 1;
    choice.isFinished = true;
    this.told.isFinished = this.areAllFinished() && this.finishedChoices >= this.choicesAsked && !this.isFinishEarly;
    if (index === 0 || this.told.finishReason === '') this.told.finishReason = reason;
  }

  private reopen(choice: OpenChoice): void {
    choice.isFinished = false;
    this.finishedChoices -= 1;
    this.isFinishEarly = true;
    this.told.isFinished = false;
  }
}

function callCount({ calls }: OpenChoice): number {
  return calls?.count() ?? 0;
}

/** `seed` makes ids for tool calls that came without one. `choicesAsked`: fewer than those do not make a stream finished. `tellsCost`: of the host. */
export function createChatTransducer(seed: string, choicesAsked = 1, tellsCost = false): StreamTransducer {
  return new ChatTransducer(seed, choicesAsked, tellsCost);
}
