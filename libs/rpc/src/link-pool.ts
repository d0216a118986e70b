/**
 * The links to one neighbour service: keeps `links` of them open to each address and spreads calls over them. A call about an
 * earlier one (`CallOptions.peer`) goes to the process that served that one, over any link that reaches it. If several
 * processes share an address and no link reaches the right one, the pool opens connections until one does.
 */
import type { Clock, RandomBytes, Timer } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { RpcTls } from '@signalbox/runtime/tls-files';
import type { Keepalive } from './channel.js';
import type { CallCarrier, ClientCall } from './client-call.js';
import { LinkClient, type LinkClientOptions, type LinkPeer } from './link-client.js';

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
/** Longest pause while nobody makes calls: some of the configured neighbours may never be deployed. */
const BACKOFF_UNASKED_MAX_MS = 30_000;
/** Links are replaced this often (±20 %), so that replicas that start later get their share of calls. */
const RECYCLE_MS = 5 * 60_000;
/** How long a call waits for a link. */
const LINK_WAIT_MS = 1_000;
const WAITING_MAX = 10_000;
/** A link opened to find a certain process is kept this long, since more calls to that process may follow. */
const FOUND_MS = 60_000;

interface Slot {
  readonly address: string;
  link: LinkClient | undefined;
  failures: number;
  timer: Timer | undefined;
  /** Monotonic milliseconds; from then on a waiting call triggers a connection attempt without waiting for `timer`. */
  dueAtMs: number;
  /** The pool's `calls` when this slot last failed. */
  callsBefore: number;
}

function isPeer(peer: object | undefined): peer is LinkPeer {
  return peer !== undefined && 'instance' in peer && 'address' in peer;
}

/** True if both may be the same process. Without an instance name (older versions), the addresses are compared. */
function mayBe(one: LinkPeer, other: LinkPeer): boolean {
  return one.instance === '' || other.instance === '' ? one.address === other.address : one.instance === other.instance;
}

/** False if the link leads to the process that the call must avoid, unless the link is newer than the call: older links to a dead process may still look open. */
function mayTake({ peer, readyAtMs }: LinkClient, { besides, begunAtMs }: ClientCall): boolean {
  return !isPeer(besides) || readyAtMs > begunAtMs || !mayBe(peer, besides);
}

export class LinkPool implements CallCarrier {
  private readonly slots: Slot[];
  private readonly links = new Set<LinkClient>(); // kept: a handful, for minutes each.
  private readonly waiting = new Map<ClientCall, Timer>(); // kept: empty while there is a link.
  /** Addresses at which the pool is searching for a certain process; `misses` counts the connections that did not reach it. */
  private readonly sought = new Map<string, { misses: number }>(); // kept: empty unless a call does not find its process.
  private next = 0;
  private calls = 0;
  /** The link that took the latest call. */
  private gathering: LinkClient | undefined;
  private linksLost = 0;
  private isStarted = false;
  private isClosed = false;

