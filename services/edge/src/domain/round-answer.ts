/** The answer of one round: text is passed on to the client at once; calls of our own tools are kept here, and so is the way the round ended. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Body__Output, Failed__Output } from '@signalbox/contracts/worker';
import type { Answer, ClientListener, Refusal, Route, Settlement } from './answer.js';
import type { ToolCall, ToolImage } from './turn.js';

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly unknown[]).filter(isObject) : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const extraContent = (extra: unknown): Json => (extra === undefined || extra === null ? {} : { extra_content: extra });

/** Fields of thoughts, which a model is given back with its own calls. */
const THOUGHTS = ['reasoning', 'reasoning_content'] as const;

/** Of an attempt that the client has seen nothing of, this much is kept back: an endless call is not gathered twice. */
const SILENT_BYTES_MAX = 1 << 20;

export type RoundEnd =
  | { readonly kind: 'stream'; readonly route: Route; readonly finishReason: string; readonly choice: Json; readonly settlement: Settlement }
  | { readonly kind: 'body'; readonly body: Body__Output; readonly settlement: Settlement }
  | { readonly kind: 'cut'; readonly route: Route; readonly failed: Failed__Output; readonly settlement: Settlement | undefined }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What the rounds of one request share of what the client has seen. */
export interface Shown {
  /** Words, or calls of the client's own tools. */
  hasContent: boolean;
  hasRole: boolean;
  /** Calls of the client's tools so far: their places are counted without ours. */
  clientCalls: number;
  route: Route | undefined;
  /** The drain is over: no further round is asked, and what the rounds so far come to is told. */
  isEnding: boolean;
  /** Monotonic milliseconds of the last byte. */
  lastSentMs: number;
}

interface GatheredCall {
  id: string;
  name: string;
  arguments: string;
  /** What its provider wants back with it, such as a signature of its thoughts. */
  extra: unknown;
  /** Undefined: a tool of ours. */
  readonly place: number | undefined;
}

export class RoundAnswer implements Answer {
  end: RoundEnd | undefined;
  private readonly calls = new Map<number, GatheredCall>(); // kept: of one answer, and dropped with it.
  private content = '';
  /** Words of this round reached the client. */
  hasShownWords = false;
  private readonly thoughts: Json = {};
  private readonly details: unknown[] = [];
  private extra: unknown;

  constructor(
    private readonly inner: Answer,
    private readonly ours: ReadonlySet<string>,
    private readonly shown: Shown,
    private readonly nowMs: () => number,
    /** The answer is to be JSON, and is healed: what a model says beside a call of ours is no part of it. */
    private readonly isHealed: boolean,
  ) {}

  attend(listener: ClientListener): void {
    const { inner, shown } = this;
    if (shown.isEnding) {
      listener.onGone(false);
      return;
    }
    inner.attend({
      onSlow: (taken) => listener.onSlow(taken),
      onDrain: () => listener.onDrain(),
      onGone: (byItself) => listener.onGone(byItself),
      onStop: () => {
        const isFollowed = listener.onStop?.() === true;
        if (!isFollowed && !shown.hasContent) return false;
        shown.isEnding = true;
        // Words of the rounds before are charged, and what they cost is known; of this one the client has none.
        if (!isFollowed) listener.onGone(false);
        return true;
      },
    });
  }

  /** The loop keeps the client's connection alive by itself: what is silent here need not be silent there. */
  keepAlive(route: Route): void {
    this.shown.route = route;
  }

  /** Calls of our tools are not seen. Once the client has words of an earlier round, what breaks off is told as it is. */
  silence(route: Route): ((choices: Uint8Array) => boolean) | undefined {
    if (this.shown.hasContent) return undefined;
    const { inner, ours, shown, nowMs, isHealed } = this;
    const trial = new RoundAnswer(inner, ours, { ...shown }, nowMs, isHealed);
    let bytes = 0;
    return (choices) => {
      shown.route = route;
      bytes += choices.length;
      const [choice] = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
      return bytes <= SILENT_BYTES_MAX && trial.take(choice?.['delta']) === undefined;
    };
  }

  chunk(route: Route, choices: Uint8Array): void {
    this.shown.route = route;
    const [choice] = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
    if (choice === undefined) return;
    const delta = this.take(choice['delta']);
    if (delta !== undefined) this.show(route, { ...choice, delta });
  }

  finish(route: Route, choices: Uint8Array, settlement: Settlement): void {
    this.shown.route = route;
    const [choice = {}] = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
    const delta = this.take(choice['delta']);
    this.end = { kind: 'stream', route, finishReason: textOf(choice['finish_reason']), choice: { ...choice, delta: delta ?? {} }, settlement };
  }

  cut(route: Route, failed: Failed__Output, settlement: Settlement | undefined): void {
    this.end = { kind: 'cut', route, failed, settlement };
  }

  body(body: Body__Output, settlement: Settlement): void {
    const [choice] = listOf(JSON.parse(Buffer.from(body.choices).toString('utf8')));
    const message = isObject(choice?.['message']) ? choice['message'] : {};
    this.content = textOf(message['content']);
    for (const [at, call] of listOf(message['tool_calls']).entries()) this.takeCall(call, at);
    this.takeThoughts(message);
    this.end = { kind: 'body', body, settlement };
  }

  refuse(refusal: Refusal): void {
    this.end = { kind: 'refused', refusal };
  }

  decided(plan: DecideResponse__Output): void {
    this.inner.decided(plan);
  }

  admitted(admission: AdmitResponse__Output): void {
    this.inner.admitted(admission);
  }

  abandon(): void {
    this.inner.abandon();
  }

  isGone(): boolean {
    return this.inner.isGone();
  }

