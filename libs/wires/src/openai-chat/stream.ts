/** The OpenAI wire's stream: bytes in, canonical chunks out. Ordinary content chunks pass without being parsed. */
import { isUtf8 } from 'node:buffer';
import { failure, isObject, type FinishReason, type JsonObject, type StreamEvent, type StreamTransducer, type Usage } from '../canonical.js';
import { createSseParser } from '../sse.js';
import { classifyErrorFrame } from './errors.js';
import { mapFinishReason } from './finish-reason.js';
import { keptFields, readContent, textBytes } from './message.js';
import { createToolCallNumbering, type ToolCallNumbering } from './tool-calls.js';
import { readUsage } from './usage.js';

/**
 * A chunk that is canonical as it stands: one choice with text, no finish, no usage, no error. Everything before
 * `choices` is a flat field, so the match is at top level. Groups: the choices array, index, role, text.
 */
const ORDINARY =
  /^\{(?:"[a-z_]+":(?:"[^"\\]*"|[0-9.]+|null),)*"choices":(\[\{"index":(\d{1,2}),"delta":\{("role":"assistant",)?"content":"([^"\\\x00-\x1f]*(?:\\["\\/bfnrtu][^"\\\x00-\x1f]*)*)"(?:,"refusal":null)?\},(?:"logprobs":null,)?"finish_reason":null\}\])(?:,"(?:usage|error)":null|,"(?:obfuscation|system_fingerprint|service_tier|id|object|model)":"[^"\\]*"|,"service_tier":null|,"created":\d+)*\}$/;
/** Longer chunks are parsed: a pattern over megabytes would hold the loop. */
const ORDINARY_BYTES_MAX = 8_192;
const BAD_UNICODE_ESCAPE = /(?:^|[^\\])(?:\\\\)*\\u(?![0-9a-fA-F]{4})/;
const CHOICES_MAX = 128;

interface OpenChoice {
  hasRole: boolean;
  isFinished: boolean;
  readonly calls: ToolCallNumbering;
}

