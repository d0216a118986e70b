/** Calls between processes: messages are really encoded and decoded, over links that lose, duplicate, delay and break. */
import { serviceContract, type Rpc, type ServiceArea } from '@signalbox/contracts/load';
import { Fault } from '@signalbox/kernel/fault';
import type { CallInfo, Emitter, Handlers, RpcClient, StreamCall, StreamListener } from '@signalbox/rpc/call';
import type { Life } from './life.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';

/** A listening process; nothing listens while `life` is undefined or over. */
export interface Door {
  life: Life | undefined;
  handlers: Handlers | undefined;
}

/** Probabilities of faults of one message, and its delay in milliseconds. */
export interface Weather {
  loss: number;
  copy: number;
  delayMs: number;
}

interface OpenStream {
  readonly ends: readonly Life[];
  cut(): void;
}

export interface ClientOptions {
  readonly from: Life;
  readonly area: ServiceArea;
  readonly doors: readonly Door[];
  readonly deadlineMs: number;
}

const FINE: Readonly<Weather> = { loss: 0, copy: 0, delayMs: 1 };

function rpcOf(area: ServiceArea, method: string): Rpc {
  const rpc = serviceContract(area).rpcs[method];
  if (rpc === undefined) throw new Error(`No RPC ${area}.${method}.`);
  return rpc;
}

export class Network {
  weather: Weather = { ...FINE };
  private readonly streams = new Set<OpenStream>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly random: Random,
    private readonly onBug: (error: unknown) => void,
  ) {}

  calm(): void {
    this.weather = { ...FINE };
  }

  /** Breaks every stream from or to `life`. */
  cut(life: Life): void {
    for (const stream of [...this.streams]) if (stream.ends.includes(life)) stream.cut();
  }

  client({ from, area, doors, deadlineMs }: ClientOptions): RpcClient {
    return {
      unary: <Request extends object, Response>(method: string, request: Request, options?: { readonly deadlineMs?: number; readonly silenceMs?: number; readonly peer?: object | undefined }) =>
        new Promise<Response>((resolve, reject) => {
          if (from.isDead) return;
          const silenceMs = options?.silenceMs ?? Infinity;
          const call = new UnaryCall(this.parts, from, rpcOf(area, method), method, request, Math.min(options?.deadlineMs ?? deadlineMs, 2 * silenceMs), (answer) => resolve(answer as Response), reject);
          call.send(this.doorOf(doors, options?.peer), this.weather);
          // As over the Link, another replica is asked: a lost message here stands for a frozen replica there.
          if (silenceMs !== Infinity) call.sendAgainAfter(silenceMs, () => this.doorOf(doors), () => this.weather);
        }),
      stream: <Request extends object, Message>(method: string, request: Request, listener: StreamListener<Message>, options?: { readonly deadlineMs?: number; readonly besides?: object | undefined }) => {
        const call = new SimStream(this.parts, from, rpcOf(area, method), this.doorOf(doors, undefined, options?.besides), method, request, options?.deadlineMs ?? deadlineMs, listener as StreamListener<object>);
        this.streams.add(call);
        call.onOver = () => void this.streams.delete(call);
        call.open();
        return call;
      },
      isConnected: () => true,
      close: () => Promise.resolve(),
    };
  }

  private get parts(): Parts {
    return { scheduler: this.scheduler, random: this.random, onBug: this.onBug, delayMs: () => 0.05 + this.random.next() * this.weather.delayMs };
  }

  /** Any open replica, or with `peer` the one that served the earlier call. `besides` is used only if there is no other: it is back, or only its link was broken. */
  private doorOf(doors: readonly Door[], peer?: object, besides?: object): Door | undefined {
    const open = doors.filter(({ life }) => life !== undefined && !life.isDead);
    const others = open.filter((door) => door !== besides);
    const fit = others.length === 0 ? open : others;
    const any = fit.length === 0 ? undefined : this.random.pick(fit);
    return peer === undefined ? any : open.find((door) => door === peer);
  }
}

interface Parts {
  readonly scheduler: Scheduler;
  readonly random: Random;
  onBug(error: unknown): void;
  delayMs(): number;
}

function callInfo(onAbort: CallInfo['onAbort'], deadlineMs: number): CallInfo {
  return { requestId: '', traceparent: '', signal: NEVER_ABORTED, onAbort, remainingMs: () => deadlineMs };
}
const NEVER_ABORTED = new AbortController().signal;

