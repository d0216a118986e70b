/** Connects an attempt with its caller: events, back-pressure, checkpoints, and what happens when the caller leaves. */
import type { DispatchEvent, DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { Fault } from '@signalbox/kernel/fault';
import type { CallInfo, Emitter } from '@signalbox/rpc/call';
import type { Usage } from '@signalbox/wires/canonical';
import { Attempt, type AttemptOptions, type AttemptSinks, type ChunkEvent, type Ending } from './attempt.js';
import { Gatherer } from '@signalbox/wires/gather';
import { BYTES_PER_TOKEN, estimatedTokens, heldPrompt, outputTokensMax } from './charge.js';
import type { HoldGrowth } from './hold-growth.js';
import type { Journal } from './journal.js';
import type { ProviderAdapter, UpstreamRequest } from './provider.js';
import type { Place, Upstream } from './upstream.js';

const CHECKPOINT_MS = 1_000;
const CHECKPOINT_BYTES = 256 * BYTES_PER_TOKEN;

/** Counts attempts that go on without their caller, of which only so many are allowed. */
export interface Drains {
  /** Takes a place; false when none is left. */
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
  readonly grow?: AttemptOptions['grow'];
  /** Called once, when the stream's first content arrives. */
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
  /** In a stream asked in rounds: content has arrived. As long as `hasShown` is false, it was tool calls only. */
  private hasCalled = false;
  private onBegun: (() => void) | undefined;
  private checkpointAt: number;
  private checkpointBytes = 0;

  constructor(private readonly options: ConversationOptions) {
    const { adapter, upstream, clock, request, upstreamRequest, place, growth, grow, onBegun } = options;
    this.onBegun = onBegun;
    this.gatherer = request.gather ? new Gatherer() : undefined;
    this.checkpointAt = clock.monotonicMs();
    this.attempt = new Attempt({ adapter, upstream, clock, request, upstreamRequest, place, sinks: this, growth, grow });
  }

  /** Resolves once the exchange with the provider is over, which may be after the caller left. */
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

  /** The caller left: nobody takes events any more. */
  get isGone(): boolean {
    return this.isLeft;
  }

  /** The caller itself cancelled, so it takes no answer and will tell no outcome. False when the link merely broke. */
  get isCancelled(): boolean {
    return this.isHungUp;
  }

  /** The caller asked for the stream to end, and still takes the end event. */
  get isStopped(): boolean {
    return this.isEnded && !this.isLeft;
  }

  /** The caller cancelled because the client hung up. */
  get isClientGone(): boolean {
    return this.hasClientLeft;
  }

  /** The caller did not cancel: the link broke or the deadline passed. It gets nothing beyond what it has been given. */
  get isLost(): boolean {
    return this.isLeft && !this.isHungUp;
  }

  /** Ends a stream that the client has seen the beginning of; the caller wants no more chunks, but waits for the end event. */
  stop(): void {
    if (this.isLeft || !this.isStarted || !this.options.request.clientStream) return;
    this.isEnded = true;
    this.attempt.abandon();
  }

  onHead(systemFingerprint: string, serviceTier: string): void {
    this.write({ head: { systemFingerprint, serviceTier } });
  }

  /** Most output tokens that an estimate may charge: what was asked for and is held. */
  get outputTokensMax(): number {
    return this.options.growth?.coveredTokens ?? outputTokensMax(this.options.request);
  }

  /** Input token counts that the provider reported so far, if within what is held. */
  get promptUsage(): Usage | undefined {
    return heldPrompt(this.attempt.summary()?.promptUsage, this.options.request);
  }

  /** The complete answer, for a client that does not stream while the provider does. */
  gathered(): Buffer | undefined {
    return this.gatherer?.whole();
  }

  /** For a request asked in rounds: this round ended in, or broke off within, calls of tools that the gateway runs, and showed the client nothing. */
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
    // A checkpoint records what was delivered. Nothing was, while a body is still being gathered or edge keeps tool calls to itself.
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
      // The call is over, or the write exceeded the reader's credit.
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
    // A streaming client pays for what was generated. Any other pays for the full answer, so once asked for it is fetched to its end.
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

/** Whether a tool that is not in `ours` is called, so that the client sees the call. With an empty `ours` all calls are the gateway's. Later pieces of a call carry no name and belong to its first piece. */
function callsOther(said: Said | undefined, ours: readonly string[]): boolean {
  return ours.length > 0 && (said?.tool_calls ?? []).some((call) => {
    const name = call.function?.name ?? '';
    return name !== '' && !ours.includes(name);
  });
}

/** Whether the client sees anything of a chunk: text, or a call of one of its own tools. */
function showsMore(choices: Uint8Array, ours: readonly string[]): boolean {
  const parsed = JSON.parse(Buffer.from(choices).toString('utf8')) as readonly { readonly delta?: Said }[];
  return parsed.some(({ delta = {} }) => callsOther(delta, ours) || Object.entries(delta).some(([name, value]) => name !== 'role' && name !== 'tool_calls' && isSaid(value)));
}

/** Whether a whole answer calls one of the client's own tools, so that it is passed to the client. */
function callsClient(choices: Uint8Array, ours: readonly string[]): boolean {
  return (JSON.parse(Buffer.from(choices).toString('utf8')) as readonly { readonly message?: Said }[]).some(({ message }) => callsOther(message, ours));
}
