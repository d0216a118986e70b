/**
 * The links to one neighbour: keeps `links` of them up for each address and spreads calls over those. A call that is about
 * another goes where that went: by the same link, or by one to the same address when that was renewed.
 */
import type { Clock, RandomBytes, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import type { Keepalive } from './channel.js';
import type { CallCarrier, ClientCall } from './client-call.js';
import { LinkClient } from './link-client.js';

export interface LinkPoolOptions {
  readonly addresses: readonly string[];
  readonly path: string;
  readonly links: number;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly keepalive: Keepalive;
  readonly tls: RpcTls;
}

const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 2_000;
/** Links are renewed so that replicas that came later get their share. */
const RECYCLE_MS = 5 * 60_000;
/** How long a call waits for a first link. */
const LINK_WAIT_MS = 1_000;
const WAITING_MAX = 10_000;

interface Slot {
  readonly address: string;
  link: LinkClient | undefined;
  failures: number;
  timer: Timer | undefined;
}

export class LinkPool implements CallCarrier {
  private readonly slots: Slot[];
  private readonly links = new Set<LinkClient>();
  private readonly waiting = new Map<ClientCall, Timer>();
  private next = 0;
  /** Whose link took the latest call. */
  private gathering: Slot | undefined;
  private linksLost = 0;
  private isStarted = false;
  private isClosed = false;

  constructor(private readonly options: LinkPoolOptions) {
    this.slots = options.addresses.flatMap((address) => Array.from({ length: options.links }, () => ({ address, link: undefined, failures: 0, timer: undefined })));
  }

  /** Connects on the first call of this or `start`. */
  isConnected(): boolean {
    this.begin();
    return this.slots.some((slot) => slot.link?.state === 'ready');
  }

  stats(): { readonly links: number; readonly linksReady: number; readonly waiting: number; readonly linksLost: number } {
    let linksReady = 0;
    for (const { link } of this.slots) if (link?.state === 'ready') linksReady += 1;
    return { links: this.slots.length, linksReady, waiting: this.waiting.size, linksLost: this.linksLost };
  }

  start(call: ClientCall): void {
    if (this.isClosed) {
      call.settle(new Fault('peer_unavailable', 'the client is closed'));
      return;
    }
    this.begin();
    // Calls of one turn share a batch; the next turn goes to the next link.
    const only = call.onlyPeer === undefined ? undefined : this.slots.find((slot) => slot === call.onlyPeer);
    const wanted = only ?? this.gathering;
    if (wanted?.link !== undefined && (only === undefined ? wanted.link.isGathering() : wanted.link.hasRoom())) {
      this.send(call, wanted, wanted.link);
      return;
    }
    let isAnyReady = false;
    for (let i = 0; i < this.slots.length; i += 1) {
      this.next = (this.next + 1) % this.slots.length;
      const slot = this.slots[this.next];
      if (slot === undefined || (only !== undefined && slot.address !== only.address)) continue;
      const { link } = slot;
      if (link?.hasRoom() === true) {
        if (only === undefined) this.gathering = slot;
        this.send(call, slot, link);
        return;
      }
      isAnyReady ||= link?.state === 'ready';
    }
    if (isAnyReady || this.waiting.size >= WAITING_MAX) {
      call.settle(new Fault('overloaded', 'too many live calls to a peer'));
      return;
    }
    call.carrier = this;
    const timer = this.options.clock.setTimer(Math.min(LINK_WAIT_MS, call.remainingMs()), () => call.fail(new Fault('peer_unavailable', 'no link to the peer')));
    this.waiting.set(call, timer);
  }

  abandon(call: ClientCall): void {
    this.waiting.get(call)?.cancel();
    this.waiting.delete(call);
  }

  // A call that waits for a link receives nothing; the link looks at `isPaused` when it starts.
  pause(): void {}
  resume(): void {}

  close(): void {
    this.isClosed = true;
    for (const slot of this.slots) slot.timer?.cancel();
    for (const call of [...this.waiting.keys()]) call.fail(new Fault('peer_unavailable', 'the client is closed'));
    for (const link of [...this.links]) link.close();
  }

  private send(call: ClientCall, slot: Slot, link: LinkClient): void {
    call.peer = slot;
    link.start(call);
  }

  private begin(): void {
    if (this.isStarted || this.isClosed) return;
    this.isStarted = true;
    for (const slot of this.slots) this.connect(slot);
  }

  private connect(slot: Slot): void {
    const { clock, path, keepalive, tls } = this.options;
    slot.timer?.cancel();
    slot.link = new LinkClient({
      address: slot.address,
      path,
      clock,
      keepalive,
      tls,
      onReady: (link) => {
        slot.failures = 0;
        slot.timer = clock.setTimer(RECYCLE_MS * (0.8 + 0.4 * this.fraction()), () => link.retire(), { unref: true });
        this.startWaiting();
      },
      onRetire: (link) => {
        if (slot.link === link) this.reconnect(slot);
      },
      onClosed: (link, unsent) => {
        this.links.delete(link);
        if (slot.link === link) {
          if (!this.isClosed) this.linksLost += 1;
          this.reconnect(slot);
        }
        for (const call of unsent) this.start(call);
      },
    });
    this.links.add(slot.link);
  }

  /** The first attempt is at once, the next ones after jittered, doubling pauses, for ever. */
  private reconnect(slot: Slot): void {
    slot.timer?.cancel();
    slot.link = undefined;
    if (this.isClosed) return;
    const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(slot.failures, 10));
    slot.failures += 1;
    slot.timer = this.options.clock.setTimer(ceiling * (0.5 + 0.5 * this.fraction()), () => this.connect(slot), { unref: true });
  }

  private startWaiting(): void {
    const calls = [...this.waiting];
    this.waiting.clear();
    for (const [call, timer] of calls) {
      timer.cancel();
      this.start(call);
    }
  }

  /** Uniform in [0, 1). */
  private fraction(): number {
    const bytes = this.options.randomBytes(2);
    return ((bytes[0] ?? 0) * 256 + (bytes[1] ?? 0)) / 65_536;
  }
}