/** A handler's error as its caller sees it; anything but a Fault is a bug. */
function faultOf(error: unknown, onBug: (error: unknown) => void): Fault {
  if (error instanceof Fault) return error;
  onBug(error);
  return new Fault('internal_error', 'a bug');
}

/** A message as readable text. */
const brief = (message: object): string => JSON.stringify(message, (_key, value: unknown) => (value === '' || value === 0 || value === '0' || value === false || (Array.isArray(value) && value.length === 0) || (typeof value === 'object' && value !== null && 'inputUncached' in value) ? undefined : value)).slice(0, 600);

class UnaryCall {
  private isOver = false;

  constructor(
    private readonly parts: Parts,
    private readonly from: Life,
    private readonly rpc: Rpc,
    private readonly method: string,
    request: object,
    deadlineMs: number,
    private readonly resolve: (answer: object) => void,
    private readonly reject: (fault: Fault) => void,
  ) {
    this.bytes = rpc.requestSerialize(request);
    this.timer = from.clock.setTimer(deadlineMs, () => this.settle(() => reject(new Fault('deadline_exceeded', method))));
  }

  private readonly bytes: Buffer;
  private readonly timer: { cancel(): void };
  private againTimer: { cancel(): void } | undefined;

  sendAgainAfter(delayMs: number, door: () => Door | undefined, weather: () => Weather): void {
    this.againTimer = this.from.clock.setTimer(delayMs, () => this.send(door(), weather()));
  }

  send(door: Door | undefined, weather: Weather): void {
    const { random } = this.parts;
    if (door?.life === undefined) {
      this.failLater('peer_unavailable');
      return;
    }
    const copies = random.chance(weather.loss) ? 0 : random.chance(weather.copy) ? 2 : 1;
    this.parts.scheduler.say(() => `${this.from.name} → ${door.life?.name ?? ''} ${this.method} ×${copies} ${brief(this.rpc.requestDeserialize(this.bytes))}`);
    for (let i = 0; i < copies; i += 1) this.deliver(door, door.life, random.chance(weather.loss));
  }

  private deliver({ handlers }: Door, life: Life, losesReply: boolean): void {
    const { scheduler, delayMs, onBug } = this.parts;
    scheduler.at(delayMs(), () => {
      if (life.isDead) {
        this.failLater('link_lost');
        return;
      }
      const forget = life.onDeath(() => this.failLater('link_lost'));
      life.run(() => {
        const handler = handlers?.unary[this.method];
        if (handler === undefined) throw new Error(`Nobody handles ${this.method}.`);
        const answered = (async () => (await handler(this.rpc.requestDeserialize(this.bytes), callInfo(() => undefined, Infinity))) as object)();
        answered.then(
          (answer) => {
            if (life.isDead) return;
            forget();
            const reply = this.rpc.responseSerialize(answer);
            scheduler.say(() => `${life.name} answers ${this.method}${losesReply ? ' (lost)' : ''} ${brief(this.rpc.responseDeserialize(reply))}`);
            if (!losesReply) scheduler.at(delayMs(), () => this.from.run(() => this.settle(() => this.resolve(this.rpc.responseDeserialize(reply)))));
          },
          (error: unknown) => {
            if (life.isDead) return;
            forget();
            const fault = faultOf(error, onBug);
            if (!losesReply) scheduler.at(delayMs(), () => this.from.run(() => this.settle(() => this.reject(fault))));
          },
        );
      });
    });
  }

  private failLater(code: 'peer_unavailable' | 'link_lost'): void {
    this.parts.scheduler.at(this.parts.delayMs(), () => this.from.run(() => this.settle(() => this.reject(new Fault(code, this.method)))));
  }

  private settle(tell: () => void): void {
    if (this.isOver) return;
    this.isOver = true;
    this.timer.cancel();
    this.againTimer?.cancel();
    tell();
  }
}

