/** The client's end of one link: one connection, many calls. */
import type { Timer } from '@signalbox/kernel/clock';
import { Fault, toFault } from '@signalbox/kernel/fault';
import type { CallCarrier, ClientCall } from './client-call.js';
import { detailToFault, faultToDetail, toUint32 } from './fault-status.js';
import { CreditedReceiver, CreditedSender, sendAll } from './flow.js';
import { decodeBatch } from './link-codec.js';
import { dialLink, type LinkDialOptions } from './link-dialer.js';
import { ITEM, LinkItem, LIVE_CALLS_MAX } from './link-item.js';
import type { LinkTransport } from './link-transport.js';
import { Listening } from './listening.js';
import { LiveCalls } from './live-calls.js';
import { Outbox } from './outbox.js';

export interface LinkClientOptions extends Omit<LinkDialOptions, 'listener' | 'onReady'> {
  readonly onReady: (link: LinkClient) => void;
  /** The server asked for no new calls on this link. */
  readonly onRetire: (link: LinkClient) => void;
  /** The server is silent: moves `call` to another server. False if there is none. */
  readonly onSilent: (link: LinkClient, call: ClientCall) => boolean;
  /** Called once, last. The `unsent` calls never left this process and may run on another link. */
  readonly onClosed: (link: LinkClient, unsent: readonly ClientCall[]) => void;
}

/** The process that a link reaches: one address may stand for several, behind a load balancer or as several DNS records. */
export interface LinkPeer {
  readonly address: string;
  /** The name the server gives itself, stable across restarts; empty = it gives none. */
  readonly instance: string;
  /** The same object for all open links of a pool that reach this instance (see `replicaOf`). */
  readonly replica: object;
}

interface Entry {
  readonly id: number;
  readonly call: ClientCall;
  readonly open: LinkItem;
  readonly sender: CreditedSender;
  readonly receiver: CreditedReceiver;
}

/** A connection attempt that takes longer is abandoned, and a new one begins. */
const CONNECT_TIMEOUT_MS = 5_000;
/** A retiring link stays open this long after a stream has ended, since the caller's next call is usually about that stream and must reach the same process. */
const LINGER_MS = 250;
const CALL_ID_MAX = 0xffffffff;

export class LinkClient implements CallCarrier {
  state: 'connecting' | 'ready' | 'retiring' | 'closed' = 'connecting';
  /** `instance` is empty until the link is ready. */
  peer: LinkPeer;
  /** Monotonic milliseconds. */
  readyAtMs = Infinity;
  private readonly transport: LinkTransport;
  private readonly outbox: Outbox;
  private readonly entries = new LiveCalls<Entry>();
  private readonly listening: Listening<ClientCall>;
  /** How many live calls have a `silenceMs`. */
  private patient = 0;
  private readonly connectTimer: Timer;
  private nextId = 1;
  /** Our side of the stream is closed. */
  private isEnded = false;
  private lingerUntilMs = 0;
  private lingerTimer: Timer | undefined;

  constructor(private readonly options: LinkClientOptions) {
    this.peer = { address: options.address, instance: '', replica: {} };
    this.outbox = new Outbox((batch) => this.transport.write(batch));
    this.listening = new Listening<ClientCall>({ clock: options.clock, waiting: this.waiting, ask: () => this.outbox.control(new LinkItem(0, ITEM.ping)), lose: this.lose });
    this.connectTimer = options.clock.setTimer(CONNECT_TIMEOUT_MS, () => this.close(), { unref: true });
    const { address, path, clock, randomBytes, keepalive, tls } = options;
    const listener = { onBatch: this.receive, onDrain: () => this.outbox.unblock(), onEnd: () => this.close(), onClosed: () => this.close() };
    this.transport = dialLink({ address, path, clock, randomBytes, keepalive, tls, listener, onReady: this.becomeReady });
  }

  hasRoom(): boolean {
    return this.state === 'ready' && this.entries.size < LIVE_CALLS_MAX;
  }

  /** Like `hasRoom`, for a call about an earlier one at the same process, for which a retiring link will do. */
  hasRoomToTell(): boolean {
    return this.isOpen() && this.entries.size < LIVE_CALLS_MAX;
  }

  /** A call gave up waiting for the peer, which has sent nothing since. */
  isSilent(): boolean {
    return this.listening.isSilent;
  }

  isOpen(): boolean {
    return this.state === 'ready' || (this.state === 'retiring' && !this.isEnded);
  }

  /** Items are waiting for the end of the event-loop turn, and their batch has room for more. */
  isGathering(): boolean {
    return this.outbox.isGathering() && this.hasRoom();
  }

  start(call: ClientCall): void {
    while (this.entries.get(this.nextId) !== undefined) this.advance();
    const id = this.nextId;
    this.advance();
    const open = new LinkItem(id, ITEM.open);
    open.method = call.name;
    open.deadlineMs = Math.max(1, toUint32(call.remainingMs()));
    open.requestId = call.requestId;
    open.traceparent = call.traceparent;
    const entry: Entry = { id, call, open, sender: new CreditedSender(this.outbox), receiver: new CreditedReceiver(this.outbox, id) };
    if (call.isPaused) entry.receiver.pause();
    this.entries.add(entry);
    call.linkId = id;
    call.carrier = this;
    if (call.silenceMs > 0) {
      this.patient += 1;
      this.listening.begin(call);
    }
    sendAll(entry.sender, open, ITEM.message, call.request);
  }

