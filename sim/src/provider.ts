/** A provider with the OpenAI wire that misbehaves and keeps its own bill. */
import { assert } from '@signalbox/kernel/assert';
import type { NanoUsd } from '@signalbox/kernel/money';
import { cardFor, costOf, NO_TOKENS, promptTokens, type PriceCard, type PriceStep, type TokenCounts } from '@signalbox/kernel/tokens';
import type { Upstream, UpstreamCall, UpstreamListener } from '@signalbox/worker-kit/proof';
import type { Life } from './life.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';
import { letterOf, wordsOf } from './words.js';

/** `whole`: a correct answer; each of the others fails in its own way. */
export type Conduct = 'whole' | 'refuse' | 'unconnected' | 'silent' | 'cut' | 'stall' | 'early-cut';
export type UsageConduct = 'told' | 'missing' | 'twice' | 'absurd' | 'zero';

/** One line of the provider's own bill. */
export interface BillLine {
  /** `request/attempt`. */
  readonly id: string;
  readonly provider: string;
  readonly conduct: Conduct;
  readonly usage: UsageConduct;
  /** Prompt tokens as counted by the provider. */
  readonly promptTokens: number;
  /** Output tokens generated so far. */
  generated: number;
  /** Bytes of text sent. */
  sentBytes: number;
  /** Billed cost, for what was reported or generated. */
  cost: NanoUsd;
  /** Requested maximum of output tokens; undefined = no bound. */
  readonly asked: number | undefined;
  /** Tokens per chunk of a stream. */
  readonly chunkTokens: number;
  /** The final usage was sent. */
  isTold: boolean;
  /** The answer calls tools. */
  isCall: boolean;
  /** The answer was sent completely. */
  isWhole: boolean;
  /** The worker received a status. */
  isHeaded: boolean;
  /** When the worker abandoned it or noticed that it broke, in virtual milliseconds. */
  endedAtMs: number | undefined;
}

interface Script {
  readonly conduct: Conduct;
  readonly usage: UsageConduct;
  readonly outputTokens: number;
  readonly chunkTokens: number;
  readonly bytesPerToken: number;
  readonly pauseMs: number;
  /** Milliseconds from the complete request to the head of the answer. */
  readonly thinksMs: number;
  readonly breakAfterChunks: number;
  /** Tools that the answer calls; there may be text before. */
  readonly calls: readonly string[];
  readonly saysFirst: boolean;
  /** For a request that asks for JSON: whether the answer is JSON. */
  readonly isJson: boolean;
}

type Length = Pick<Script, 'outputTokens' | 'chunkTokens' | 'bytesPerToken' | 'pauseMs' | 'thinksMs' | 'breakAfterChunks'>;

/** A request to the provider. */
interface Ask {
  readonly stream: boolean;
  readonly maxTokens: number | undefined;
  readonly promptBytes: number;
  /** Tools that the answer may call. */
  readonly tools: readonly string[];
  readonly wantsJson: boolean;
}

/** Initial size of a hold in tokens; the hold of a longer answer grows. */
export const TRANCHE_TOKENS = 1_024;
/** The model's own bound, if the client sets none. */
const MODEL_OUTPUT_MAX = 8_192;
/** Longest time for a connection; below, the longest in some cases. */
const CONNECT_MS = 5;
const SLOW_CONNECT_MS = 600;
const SLOW_CONNECT_SHARE = 0.2;
const REFUSALS = [429, 500, 503, 400] as const;

const thinksMsOf = (random: Random): number => (random.chance(0.4) ? random.int(1, 1_500) : 0);
const sse = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const DONE = Buffer.from('data: [DONE]\n\n');
const chunkOf = (delta: object, finishReason: string | null): Buffer => sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] });
const finishOf = ({ generated, asked, isCall }: BillLine): string => (generated === asked ? 'length' : isCall ? 'tool_calls' : 'stop');
const usageOf = (prompt: number, completion: number): object => ({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion });

export class SimProvider {
  readonly bill = new Map<string, BillLine>();
  /** Requests that reached the provider. */
  readonly reached = new Set<string>();
  /** If true, answers outgrow their first hold where the request permits it. */
  isLong = false;
  /** Attempts that reached the provider twice. */
  readonly doubles: string[] = [];
  isCalm = false;
  /** Called when the head of a stream has arrived; returns the milliseconds until its first text. */
  onHeaded: (id: string) => number = () => 0;