  constructor(private readonly options: LinkPoolOptions) {
    this.slots = options.addresses.flatMap((address) => Array.from({ length: options.links }, () => ({ address, link: undefined, failures: 0, timer: undefined, dueAtMs: 0, callsBefore: 0 })));
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

  /** True if a link leads to a replica other than `peer`. */
  hasOthers(peer: object | undefined): boolean {
    return isPeer(peer) && this.slots.some(({ link }) => link?.state === 'ready' && !mayBe(link.peer, peer));
  }

  start(call: ClientCall): void {
    if (this.isClosed) {
      call.settle(new Fault('peer_unavailable', 'the client is closed'));
      return;
    }
    this.begin();
    this.calls += 1;
    if (isPeer(call.onlyPeer)) {
      this.startAt(call, call.onlyPeer);
      return;
    }
    // Calls of one event-loop turn share a batch; those of the next turn use the next link.
    if (this.gathering?.isGathering() === true && mayTake(this.gathering, call) && !this.isDoubted(this.gathering)) {
      this.send(call, this.gathering);
      return;
    }
    const link = this.choose(call);
    if (link !== undefined) {
      this.gathering = link;
      this.send(call, link);
    } else if (this.slots.some((slot) => slot.link?.state === 'ready' && mayTake(slot.link, call))) call.settle(new Fault('overloaded', 'too many live calls to a peer'));
    else this.wait(call);
  }

  /** The next link, round robin; one to a silent process only if there is no other. */
  private choose(call: ClientCall): LinkClient | undefined {
    let chosen: LinkClient | undefined;
    const from = this.next + 1;
    for (let i = 0; i < this.slots.length; i += 1) {
      const at = (from + i) % this.slots.length;
      const link = this.slots[at]?.link;
      if (link?.hasRoom() !== true || !mayTake(link, call)) continue;
      const isDoubted = this.isDoubted(link);
      if (isDoubted && chosen !== undefined) continue;
      chosen = link;
      this.next = at;
      if (!isDoubted) break;
    }
    return chosen;
  }

  /** The process behind the link is silent, on this link or another. */
  private isDoubted({ peer }: LinkClient): boolean {
    return this.slots.some(({ link }) => link?.isSilent() === true && mayBe(link.peer, peer));
  }

  private readonly move = (from: LinkClient, call: ClientCall): boolean => {
    const to = this.choose(call);
    if (to === undefined || this.isDoubted(to)) return false;
    from.abandon(call, new Fault('cancelled', 'another is asked instead'));
    this.send(call, to);
    return true;
  };

  abandon(call: ClientCall): void {
    this.waiting.get(call)?.cancel();
    this.waiting.delete(call);
  }

  // Nothing to do: a call that waits for a link receives nothing, and the link reads `isPaused` when it starts the call.
  pause(): void {}
  resume(): void {}

  close(): void {
    this.isClosed = true;
    for (const slot of this.slots) slot.timer?.cancel();
    for (const call of [...this.waiting.keys()]) call.fail(new Fault('peer_unavailable', 'the client is closed'));
    for (const link of [...this.links]) link.close();
  }

  private startAt(call: ClientCall, peer: LinkPeer): void {
    const link = this.linkTo(peer);
    if (link === undefined) {
      this.wait(call);
      this.seek(peer.address);
    } else if (link.hasRoomToTell()) this.send(call, link);
    else call.settle(new Fault('overloaded', 'too many live calls to a peer'));
  }

  /** The link of the earlier call if it is still open, else another open link to the same process, preferably one that is not retiring. */
  private linkTo(peer: LinkPeer): LinkClient | undefined {
    let found: LinkClient | undefined;
    for (const link of this.links) {
      if (!link.isOpen() || !mayBe(link.peer, peer)) continue;
      if (link.peer === peer) return link;
      if (found === undefined || link.state === 'ready') found = link;
    }
    return found;
  }

  private send(call: ClientCall, link: LinkClient): void {
    call.peer = link.peer;
    link.start(call);
  }

  private wait(call: ClientCall): void {
    if (this.waiting.size >= WAITING_MAX) {
      call.settle(new Fault('overloaded', 'too many live calls to a peer'));
      return;
    }
    call.carrier = this;
    const timer = this.options.clock.setTimer(Math.min(LINK_WAIT_MS, call.silenceMs || LINK_WAIT_MS, call.remainingMs()), () => call.fail(new Fault('peer_unavailable', 'no link to the peer')));
    this.waiting.set(call, timer);
    this.hurry();
  }

  /** Called when a call has to wait: connects the slots whose `dueAtMs` has passed, rather than wait for their timers (up to 30 s when there were no calls). */
  private hurry(): void {
    const nowMs = this.options.clock.monotonicMs();
    for (const slot of this.slots) if (slot.link === undefined && slot.timer !== undefined && slot.dueAtMs <= nowMs) this.connect(slot);
  }

  private begin(): void {
    if (this.isStarted || this.isClosed) return;
    this.isStarted = true;
    for (const slot of this.slots) this.connect(slot);
  }

  private open(address: string, ends: Pick<LinkClientOptions, 'onReady' | 'onRetire' | 'onClosed'>): LinkClient {
    const { clock, randomBytes, path, keepalive, tls } = this.options;
    const link = new LinkClient({
      address,
      path,
      clock,
      randomBytes,
      keepalive,
      tls,
      onSilent: this.move,
      ...ends,
      onReady: (ready) => {
        this.recognise(ready);
        ends.onReady(ready);
      },
      onClosed: (closed, unsent) => {
        this.links.delete(closed);
        ends.onClosed(closed, unsent);
        for (const call of unsent) this.start(call);
      },
    });
    this.links.add(link);
    return link;
  }

  /** Has the link share its replica with those that reach the same one. */
  private recognise(link: LinkClient): void {
    const { instance } = link.peer;
    if (instance === '') return;
    for (const { peer } of this.links) {
      if (peer === link.peer || peer.instance !== instance) continue;
      link.peer = { ...link.peer, replica: peer.replica };
      return;
    }
  }

  /** Opens the slot's link. */
  private connect(slot: Slot): void {
    const { clock } = this.options;
    slot.timer?.cancel();
    slot.timer = undefined;
    slot.link = this.open(slot.address, {
      onReady: (link) => {
        slot.failures = 0;
        // The address is up: connect its other slots too, which were waiting for this one (`isLeftToAnother`). Waiting calls start on this link now.
        for (const other of this.slots) if (other.address === slot.address && other.link === undefined && other.timer === undefined) this.connect(other);
        slot.timer = clock.setTimer(RECYCLE_MS * (0.8 + 0.4 * this.fraction()), () => link.retire(), { unref: true });
        this.startWaiting();
      },
      onRetire: (link) => {
        if (slot.link === link) this.reconnect(slot);
      },
      onClosed: (link) => {
        if (slot.link !== link) return;
        if (!this.isClosed) this.linksLost += 1;
        this.reconnect(slot);
      },
    });
  }

  /** Opens one connection after the other to `address`, as long as a call waits for a process there that no link reaches. */
  private seek(address: string): void {
    if (this.sought.has(address)) return;
    const search = { misses: 0 };
    this.sought.set(address, search);
    this.look(address, search);
  }

  private look(address: string, search: { misses: number }): void {
    const { clock } = this.options;
    // Without a ready link to this address, stop: when one becomes ready, the waiting calls start again and begin a new search.
    const isAnswered = this.slots.some((slot) => slot.address === address && slot.link?.state === 'ready');
    if (this.isClosed || !isAnswered || !this.isAwaited(address)) {
      this.sought.delete(address);
      return;
    }
    let isFound = false;
    this.open(address, {
      onReady: (link) => {
        for (const { onlyPeer } of this.waiting.keys()) isFound ||= isPeer(onlyPeer) && mayBe(onlyPeer, link.peer);
        if (!isFound) {
          link.close();
          return;
        }
        this.sought.delete(address);
        clock.setTimer(FOUND_MS, () => link.retire(), { unref: true });
        this.startWaiting();
      },
      onRetire: () => undefined,
      onClosed: () => {
        if (isFound) return;
        clock.setTimer(this.pauseMs(search.misses), () => this.look(address, search), { unref: true });
        search.misses += 1;
      },
    });
  }

  private isAwaited(address: string): boolean {
    for (const { onlyPeer } of this.waiting.keys()) if (isPeer(onlyPeer) && onlyPeer.address === address) return true;
    return false;
  }

  /**
   * Schedules the next attempt to connect the slot, with no limit on their number. Pauses have jitter and double, from 50 ms
   * up to 2 s while there are calls, and up to 30 s while there are none, until one comes. Only one slot per address tries
   * while the address does not answer.
   */
  private reconnect(slot: Slot): void {
    const { clock } = this.options;
    slot.timer?.cancel();
    slot.timer = undefined;
    slot.link = undefined;
    if (this.isClosed || this.isLeftToAnother(slot)) return;
    const isUnasked = this.calls === slot.callsBefore;
    slot.callsBefore = this.calls;
    const pauseMs = this.pauseMs(slot.failures, isUnasked ? BACKOFF_UNASKED_MAX_MS : BACKOFF_MAX_MS);
    slot.dueAtMs = clock.monotonicMs() + (isUnasked ? Math.min(pauseMs, BACKOFF_MIN_MS) : pauseMs);
    slot.timer = clock.setTimer(pauseMs, () => this.connect(slot), { unref: true });
    slot.failures += 1;
  }

  /** Another slot of this address is connecting or about to: this one connects once that one is ready. */
  private isLeftToAnother(slot: Slot): boolean {
    return this.slots.some((other) => other !== slot && other.address === slot.address && (other.link === undefined ? other.timer !== undefined : other.link.state === 'connecting'));
  }

  private pauseMs(failures: number, ceilingMs = BACKOFF_MAX_MS): number {
    const ceiling = Math.min(ceilingMs, BACKOFF_MIN_MS * 2 ** Math.min(failures, 10));
    return ceiling * (0.5 + 0.5 * this.fraction());
  }

  private startWaiting(): void {
    const calls = [...this.waiting];
    this.waiting.clear();
    for (const [call, timer] of calls) {
      timer.cancel();
      this.start(call);
    }
  }

  /** Random number, uniform in [0, 1). */
  private fraction(): number {
    const bytes = this.options.randomBytes(2);
    return ((bytes[0] ?? 0) * 256 + (bytes[1] ?? 0)) / 65_536;
  }
}