/** `seed` makes ids for tool calls that came without one. */
export function createChatTransducer(seed: string): StreamTransducer {
  const sse = createSseParser();
  const choices = new Map<number, OpenChoice>();
  let events: StreamEvent[] = [];
  let isOver = false;
  let usage: Usage | undefined;
  let usageUnreadable = false;
  let finishReason: FinishReason | '' = '';
  let outputBytes = 0;
  let contentSeen = false;
  let systemFingerprint = '';
  let serviceTier = '';
  let sawFrame = false;

  const fail = (event: StreamEvent): void => {
    isOver = true;
    events.push(event);
  };
  const choiceOf = (index: number): OpenChoice => {
    let choice = choices.get(index);
    if (choice === undefined) {
      choice = { hasRole: false, isFinished: false, calls: createToolCallNumbering(index === 0 ? seed : `${seed}${String(index)}`) };
      choices.set(index, choice);
    }
    return choice;
  };
  const isFinished = (): boolean => choices.size > 0 && [...choices.values()].every((choice) => choice.isFinished);

  const finishOpen = (reason: FinishReason): StreamEvent | undefined => {
    const open = [...choices].filter(([, choice]) => !choice.isFinished);
    if (open.length === 0) return undefined;
    const closing = open.map(([index, choice]) => {
      choice.isFinished = true;
      const ours = mapFinishReason(reason, choice.calls.count() > 0);
      if (index === 0 || finishReason === '') finishReason = ours;
      return { index, delta: {}, logprobs: null, finish_reason: ours };
    });
    return { type: 'chunk', choices: Buffer.from(JSON.stringify(closing)), content: false, finish: true };
  };

  const finishStream = (): void => {
    if (!sawFrame || choices.size === 0) {
      fail({ type: 'failed', failure: failure('EMPTY', true, 200) });
      return;
    }
    const closing = finishOpen('stop');
    if (closing !== undefined) events.push(closing);
    isOver = true;
    events.push({ type: 'done' });
  };

  const passOrdinary = (data: Buffer): boolean => {
    if (data.length > ORDINARY_BYTES_MAX) return false;
    const text = data.toString('latin1');
    const match = ORDINARY.exec(text);
    if (match === null) return false;
    const [, array = '', index = '0', role, content = ''] = match;
    const choice = choiceOf(Number(index));
    if (choice.isFinished || choice.hasRole === (role !== undefined)) return false;
    if (!isUtf8(data) || (content.includes('\\u') && BAD_UNICODE_ESCAPE.test(content))) return false;
    if (systemFingerprint === '') {
      systemFingerprint = /"system_fingerprint":"([^"\\]*)"/.exec(text)?.[1] ?? '';
      serviceTier = /"service_tier":"([^"\\]*)"/.exec(text)?.[1] ?? '';
    }
    choice.hasRole = true;
    const hasContent = content !== '';
    contentSeen ||= hasContent;
    outputBytes += content.length;
    const start = text.indexOf('"choices":[') + 10;
    events.push({ type: 'chunk', choices: data.subarray(start, start + array.length), content: hasContent, finish: false });
    return true;
  };

  const mapChoice = (raw: JsonObject, position: number): { canonical: object; content: boolean; finish: boolean } | undefined => {
    const index = typeof raw['index'] === 'number' && Number.isInteger(raw['index']) && raw['index'] >= 0 ? raw['index'] : position;
    if (index >= CHOICES_MAX) return undefined;
    const choice = choiceOf(index);
    if (choice.isFinished) return undefined;
    const source = isObject(raw['delta']) ? raw['delta'] : isObject(raw['message']) ? raw['message'] : {};
    const { content, reasoning } = readContent(source['content']);
    const toolCalls = choice.calls.map(source['tool_calls']);
    const told: Record<string, unknown> = { ...(content === undefined || content === null ? {} : { content }), ...(reasoning === '' ? {} : { reasoning_content: reasoning }), ...keptFields(source) };
    const reason = typeof raw['finish_reason'] === 'string' && raw['finish_reason'] !== '' ? mapFinishReason(raw['finish_reason'], choice.calls.count() > 0) : undefined;
    const isFirst = !choice.hasRole;
    const bytes = textBytes(told) + toolCalls.reduce<number>((sum, call) => sum + Buffer.byteLength(JSON.stringify('function' in call ? call.function : '')), 0);
    const hasContent = bytes > 0 || Object.keys(told).some((name) => name !== 'content' && told[name] !== '');
    outputBytes += bytes;
    if (reason === undefined && !isFirst && !hasContent && (raw['logprobs'] === undefined || raw['logprobs'] === null)) return undefined;
    choice.hasRole = true;
    const head = isFirst ? { role: 'assistant', ...(told['content'] === undefined && reason === undefined ? { content: toolCalls.length > 0 ? null : '' } : {}) } : {};
    if (reason !== undefined) {
      choice.isFinished = true;
      if (index === 0 || finishReason === '') finishReason = reason;
    }
    return {
      canonical: { index, delta: { ...head, ...told, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) }, logprobs: raw['logprobs'] ?? null, finish_reason: reason ?? null },
      content: hasContent,
      finish: reason !== undefined,
    };
  };

  const readFrame = (frame: JsonObject): void => {
    if (typeof frame['system_fingerprint'] === 'string') systemFingerprint = frame['system_fingerprint'];
    if (typeof frame['service_tier'] === 'string') serviceTier = frame['service_tier'];
    // Groq's older streams tell usage under x_groq.
    const told = frame['usage'] ?? (isObject(frame['x_groq']) ? frame['x_groq']['usage'] : undefined);
    if (told !== undefined && told !== null) {
      const read = readUsage(told);
      usageUnreadable = read === undefined;
      if (read !== undefined) usage = read;
    }
    const raw = Array.isArray(frame['choices']) ? (frame['choices'] as readonly unknown[]).filter(isObject) : [];
    const isErrorFinish = raw.some((choice) => choice['finish_reason'] === 'error');
    if ((frame['error'] !== undefined && frame['error'] !== null) || isErrorFinish) {
      fail({ type: 'failed', failure: classifyErrorFrame(frame['error'] ?? {}) });
      return;
    }
    const mapped = raw.map(mapChoice).filter((choice) => choice !== undefined);
    if (mapped.length === 0) return;
    const content = mapped.some((choice) => choice.content);
    contentSeen ||= content;
    events.push({ type: 'chunk', choices: Buffer.from(JSON.stringify(mapped.map((choice) => choice.canonical))), content, finish: mapped.some((choice) => choice.finish) });
  };

  const onData = (data: Buffer): void => {
    if (isOver || data.length === 0) return;
    if (passOrdinary(data)) {
      sawFrame = true;
      return;
    }
    const text = data.toString('utf8').trim();
    if (text === '') return;
    if (text === '[DONE]') {
      finishStream();
      return;
    }
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      frame = undefined;
    }
    if (!isObject(frame)) {
      fail({ type: 'failed', failure: failure('GARBAGE', true, 200) });
      return;
    }
    sawFrame = true;
    readFrame(frame);
  };

  const take = (): readonly StreamEvent[] => {
    const taken = events;
    events = [];
    return taken;
  };

  return {
    push: (bytes) => {
      if (isOver) return [];
      if (!sse.push(bytes, onData) && !isOver) fail({ type: 'failed', failure: failure('GARBAGE', true, 200) });
      return take();
    },
    close: () => {
      if (isOver) return [];
      if (!sse.close(onData) && !isOver) fail({ type: 'failed', failure: failure('GARBAGE', true, 200) });
      if (!isOver) {
        if (isFinished()) finishStream();
        else fail({ type: 'failed', failure: failure('DISCONNECTED', true, 200) });
      }
      return take();
    },
    finishOpen,
    summary: () => ({ usage, usageUnreadable, finishReason, outputBytes, contentSeen, isFinished: isFinished(), systemFingerprint, serviceTier }),
  };
}
