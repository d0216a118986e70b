/** One link over a connection of its own: frames in both directions, and a keepalive at both ends. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { noteBody } from '@signalbox/runtime/young-heap';
import type { Socket } from 'node:net';
import type { Keepalive } from './channel.js';
import { bareFrame, batchFrame, FRAME, FrameReader } from './frames.js';
import type { LinkItem } from './link-item.js';
import type { LinkListener, LinkTransport } from './link-transport.js';

const END = bareFrame(FRAME.end);
const PING = bareFrame(FRAME.ping);
const PONG = bareFrame(FRAME.pong);
/** Turns of the event loop in which the socket is read before the peer is given up: this process may itself have been suspended. */
const HEARING_TURNS = 2;

export interface FramedConnectionOptions {
  /** Connected, and both first lines are through. Its bytes come through `hear`. */
  readonly socket: Socket;
  readonly clock: Clock;
  readonly keepalive: Keepalive;
  readonly listener: LinkListener;
}

export class FramedConnection implements LinkTransport {
  private readonly socket: Socket;
  private readonly clock: Clock;
  private readonly listener: LinkListener;
  private readonly reader = new FrameReader((kind, body) => this.take(kind, body));
  private heardAtMs: number;
  /** A ping was sent, and nothing came since. */
  private isAsked = false;
  private timer: Timer | undefined;
  /** This side has sent its last frame, and the other its own. */
  private isEnded = false;
  private isPeerEnded = false;
  private isClosed = false;

  constructor(private readonly options: FramedConnectionOptions) {
    this.socket = options.socket;
    this.clock = options.clock;
    this.listener = options.listener;
    this.heardAtMs = this.clock.monotonicMs();
    this.socket.setNoDelay(true);
    this.socket.on('drain', () => this.listener.onDrain());
    // The first of them closes: `close` comes only after the turn in which a connection broke, when calls have been written to it.
    for (const event of ['error', 'end', 'close']) this.socket.on(event, () => this.close());
    this.listen();
  }

  /** Bytes of the peer, in order. They are not written to afterwards. */
  hear(bytes: Buffer): void {
    this.heardAtMs = this.clock.monotonicMs();
    if (this.isAsked) this.answered();
    this.reader.push(bytes);
  }

  write(items: readonly LinkItem[]): boolean {
    const frame = batchFrame(items);
    noteBody(frame.length);
    return this.socket.write(frame);
  }

  end(): void {
    if (this.isEnded || this.isClosed) return;
    this.isEnded = true;
    this.socket.write(END);
    this.closeIfEnded();
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.timer?.cancel();
    // So that the peer learns it with what it reads before, not a turn later.
    if (!this.isEnded && this.socket.writable) this.socket.write(END);
    this.socket.destroy();
    this.listener.onClosed();
  }

  private take(kind: number, body: Buffer): void {
    if (this.isClosed) return;
    if (kind === FRAME.batch) {
      noteBody(body.length);
      this.listener.onBatch(body);
    } else if (kind === FRAME.ping) this.socket.write(PONG);
    else if (kind === FRAME.end && !this.isPeerEnded) {
      this.isPeerEnded = true;
      this.listener.onEnd();
      this.closeIfEnded();
    }
  }

  /** What was written before is still sent. */
  private closeIfEnded(): void {
    if (this.isEnded && this.isPeerEnded && !this.isClosed) this.socket.end(() => this.close());
  }

  /** Waits until the peer was silent for `timeMs`. */
  private readonly listen = (): void => {
    const { timeMs } = this.options.keepalive;
    const silentMs = this.clock.monotonicMs() - this.heardAtMs;
    if (silentMs < timeMs) this.arm(timeMs - silentMs, this.listen);
    else this.ask();
  };

  private ask(): void {
    this.isAsked = true;
    this.socket.write(PING);
    this.arm(this.options.keepalive.timeoutMs, () => this.judge(HEARING_TURNS));
  }

  private answered(): void {
    this.isAsked = false;
    this.timer?.cancel();
    if (!this.isClosed) this.listen();
  }

  private judge(turns: number): void {
    if (this.isClosed || !this.isAsked) return;
    if (turns > 0) setImmediate(() => this.judge(turns - 1));
    else this.close();
  }

  private arm(ms: number, then: () => void): void {
    this.timer = this.clock.setTimer(ms, then, { unref: true });
  }
}
