/** An attempt and its caller: events out, back-pressure, checkpoints, and what happens when the caller goes away. */
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { Fault } from '@signalbox/kernel/fault';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import type { Usage } from '@signalbox/wires/canonical';
import { Attempt, type AttemptSinks, type ChunkEvent, type Ending } from './attempt.js';
import { Gatherer } from '@signalbox/wires/gather';
import { BYTES_PER_TOKEN, estimatedTokens, heldPrompt, outputTokensMax } from './charge.js';
import type { HoldGrowth } from './hold-growth.js';
import type { Journal } from './journal.js';
import type { ProviderAdapter, UpstreamRequest } from './provider.js';
import type { Place, Upstream } from './upstream.js';

const CHECKPOINT_MS = 1_000;
const CHECKPOINT_BYTES = 256 * BYTES_PER_TOKEN;

/** Attempts that go on without their caller; bounded. */
export interface Drains {
  /** False when no more may go on. */
  take(): boolean;
  give(): void;
}

export interface ConversationOptions {
  readonly adapter: ProviderAdapter;
  readonly upstream: Upstream;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly drains: Drains;
  readonly request: DispatchRequest__Output;
  readonly upstreamRequest: UpstreamRequest;
  readonly place?: Place | undefined;
  readonly call: CallInfo;
  readonly emit: Emitter<DispatchEvent>;
  readonly growth?: HoldGrowth | undefined;
  /** Called once the stream's first content has come. */
  readonly onBegun?: (() => void) | undefined;
}

export class Conversation implements AttemptSinks {
  readonly attempt: Attempt;
  private readonly gatherer: Gatherer | undefined;
  private isStarted = false;
  private isLeft = false;
  private isHungUp = false;
  private hasClientLeft = false;
  private isEnded = false;
  private hasShown = false;
  /** Of a stream in rounds: something came that its client does not see, which calls alone are. */
  private hasCalled = false;
  private onBegun: (() => void) | undefined;
  private checkpointAt: number;
  private checkpointBytes = 0;

  constructor(private readonly options: ConversationOptions) {
    const { adapter, upstream, clock, request, upstreamRequest, place, growth, onBegun } = options;
    this.onBegun = onBegun;
    this.gatherer = request.gather ? new Gatherer() : undefined;
    this.checkpointAt = clock.monotonicMs();
    this.attempt = new Attempt({ adapter, upstream, clock, request, upstreamRequest, place, sinks: this, growth });
  }

  /** Resolves once the provider is done with, which may be after the caller left. */
  hold(): Promise<Ending> {
    const { call, request } = this.options;
    call.onAbort(this.onAbort);
    if (request.retryOf.length > 0) this.write({ started: {} });
    if (!this.isLeft) {
      this.isStarted = true;
      this.attempt.start();
    }
    return this.attempt.ended;
  }

  /** Nobody takes events any more. */
  get isGone(): boolean {
    return this.isLeft;
  }

  /** The caller itself cancelled: it will take nothing, and need not be asked. A broken link is no such word. */
  get isCancelled(): boolean {
    return this.isHungUp;
  }

  /** The caller asked for the end of the stream, and takes it. */
  get isStopped(): boolean {
    return this.isEnded && !this.isLeft;
  }

  /** The caller cancelled because the client itself hung up. */
  get isClientGone(): boolean {
    return this.hasClientLeft;
  }

  /** The caller did not leave by itself: its link broke, or its time was over. What it may have been given is all that there is. */
  get isLost(): boolean {
    return this.isLeft && !this.isHungUp;
  }

  /** The caller takes no more of a stream that its client has seen the beginning of, and waits for its end. */
  stop(): void {
    if (this.isLeft || !this.isStarted || !this.options.request.clientStream) return;
    this.isEnded = true;
    this.attempt.abandon();
  }

  onHead(systemFingerprint: string, serviceTier: string): void {
    this.write({ head: { systemFingerprint, serviceTier } });
  }

  /** Output tokens that an estimate of ours charges at most: those that were asked for, and are held. */
  get outputTokensMax(): number {
    return this.options.growth?.coveredTokens ?? outputTokensMax(this.options.request);
  }

  /** Input buckets that the provider told so far, within what is held. */
  get promptUsage(): Usage | undefined {
    return heldPrompt(this.attempt.summary()?.promptUsage, this.options.request);
  }