  constructor(
    readonly name: string,
    readonly prices: readonly PriceStep[],
    private readonly scheduler: Scheduler,
    private readonly random: Random,
  ) {}

  /** The upstream to the provider from one process. */
  upstreamFor(life: Life): Upstream {
    return {
      post: (request, requestId, listener) => {
        const call = new Call(this, this.scheduler, this.random, life, listener);
        if (!life.isDead) this.scheduler.at(this.random.next() * (this.random.chance(SLOW_CONNECT_SHARE) ? SLOW_CONNECT_MS : CONNECT_MS), () => life.run(() => this.connect(requestId, request.body, call)));
        return call;
      },
      close: () => Promise.resolve(),
    };
  }

  costOf(tokens: TokenCounts): NanoUsd {
    return costOf(tokens, this.cardFor(promptTokens(tokens)));
  }

  cardFor(prompt: number): PriceCard {
    const card = cardFor(this.prices, prompt);
    assert(card !== undefined, 'The first step is from 0.');
    return card;
  }

  /** Connects and writes the request: once written it arrives, even if the caller hangs up now. */
  private connect(id: string, body: Uint8Array, call: Call): void {
    if (call.isGone) return;
    const ask = readAsk(body);
    const script = this.scriptOf(ask);
    if (script.conduct === 'unconnected') {
      this.scheduler.at(1, () => call.tell((listener) => listener.onError('connect')));
      return;
    }
    if (this.bill.has(id)) this.doubles.push(id);
    const promptTokens = this.random.int(1, Math.max(1, ask.promptBytes));
    const isBilled = script.conduct !== 'refuse';
    const cost = this.costOf(isBilled ? { ...NO_TOKENS, inputUncached: promptTokens } : NO_TOKENS);
    const line: BillLine = { id, provider: this.name, conduct: script.conduct, usage: script.usage, promptTokens, generated: 0, sentBytes: 0, cost, asked: ask.maxTokens, chunkTokens: script.chunkTokens, isTold: false, isCall: false, isWhole: false, isHeaded: false, endedAtMs: undefined };
    this.bill.set(id, line);
    call.line = line;
    call.tell((listener) => listener.onSent?.());
    this.scheduler.at(1, () => this.arrive(line, script, ask, call));
  }

  private arrive(line: BillLine, script: Script, { stream, maxTokens: asked }: Ask, call: Call): void {
    const { id } = line;
    this.reached.add(id.slice(0, id.indexOf('/')));
    this.scheduler.say(() => `${this.name} gets ${id}: ${script.conduct}, usage ${script.usage}, ${script.outputTokens} of ${asked ?? '∞'} tokens${script.calls.length === 0 ? '' : `, calls ${script.calls.join(' and ')}`}`);
    this.scheduler.at(script.thinksMs, () => call.begin(line, script, stream));
  }

  private scriptOf({ stream: isStream, maxTokens: asked, tools, wantsJson }: Ask): Script {
    const { random, isCalm } = this;
    const conduct = isCalm || random.chance(0.62) ? 'whole' : random.pick<Conduct>(['refuse', 'refuse', 'unconnected', 'silent', 'cut', 'cut', 'stall', 'early-cut']);
    const usage = random.chance(0.7) ? 'told' : random.pick<UsageConduct>(['missing', 'missing', 'twice', 'absurd', 'zero']);
    const calls = tools.length > 0 && random.chance(0.8) ? Array.from({ length: random.int(1, 2) }, () => random.pick(tools)) : [];
    const says = { calls, saysFirst: calls.length > 0 && random.chance(0.5), isJson: wantsJson && random.chance(0.45) };
    if (this.isLong && isStream && asked !== undefined && asked > TRANCHE_TOKENS) return { conduct, usage, ...says, ...this.longAnswer(asked) };
    // An answer that calls tools gets enough tokens for the calls.
    const outputTokens = Math.min(random.int(1, 400), calls.length > 0 ? Math.max(1, (asked ?? MODEL_OUTPUT_MAX) - 1) : (asked ?? MODEL_OUTPUT_MAX));
    return { conduct, usage, ...says, outputTokens, chunkTokens: Math.max(1, Math.ceil(outputTokens / random.int(1, 5))), bytesPerToken: random.int(2, 7), pauseMs: random.int(1, 400), thinksMs: thinksMsOf(random), breakAfterChunks: random.int(1, 3) };
  }