  abandon(call: ClientCall, fault: Fault): void {
    const entry = this.entryOf(call);
    if (entry === undefined) return;
    entry.sender.discard();
    this.forget(entry);
    if (!this.outbox.drop(entry.open)) {
      const item = new LinkItem(entry.id, ITEM.cancel);
      if (fault.code === 'client_left') item.fault = faultToDetail(fault);
      this.outbox.control(item);
    }
    this.endIfIdle();
  }

  pause(call: ClientCall): void {
    this.entryOf(call)?.receiver.pause();
  }

  resume(call: ClientCall): void {
    this.entryOf(call)?.receiver.resume();
  }

  /** Takes no new calls, and closes once the running ones are done. */
  retire(): void {
    if (this.state === 'connecting') this.close();
    if (this.state !== 'ready') return;
    this.state = 'retiring';
    this.options.onRetire(this);
    this.endIfIdle();
  }

  /** Cuts now: sent calls fail with `link_lost`. Safe to call twice. */
  close(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.connectTimer.cancel();
    this.lingerTimer?.cancel();
    this.listening.end();
    this.outbox.close();
    const unsent: ClientCall[] = [];
    const entries = this.entries.takeAll();
    this.transport.close();
    const fault = new Fault('link_lost', 'the link broke during the call');
    for (const entry of entries) {
      entry.call.carrier = undefined;
      if (this.outbox.drop(entry.open)) unsent.push(entry.call);
      else entry.call.settle(fault);
    }
    this.options.onClosed(this, unsent);
  }

  private readonly becomeReady = (instance: string): void => {
    if (this.state !== 'connecting') return;
    this.peer = { ...this.peer, instance };
    this.state = 'ready';
    this.readyAtMs = this.options.clock.monotonicMs();
    this.connectTimer.cancel();
    this.options.onReady(this);
  };

  private readonly waiting = (): readonly ClientCall[] => (this.patient === 0 ? [] : this.entries.all().flatMap(({ call }) => (call.silenceMs > 0 ? [call] : [])));

  /** If there is no other server, the call goes on waiting here: sending it again to the same one would only add to its work. */
  private readonly lose = (call: ClientCall): void => {
    if (call.isSpared) call.peerSilent();
    else {
      call.isSpared = true;
      if (!this.options.onSilent(this, call)) this.listening.begin(call);
    }
  };

  private readonly receive = (batch: Buffer): void => {
    this.listening.heard();
    let items: readonly LinkItem[];
    try {
      items = decodeBatch(batch);
    } catch {
      this.close();
      return;
    }
    for (const item of items) this.accept(item);
    this.endIfIdle();
  };

  private accept(item: LinkItem): void {
    if (item.kind === ITEM.goaway) {
      this.retire();
      return;
    }
    const entry = this.entries.get(item.call);
    if (entry === undefined) return;
    switch (item.kind) {
      case ITEM.credit:
        entry.sender.grant(item.creditBytes);
        break;
      case ITEM.message:
        this.deliver(entry, item);
        break;
      case ITEM.end:
        if (!entry.call.method.responseStream) this.deliver(entry, item);
        this.forget(entry);
        entry.call.settle(undefined);
        break;
      case ITEM.fault:
        this.forget(entry);
        entry.call.settle(detailToFault(item.fault));
        break;
      default:
        // An item kind of a newer version.
        break;
    }
  }

  private deliver(entry: Entry, item: LinkItem): void {
    try {
      const whole = entry.receiver.receive(item.payload, item.more);
      if (whole !== undefined) entry.call.deliver(whole);
    } catch (error) {
      entry.call.fail(toFault(error));
    }
  }

  private forget(entry: Entry): void {
    if (entry.call.silenceMs > 0 && this.entries.get(entry.id) === entry) this.patient -= 1;
    this.entries.remove(entry.id);
    entry.sender.discard();
    entry.call.carrier = undefined;
    if (this.state === 'retiring' && entry.call.method.responseStream) this.lingerUntilMs = this.options.clock.monotonicMs() + LINGER_MS;
  }

  private entryOf(call: ClientCall): Entry | undefined {
    const entry = this.entries.get(call.linkId);
    return entry?.call === call ? entry : undefined;
  }

  private advance(): void {
    this.nextId = this.nextId === CALL_ID_MAX ? 1 : this.nextId + 1;
  }

  private endIfIdle(): void {
    if (this.state !== 'retiring' || this.isEnded || this.lingerTimer !== undefined || this.entries.size > 0) return;
    const lingerMs = this.lingerUntilMs - this.options.clock.monotonicMs();
    if (lingerMs > 0) {
      this.lingerTimer = this.options.clock.setTimer(lingerMs, () => {
        this.lingerTimer = undefined;
        this.endIfIdle();
      });
      return;
    }
    this.isEnded = true;
    this.outbox.flush();
    this.transport.end();
    // A frozen peer may never answer the half-close, and closing early loses nothing.
    this.options.clock.setTimer(1_000, () => this.close(), { unref: true });
  }
}