  /** The whole of a streamed answer whose client takes no stream. */
  gathered(): Buffer | undefined {
    return this.gatherer?.whole();
  }

  /** Of a request in rounds: this one ended in calls of tools that run here, or broke off within them, and has given its client nothing. */
  isCallsOnly(ending: Ending, finishReason: string): boolean {
    const { rounds, toolNames } = this.options.request;
    if (!rounds || this.hasShown) return false;
    if ((ending.kind === 'stream' && ending.cut !== undefined) || (ending.kind === 'abandoned' && this.isLost)) return this.hasCalled;
    if (finishReason !== 'tool_calls') return false;
    const whole = ending.kind === 'answer' ? ending.answer.choices : this.gathered();
    return whole === undefined || !callsClient(whole, toolNames);
  }

  onChunk(event: ChunkEvent): boolean {
    if (event.content && this.onBegun !== undefined) {
      this.onBegun();
      this.onBegun = undefined;
    }
    const { rounds, clientStream, toolNames } = this.options.request;
    if (rounds && clientStream && !this.hasShown) {
      this.hasShown = showsMore(event.choices, toolNames);
      this.hasCalled ||= event.content;
    }
    if (this.gatherer !== undefined) {
      this.gatherer.add(event.choices);
      return true;
    }
    const hasRoom = this.write({ chunk: event });
    if (!hasRoom) this.options.emit.drained().then(() => this.attempt.resume(), this.leave);
    return hasRoom;
  }

  onProgress(outputBytes: number, nowMs: number): void {
    // A checkpoint says what was delivered: of a body that is still being gathered, or of calls that edge keeps to itself, nothing.
    if (this.gatherer !== undefined || (this.options.request.rounds && !this.hasShown)) return;
    if (this.isLeft || (outputBytes - this.checkpointBytes < CHECKPOINT_BYTES && nowMs - this.checkpointAt < CHECKPOINT_MS)) return;
    this.checkpointAt = nowMs;
    this.checkpointBytes = outputBytes;
    const { journal, request } = this.options;
    journal.checkpoint(request.requestId, request.attempt, estimatedTokens(request.promptTokens, this.promptUsage, outputBytes, this.outputTokensMax));
  }

  /** False when there is no room for more; true when it does not matter any more. */
  private write(event: DispatchEvent): boolean {
    if (this.isLeft) return true;
    try {
      return this.options.emit.write(event);
    } catch {
      // The call is over or its reader is beyond its credit.
      this.leave();
      return true;
    }
  }

  private readonly onAbort = (reason: Fault): void => {
    this.hasClientLeft = reason.code === 'client_left';
    this.isHungUp = this.hasClientLeft || reason.code === 'cancelled';
    this.leave();
  };

  private readonly leave = (): void => {
    if (this.isLeft) return;
    this.isLeft = true;
    const { request, drains } = this.options;
    // A stream's client pays what was generated; any other the full answer, so it is fetched to its end once it was asked for.
    if (request.clientStream || !this.isStarted || !drains.take()) {
      this.attempt.abandon();
      return;
    }
    this.attempt.drain();
    void this.attempt.ended.then(() => drains.give());
  };
}

const isSaid = (value: unknown): boolean => value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);

interface Said {
  readonly tool_calls?: readonly { readonly function?: { readonly name?: string } }[];
}

/** Of `ours` the client hears nothing; an edge that names none has none to hand on. A piece of a call without a name goes with its first. */
function callsOther(said: Said | undefined, ours: readonly string[]): boolean {
  return ours.length > 0 && (said?.tool_calls ?? []).some((call) => {
    const name = call.function?.name ?? '';
    return name !== '' && !ours.includes(name);
  });
}

/** A chunk of which the client sees something: words, or a call of a tool of its own. */
function showsMore(choices: Uint8Array, ours: readonly string[]): boolean {
  const parsed = JSON.parse(Buffer.from(choices).toString('utf8')) as readonly { readonly delta?: Said }[];
  return parsed.some(({ delta = {} }) => callsOther(delta, ours) || Object.entries(delta).some(([name, value]) => name !== 'role' && name !== 'tool_calls' && isSaid(value)));
}

/** A whole answer that is handed to the client for a call of its own tools. */
function callsClient(choices: Uint8Array, ours: readonly string[]): boolean {
  return (JSON.parse(Buffer.from(choices).toString('utf8')) as readonly { readonly message?: Said }[]).some(({ message }) => callsOther(message, ours));
}