  /** Calls of our tools, in the order of the model. */
  ourCalls(): readonly ToolCall[] {
    return [...this.calls.values()].filter(({ place }) => place === undefined).map(({ id, name, arguments: text }) => ({ id, name, arguments: text }));
  }

  hasClientCalls(): boolean {
    return [...this.calls.values()].some(({ place }) => place !== undefined);
  }

  /** The model's own message of this round, for the next one: JSON text. */
  message(): string {
    const calls = [...this.calls.values()].filter(({ place }) => place === undefined).map(({ id, name, arguments: text, extra }) => ({ id, type: 'function', function: { name, arguments: text }, ...extraContent(extra) }));
    const details = this.details.length === 0 ? {} : { reasoning_details: this.details };
    return JSON.stringify({ role: 'assistant', content: this.content === '' ? null : this.content, ...this.thoughts, ...details, ...extraContent(this.extra), tool_calls: calls });
  }

  /** Gathers a delta; what of it the client is to see, undefined when nothing. */
  private take(delta: unknown): Json | undefined {
    if (!isObject(delta)) return undefined;
    const { tool_calls: calls, role, ...rest } = delta;
    this.content += textOf(rest['content']);
    this.takeThoughts(rest);
    const theirs = listOf(calls).flatMap((call) => {
      const at = typeof call['index'] === 'number' ? call['index'] : this.calls.size;
      const place = this.takeCall(call, at);
      return place === undefined ? [] : [{ ...call, index: place }];
    });
    if (this.isHealed && this.ourCalls().length > 0 && !this.hasClientCalls()) delete rest['content'];
    this.hasShownWords ||= textOf(rest['content']) !== '';
    const says = Object.values(rest).some((value) => value !== null && value !== '' && value !== undefined);
    if (!says && theirs.length === 0) return undefined;
    const shownRole = this.shown.hasRole || role === undefined ? {} : { role };
    return { ...shownRole, ...rest, ...(theirs.length === 0 ? {} : { tool_calls: theirs }) };
  }

  /** The place of a call of the client's tools among the client's calls; undefined for ours. */
  private takeCall(call: Json, at: number): number | undefined {
    const called = isObject(call['function']) ? call['function'] : {};
    let known = this.calls.get(at);
    if (known === undefined) {
      const name = textOf(called['name']);
      const place = this.ours.has(name) ? undefined : this.shown.clientCalls++;
      this.calls.set(at, (known = { id: textOf(call['id']), name, arguments: '', extra: undefined, place }));
    }
    known.arguments += textOf(called['arguments']);
    known.extra ??= call['extra_content'];
    return known.place;
  }

  private takeThoughts(said: Json): void {
    for (const name of THOUGHTS) if (typeof said[name] === 'string') this.thoughts[name] = textOf(this.thoughts[name]) + said[name];
    if (Array.isArray(said['reasoning_details'])) this.details.push(...(said['reasoning_details'] as readonly unknown[]));
    this.extra = said['extra_content'] ?? this.extra;
  }

  private show(route: Route, choice: Json): void {
    const { shown } = this;
    const delta = choice['delta'] as Json;
    const whole = shown.hasRole ? choice : { ...choice, delta: { role: 'assistant', ...delta } };
    shown.hasRole = true;
    shown.hasContent = true;
    shown.lastSentMs = this.nowMs();
    this.inner.chunk(route, Buffer.from(JSON.stringify([whole])));
  }
}

/** A whole answer without the calls of our tools, which the client knows nothing of. */
export function withoutCalls(choices: Uint8Array, ours: ReadonlySet<string>, finishReason?: string): Buffer {
  const list = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
  return Buffer.from(
    JSON.stringify(
      list.map((choice) => {
        const { tool_calls: calls, ...message } = isObject(choice['message']) ? choice['message'] : {};
        const theirs = listOf(calls).filter((call) => !ours.has(isObject(call['function']) ? textOf(call['function']['name']) : ''));
        const content = theirs.length === 0 && message['content'] === null ? '' : message['content'];
        return { ...choice, message: { ...message, content, ...(theirs.length === 0 ? {} : { tool_calls: theirs }) }, ...(finishReason === undefined ? {} : { finish_reason: finishReason }) };
      }),
    ),
  );
}

/** Images as parts of a message, JSON array text (contract, section 9). Put together from bytes: as values they would be copied several times, and they are megabytes. */
function imageParts(images: readonly ToolImage[]): Buffer {
  const parts = images.flatMap(({ mediaType, data }, at) => [
    Buffer.from(`${at === 0 ? '' : ','}{"type":"image_url","image_url":{"url":"data:${mediaType};base64,`),
    Buffer.from(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'), 'latin1'),
    Buffer.from('"}}'),
  ]);
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]);
}

/** JSON text with `bytes` in the place of the null that its last field is. */
function withLast(text: string, bytes: Buffer): Buffer {
  const at = text.lastIndexOf('null');
  return Buffer.concat([Buffer.from(text.slice(0, at)), bytes, Buffer.from(text.slice(at + 4))]);
}

/** A whole answer with images in its message. There is one choice where tools of ours are offered. */
export function withImages(choices: Uint8Array, images: readonly ToolImage[]): Buffer {
  const [choice = {}] = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
  const { message, ...rest } = choice;
  return withLast(JSON.stringify([{ ...rest, message: { ...(isObject(message) ? message : {}), images: null } }]), imageParts(images));
}

/** A chunk of them alone; `role` where it is the first of its stream. */
export function imagesChunk(images: readonly ToolImage[], hasRole: boolean): Buffer {
  const role = hasRole ? {} : { role: 'assistant', content: '' };
  return withLast(JSON.stringify([{ index: 0, logprobs: null, finish_reason: null, delta: { ...role, images: null } }]), imageParts(images));
}
