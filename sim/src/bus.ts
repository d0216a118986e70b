/** A bus that keeps messages until they are acknowledged, duplicates and reorders them, and is sometimes wiped. */
import type { Bus, BusMessage, ConsumeOptions, Verdict } from '@signalbox/bus/bus';
import { Fault } from '@signalbox/kernel/fault';
import type { Life } from './life.js';
import type { Random } from './random.js';
import type { Scheduler } from './scheduler.js';

/** Only patterns that end with `>` are used here. */
const subjectMatches = (pattern: string, subject: string): boolean => subject.startsWith(pattern.slice(0, -1));

interface Stored {
  readonly subject: string;
  readonly payload: Uint8Array;
  deliveries: number;
}

interface Consumer {
  readonly life: Life;
  readonly options: ConsumeOptions;
  readonly handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>;
  isBusy: boolean;
}

/** JetStream's deduplication window for message ids. */
const DEDUPLICATION_MS = 120_000;
const AGAIN_MS = 200;
/** A batch whose consumer died is redelivered after this. */
const ACKNOWLEDGE_WAIT_MS = 5_000;

export class SimBus {
  isUp = true;
  /** Probability that a message is duplicated; below, further faults of a message. */
  copy = 0;
  lostAcknowledgement = 0;
  lostAnnouncement = 0;
  /** Messages that could not be handled in any delivery. */
  readonly poison: Stored[] = [];
  private queue: Stored[] = [];
  private readonly ids = new Map<string, number>();
  private readonly consumers = new Set<Consumer>();
  private readonly listeners = new Set<{ readonly life: Life; readonly subject: string; readonly handler: (message: BusMessage) => void }>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly random: Random,
  ) {}

  calm(): void {
    this.isUp = true;
    this.copy = 0;
    this.lostAcknowledgement = 0;
    this.lostAnnouncement = 0;
    this.wake();
  }

  /** Deletes everything stored, as after the loss of its disk. */
  wipe(): void {
    this.queue = [];
    this.ids.clear();
  }

  /** The bus as one process sees it. */
  openFor(life: Life): Bus {
    const { random, scheduler } = this;
    return {
      publish: (subject, payload, options) =>
        new Promise((resolve, reject) => {
          if (life.isDead) return;
          const copy = Uint8Array.from(payload);
          scheduler.at(0.1 + random.next(), () => {
            const isLost = !this.isUp;
            scheduler.say(() => `${life.name} publishes ${subject} ${options?.messageId ?? ''}${isLost ? ' (bus away)' : ''}`);
            if (!isLost) this.store(subject, copy, options?.messageId);
            const isUnknown = isLost || random.chance(this.lostAcknowledgement);
            scheduler.at(0.1 + random.next() * 2, () => life.run(() => (isUnknown ? reject(new Fault('store_unavailable', 'the bus')) : resolve())));
          });
        }),
      announce: (subject, payload) => {
        if (!this.isUp || life.isDead) return;
        const copy = Uint8Array.from(payload);
        for (const listener of this.listeners) {
          if (!subjectMatches(listener.subject, subject)) continue;
          const isLost = random.chance(this.lostAnnouncement);
          scheduler.say(() => `${life.name} announces ${subject} to ${listener.life.name}${isLost ? ' (lost)' : ''}`);
          if (isLost) continue;
          const times = random.chance(this.copy) ? 2 : 1;
          for (let i = 0; i < times; i += 1) scheduler.at(0.1 + random.next() * 5, () => listener.life.run(() => listener.handler({ subject, payload: copy, deliveries: 1 })));
        }
      },
      listen: (subject, handler) => {
        const listener = { life, subject, handler };
        this.listeners.add(listener);
        life.onDeath(() => this.listeners.delete(listener));
        return Promise.resolve({ stop: () => Promise.resolve(void this.listeners.delete(listener)) });
      },
      consume: (options, handler) => {
        const consumer: Consumer = { life, options, handler, isBusy: false };
        this.consumers.add(consumer);
        life.onDeath(() => this.consumers.delete(consumer));
        this.wake();
        return Promise.resolve({ stop: () => Promise.resolve(void this.consumers.delete(consumer)) });
      },
      isConnected: () => this.isUp,
      onConnectionChange: () => () => undefined,
      close: () => Promise.resolve(),
    };
  }

  private store(subject: string, payload: Uint8Array, id: string | undefined): void {
    const { scheduler, random } = this;
    if (id !== undefined) {
      if ((this.ids.get(id) ?? -Infinity) > scheduler.nowMs - DEDUPLICATION_MS) return;
      this.ids.set(id, scheduler.nowMs);
    }
    const times = random.chance(this.copy) ? 2 : 1;
    for (let i = 0; i < times; i += 1) this.queue.push({ subject, payload, deliveries: 0 });
    this.wake();
  }

  private wake(): void {
    for (const consumer of this.consumers) {
      if (consumer.isBusy || consumer.life.isDead) continue;
      consumer.isBusy = true;
      this.scheduler.at(1 + this.random.next() * consumer.options.batchWaitMs, () => this.deliver(consumer));
    }
  }

  private deliver(consumer: Consumer): void {
    const { random, scheduler } = this;
    const batch: Stored[] = [];
    const most = random.int(1, 4);
    while (this.isUp && batch.length < most && this.queue.length > 0) batch.push(...this.queue.splice(random.int(0, this.queue.length - 1), 1));
    if (batch.length === 0) {
      consumer.isBusy = false;
      return;
    }
    let isSettled = false;
    const settle = (verdicts: readonly Verdict[]): void => {
      if (isSettled) return;
      isSettled = true;
      consumer.isBusy = false;
      for (const [index, message] of batch.entries()) {
        const verdict = verdicts[index] ?? 'again';
        if (verdict === 'poison') this.poison.push(message);
        else if (verdict === 'again' || random.chance(this.lostAcknowledgement)) this.again(message);
      }
      this.wake();
    };
    for (const message of batch) message.deliveries += 1;
    const forget = consumer.life.onDeath(() => scheduler.at(ACKNOWLEDGE_WAIT_MS, () => settle([])));
    consumer.life.run(() => {
      consumer.handler(batch.map(({ subject, payload, deliveries }) => ({ subject, payload, deliveries }))).then(
        (verdicts) => {
          if (consumer.life.isDead) return;
          forget();
          settle(verdicts);
        },
        () => settle([]),
      );
    });
  }

  private again(message: Stored): void {
    this.scheduler.at(AGAIN_MS * this.random.next(), () => {
      this.queue.push(message);
      this.wake();
    });
  }
}
