/** The answer of one round: passes text on to the client at once, and keeps calls of plugins' tools ("our tools") and the round's end. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Body__Output, Failed__Output } from '@signalbox/contracts/worker';
import type { Answer, ClientListener, Refusal, Route, Settlement } from './answer.js';
import type { Unread } from './reader-pace.js';
import type { ToolCall, ToolImage } from './turn.js';

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly unknown[]).filter(isObject) : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const extraContent = (extra: unknown): Json => (extra === undefined || extra === null ? {} : { extra_content: extra });

/** Fields of reasoning, which are sent back to the model with its own calls. */
const THOUGHTS = ['reasoning', 'reasoning_content'] as const;

/** Bytes of an attempt that are hidden from the client at most, so that an endless call is not kept in memory twice. */
const SILENT_BYTES_MAX = 1 << 20;

export type RoundEnd =
  | { readonly kind: 'stream'; readonly route: Route; readonly finishReason: string; readonly choice: Json; readonly settlement: Settlement }
  | { readonly kind: 'body'; readonly body: Body__Output; readonly settlement: Settlement }
  | { readonly kind: 'cut'; readonly route: Route; readonly failed: Failed__Output; readonly settlement: Settlement | undefined }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What the client has seen so far, over all rounds of a request. */
export interface Shown {
  /** The client has seen text, or calls of its own tools. */
  hasContent: boolean;
  hasRole: boolean;
  /** Calls of the client's tools so far: their indexes are counted without calls of our tools. */
  clientCalls: number;
  route: Route | undefined;
  /** The drain is over: no further round starts, and the figures of the rounds so far are given. */
  isEnding: boolean;
  /** Monotonic milliseconds of the last byte sent. */
  lastSentMs: number;
}

interface GatheredCall {
  id: string;
  name: string;
  arguments: string;
  /** Data that its provider needs back with it, such as a signature of its reasoning. */
  extra: unknown;
  /** Index among the client's calls; undefined = a call of our tools. */
  readonly place: number | undefined;
}

export class RoundAnswer implements Answer {
  end: RoundEnd | undefined;
  private readonly calls = new Map<number, GatheredCall>(); // kept: of one answer, and dropped with it.
  private content = '';
  /** Text of this round reached the client. */
  hasShownWords = false;
  private readonly thoughts: Json = {};
  private readonly details: unknown[] = [];
  private gatheredChars = 0;
  private extra: unknown;