/** A server stream: ordered and complete, until one of its ends dies or the link breaks. */
class SimStream implements StreamCall, OpenStream, Emitter<object> {
  onOver: () => void = () => undefined;
  readonly ends: readonly Life[];
  private readonly bytes: Buffer;
  private readonly timer: { cancel(): void };
  private readonly forgets: (() => void)[] = [];
  private lastAtMs = 0;
  private isOver = false;
  private isAborted = false;
  private abort: ((reason: Fault) => void) | undefined;
  private abortReason: Fault | undefined;
  private isPaused = false;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly parts: Parts,
    private readonly from: Life,
    private readonly rpc: Rpc,
    private readonly door: Door | undefined,
    private readonly method: string,
    request: object,
    deadlineMs: number,
    private readonly listener: StreamListener<object>,
  ) {
    this.bytes = rpc.requestSerialize(request);
    this.ends = door?.life === undefined ? [from] : [from, door.life];
    this.timer = from.clock.setTimer(deadlineMs, () => {
      this.abortServer(new Fault('deadline_exceeded', method));
      this.over(new Fault('deadline_exceeded', method));
    });
  }

  open(): void {
    const life = this.door?.life;
    if (life === undefined || life.isDead) {
      this.parts.scheduler.at(this.parts.delayMs(), () => this.from.run(() => this.over(new Fault('peer_unavailable', this.method))));
      return;
    }
    this.parts.scheduler.say(() => `${this.from.name} → ${life.name} ${this.method} ${brief({ ...this.rpc.requestDeserialize(this.bytes), fields: undefined, card: undefined, steps: undefined })}`);
    this.forgets.push(life.onDeath(() => this.cut()), this.from.onDeath(() => this.cut()));
    this.parts.scheduler.at(this.parts.delayMs(), () => {
      if (!this.isAborted) life.run(() => this.serve(life));
    });
  }

  /** Both ends notice that the link is lost. */
  cut(): void {
    const { scheduler, delayMs } = this.parts;
    this.abortServer(new Fault('link_lost', this.method));
    scheduler.at(delayMs(), () => this.from.run(() => this.over(new Fault('link_lost', this.method))));
  }

  cancel(why: 'cancelled' | 'client_left' = 'cancelled'): void {
    if (this.isOver) return;
    this.abortServer(new Fault(why, this.method));
    this.over(new Fault('cancelled', this.method));
  }

  peer(): object | undefined {
    return this.door;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    for (const wake of this.waiting.splice(0)) this.parts.scheduler.at(this.parts.delayMs(), () => this.door?.life?.run(wake));
  }

  write(message: object): boolean {
    if (this.isAborted) throw new Fault('cancelled', this.method);
    const reply = this.rpc.responseSerialize(message);
    this.inOrder(() => this.listener.onMessage(this.rpc.responseDeserialize(reply)));
    return !this.isPaused;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
    });
  }

  private serve(life: Life): void {
    const handler = this.door?.handlers?.stream?.[this.method];
    if (handler === undefined) throw new Error(`Nobody handles ${this.method}.`);
    const call = callInfo((listener) => {
      this.abort = listener;
      if (this.abortReason !== undefined) listener(this.abortReason);
    }, Infinity);
    // As over the Link, a call that was cancelled before it was read is served all the same.
    handler(this.rpc.requestDeserialize(this.bytes), call, this).then(
      () => {
        if (!life.isDead) this.inOrder(() => this.over(undefined));
      },
      (error: unknown) => {
        if (!life.isDead) this.inOrder(() => this.over(faultOf(error, this.parts.onBug)));
      },
    );
  }

  private abortServer(reason: Fault): void {
    if (this.isAborted) return;
    this.parts.scheduler.at(this.parts.delayMs(), () => {
      this.door?.life?.run(() => {
        if (this.isAborted) return;
        this.isAborted = true;
        this.abortReason = reason;
        this.abort?.(reason);
      });
    });
  }

  private inOrder(tell: () => void): void {
    if (this.isAborted) return;
    const { scheduler, delayMs } = this.parts;
    this.lastAtMs = Math.max(this.lastAtMs, scheduler.nowMs + delayMs());
    scheduler.at(this.lastAtMs - scheduler.nowMs, () => this.from.run(() => {
      if (!this.isOver) tell();
    }));
  }

  private over(fault: Fault | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    this.timer.cancel();
    for (const forget of this.forgets.splice(0)) forget();
    this.onOver();
    this.parts.scheduler.say(() => `${this.from.name} ${this.method} over: ${fault?.code ?? 'well'}`);
    this.listener.onEnd(fault);
  }
}