  /** Ordinary text: three bytes per token or more, mostly in small chunks. */
  private longAnswer(asked: number): Length {
    const { random } = this;
    const outputTokens = Math.min(random.int(600, 4_500), asked);
    return { outputTokens, chunkTokens: random.chance(0.85) ? random.int(30, 64) : random.int(65, 200), bytesPerToken: random.int(3, 7), pauseMs: random.int(5, 120), thinksMs: 0, breakAfterChunks: random.int(1, 40) };
  }
}

interface WireBody {
  readonly stream?: boolean;
  readonly max_tokens?: number;
  readonly messages?: readonly { readonly content: string | null }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly tool_choice?: unknown;
  readonly response_format?: object;
}

function readAsk(body: Uint8Array): Ask {
  const { stream = false, max_tokens: maxTokens, messages: [first, ...others] = [], tools = [], tool_choice: choice, response_format: format } = JSON.parse(Buffer.from(body).toString('utf8')) as WireBody;
  const promptBytes = (first?.content?.length ?? 0) + others.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
  return { stream, maxTokens, promptBytes, tools: choice === 'none' ? [] : tools.map((tool) => tool.function.name), wantsJson: format !== undefined };
}

class Call implements UpstreamCall {
  isOver = false;
  isGone = false;
  /** The line on the provider's bill, from the moment that the complete request was sent. */
  line: BillLine | undefined;
  private isPaused = false;
  private onResume: (() => void) | undefined;

  constructor(
    private readonly provider: SimProvider,
    private readonly scheduler: Scheduler,
    private readonly random: Random,
    private readonly life: Life,
    private readonly listener: UpstreamListener,
  ) {
    life.onDeath(() => this.abort());
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    const { onResume } = this;
    this.onResume = undefined;
    if (onResume !== undefined) this.scheduler.at(0.1, onResume);
  }

  isSent(): boolean {
    return this.line !== undefined && !this.isGone;
  }

  /** The provider notices a little later, and bills what it generated until then. */
  abort(): void {
    if (this.line !== undefined) this.line.endedAtMs ??= this.scheduler.nowMs;
    this.scheduler.at(this.random.next(), () => {
      this.isOver = true;
    });
    this.isGone = true;
  }

  release(): void {
    this.isGone = true;
  }

  begin(line: BillLine, script: Script, isStream: boolean): void {
    const { conduct } = script;
    if (this.isOver) return;
    if (conduct === 'silent') {
      // A worker waits ten minutes for a non-streamed answer, so break the connection first.
      if (!isStream) this.scheduler.at(this.random.int(1_000, 20_000), () => this.tell((listener) => listener.onError('disconnected')));
      return;
    }
    if (conduct === 'refuse') {
      const status = this.random.pick(REFUSALS);
      this.tell((listener) => {
        line.isHeaded = true;
        listener.onHead(status, status === 429 ? { 'retry-after': '1' } : {});
        listener.onData(Buffer.from('{"error":{"message":"no"}}'));
        listener.onEnd();
      });
      this.isOver = true;
      return;
    }
    this.tell((listener) => {
      line.isHeaded = true;
      listener.onHead(200, {});
    });
    if (conduct === 'early-cut') {
      this.tell((listener) => listener.onError('disconnected'));
      this.isOver = true;
      return;
    }
    if (isStream) {
      this.tell((listener) => listener.onData(chunkOf({ role: 'assistant', content: '' }, null)));
      const speaksAfterMs = this.provider.onHeaded(line.id);
      if (speaksAfterMs === 0) this.generate(line, script, 0);
      else this.scheduler.at(speaksAfterMs, () => this.generate(line, script, 0));
    } else this.scheduler.at(script.pauseMs * 3, () => this.answer(line, script));
  }

  tell(say: (listener: UpstreamListener) => void): void {
    this.life.run(() => {
      if (!this.isGone) say(this.listener);
    });
  }