  constructor(
    private readonly inner: Answer,
    private readonly ours: ReadonlySet<string>,
    private readonly shown: Shown,
    private readonly nowMs: () => number,
    /** The answer must be JSON and is healed: text beside a call of our tools is not part of it. */
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
        // The text of earlier rounds is charged at a known cost; of this round the client has none.
        if (!isFollowed) listener.onGone(false);
        return true;
      },
    });
  }

  /** Only notes the route: tool-rounds.ts sends the comments that keep the connection alive. */
  keepAlive(route: Route): void {
    this.shown.route = route;
  }

  /** Calls of our tools are hidden. Once the client has text of an earlier round nothing is, so that an attempt that breaks off is reported as such. */
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

  heldChars(): number {
    return this.gatheredChars + (this.inner.heldChars?.() ?? 0);
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

  abandon(unread: Unread): void {
    this.inner.abandon(unread);
  }

  isGone(): boolean {
    return this.inner.isGone();
  }

  /** Calls of our tools, in the model's order. */
  ourCalls(): readonly ToolCall[] {
    return [...this.calls.values()].filter(({ place }) => place === undefined).map(({ id, name, arguments: text }) => ({ id, name, arguments: text }));
  }

  hasClientCalls(): boolean {
    return [...this.calls.values()].some(({ place }) => place !== undefined);
  }

  /** The model's message of this round, as JSON text for the next one. */
  message(): string {
    const calls = [...this.calls.values()].filter(({ place }) => place === undefined).map(({ id, name, arguments: text, extra }) => ({ id, type: 'function', function: { name, arguments: text }, ...extraContent(extra) }));
    const details = this.details.length === 0 ? {} : { reasoning_details: this.details };
    return JSON.stringify({ role: 'assistant', content: this.content === '' ? null : this.content, ...this.thoughts, ...details, ...extraContent(this.extra), tool_calls: calls });
  }

  /** Takes in a delta; returns the part that the client sees, undefined = none. */
  private take(delta: unknown): Json | undefined {
    if (!isObject(delta)) return undefined;
    const { tool_calls: calls, role, ...rest } = delta;
    this.content += textOf(rest['content']);
    this.gatheredChars += textOf(rest['content']).length;
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

  /** The index of a call among those of the client's tools; undefined for our tools. */
  private takeCall(call: Json, at: number): number | undefined {
    const called = isObject(call['function']) ? call['function'] : {};
    let known = this.calls.get(at);
    if (known === undefined) {
      const name = textOf(called['name']);
      const place = this.ours.has(name) ? undefined : this.shown.clientCalls++;
      this.calls.set(at, (known = { id: textOf(call['id']), name, arguments: '', extra: undefined, place }));
      this.gatheredChars += known.id.length;
    }
    known.arguments += textOf(called['arguments']);
    this.gatheredChars += textOf(called['arguments']).length;
    const extra = call['extra_content'];
    if (known.extra === undefined && extra !== undefined) {
      known.extra = extra;
      this.gatheredChars += JSON.stringify(extra).length;
    }
    return known.place;
  }

  private takeThoughts(said: Json): void {
    for (const name of THOUGHTS) {
      const thought = textOf(said[name]);
      if (thought === '') continue;
      this.thoughts[name] = textOf(this.thoughts[name]) + thought;
      this.gatheredChars += thought.length;
    }
    const details = said['reasoning_details'];
    if (Array.isArray(details)) {
      this.details.push(...(details as readonly unknown[]));
      this.gatheredChars += JSON.stringify(details).length;
    }
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

/** A whole answer without the calls of our tools. */
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

/** Images as parts of a message, behind those that the provider told, as JSON array text (ADR 21). Concatenated as bytes, since they are megabytes, and JSON.stringify would copy them several times. */
function imageParts(images: readonly ToolImage[], told: readonly unknown[] = []): Buffer {
  const lead = JSON.stringify(told).slice(0, -1);
  const parts = images.flatMap(({ mediaType, data }, at) => [
    Buffer.from(`${at + told.length === 0 ? '' : ','}{"type":"image_url","image_url":{"url":"data:${mediaType};base64,`),
    Buffer.from(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'), 'latin1'),
    Buffer.from('"}}'),
  ]);
  return Buffer.concat([Buffer.from(lead), ...parts, Buffer.from(']')]);
}

/** JSON text with its last `null` replaced by `bytes`. */
function withLast(text: string, bytes: Buffer): Buffer {
  const at = text.lastIndexOf('null');
  return Buffer.concat([Buffer.from(text.slice(0, at)), bytes, Buffer.from(text.slice(at + 4))]);
}

/** A whole answer with images in its message. With our tools there is only one choice. */
export function withImages(choices: Uint8Array, images: readonly ToolImage[]): Buffer {
  const [choice = {}] = listOf(JSON.parse(Buffer.from(choices).toString('utf8')));
  const { message, ...rest } = choice;
  const { images: told, ...said } = isObject(message) ? message : {};
  // Nothing may stand behind the `null` that is replaced: what the model said may hold another.
  return withLast(JSON.stringify([{ ...rest, message: { ...said, images: null } }]), imageParts(images, Array.isArray(told) ? told : []));
}

/** A chunk with images only. `hasRole`: the stream has named its role; else the chunk does. */
export function imagesChunk(images: readonly ToolImage[], hasRole: boolean): Buffer {
  const role = hasRole ? {} : { role: 'assistant', content: '' };
  return withLast(JSON.stringify([{ index: 0, logprobs: null, finish_reason: null, delta: { ...role, images: null } }]), imageParts(images));
}