  private add(line: BillLine, tokens: number): void {
    line.generated += tokens;
    line.cost = this.provider.costOf({ ...NO_TOKENS, inputUncached: line.promptTokens, outputText: line.generated });
  }

  private generate(line: BillLine, script: Script, made: number): void {
    if (this.isOver) return;
    if (this.isPaused) {
      this.onResume = () => this.generate(line, script, made);
      return;
    }
    if (script.conduct !== 'whole' && made >= script.breakAfterChunks) {
      if (script.conduct === 'cut') this.tell((listener) => listener.onError('disconnected'));
      if (script.conduct === 'cut') this.isOver = true;
      // A stall lasts until the worker gives up.
      return;
    }
    const tokens = Math.min(script.chunkTokens, script.outputTokens - line.generated);
    if (tokens <= 0) {
      this.finish(line, script);
      return;
    }
    this.add(line, tokens);
    const text = this.words(line, script, tokens, made);
    line.sentBytes += text.length;
    const [call] = script.calls;
    const said = script.saysFirst ? 1 : 0;
    if (call === undefined || made < said) this.tell((listener) => listener.onData(chunkOf({ content: text }, null)));
    else {
      line.isCall = true;
      const named = made === said ? { id: 'call_0', type: 'function' } : {};
      this.tell((listener) => listener.onData(chunkOf({ tool_calls: [{ index: 0, ...named, function: { ...(made === said ? { name: call } : {}), arguments: text } }] }, null)));
    }
    this.scheduler.at(script.pauseMs, () => this.generate(line, script, made + 1));
  }

  private words(line: BillLine, { bytesPerToken, isJson, outputTokens }: Script, tokens: number, made: number): string {
    const attempt = Number(line.id.slice(line.id.indexOf('/') + 1));
    return wordsOf(letterOf(attempt), tokens * bytesPerToken, isJson ? { isFirst: made === 0, isLast: line.generated >= outputTokens } : undefined);
  }

  private finish(line: BillLine, script: Script): void {
    this.isOver = true;
    line.isWhole = true;
    const told = this.told(line, script);
    this.tell((listener) => {
      const [, second] = script.calls;
      if (line.isCall && second !== undefined) listener.onData(chunkOf({ tool_calls: [{ index: 1, id: 'call_1', type: 'function', function: { name: second, arguments: '{}' } }] }, null));
      listener.onData(chunkOf({}, finishOf(line)));
      for (const usage of told) listener.onData(sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }));
      listener.onData(DONE);
      listener.onEnd();
    });
  }

  private answer(line: BillLine, script: Script): void {
    if (this.isOver) return;
    this.isOver = true;
    this.add(line, script.outputTokens);
    if (script.conduct !== 'whole') {
      this.tell((listener) => listener.onError('disconnected'));
      return;
    }
    const text = this.words(line, script, script.outputTokens, 0);
    line.sentBytes += text.length;
    line.isCall = script.calls.length > 0;
    line.isWhole = true;
    const calls = script.calls.map((name, at) => ({ id: `call_${at}`, type: 'function', function: { name, arguments: at === 0 && !script.saysFirst ? text : '{}' } }));
    const message = { role: 'assistant', content: line.isCall && !script.saysFirst ? null : text, ...(line.isCall ? { tool_calls: calls } : {}) };
    const usage = this.told(line, script).at(-1);
    const body = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: finishOf(line) }], ...(usage === undefined ? {} : { usage }) };
    this.tell((listener) => {
      listener.onData(Buffer.from(JSON.stringify(body)));
      listener.onEnd();
    });
  }

  /** The usage frames to send; the last one is billed. */
  private told(line: BillLine, { usage }: Script): readonly object[] {
    if (usage === 'missing') return [];
    line.isTold = true;
    const { promptTokens, generated } = line;
    if (usage === 'twice') return [usageOf(promptTokens, 1), usageOf(promptTokens, generated)];
    if (usage === 'told') return [usageOf(promptTokens, generated)];
    const tokens = usage === 'zero' ? NO_TOKENS : { ...NO_TOKENS, inputUncached: promptTokens * 7, outputText: generated * 9 };
    line.cost = this.provider.costOf(tokens);
    return [usageOf(tokens.inputUncached, tokens.outputText)];
  }
}
