/** The bus over NATS JetStream. Only this file and that of its streams know the `nats` package; server 2.9 is enough. */
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import type { Log } from '@signalbox/runtime/log';
import { AckPolicy, checkJsError, connect, createInbox, DeliverPolicy, Events, headers, nanos, type ConnectionOptions, type JetStreamManager, type JetStreamPublishOptions, type JsMsg, NatsError, type NatsConnection } from 'nats';
import { toJsMsg } from 'nats/lib/jetstream/jsmsg.js';
import type { Bus, BusMessage, ConsumeOptions, Subscription, Verdict } from './bus.js';
import { hostsOf, identityOf, isEncrypted } from './nats-url.js';
import { ensureStream, streamOf, type KeptStream } from './jetstream-streams.js';
import { deadLetterSubject, DELIVERIES_MAX } from './subjects.js';

export interface JetStreamOptions {
  /** `nats://host:port`, or `tls://` for an encrypted connection; several with commas; may hold user and password. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Shown in the server's connection list. */
  readonly name: string;
  /** Copies of each stream, 1 (default) to 5: 3 on a cluster. */
  readonly replicas?: number;
}

const PUBLISH_TIMEOUT_MS = 5_000;
/** A handler that takes longer gets its batch again: well above the slowest transaction of billing. */
const ACK_WAIT_MS = 30_000;
/** How long one request for messages stays open at the server while none come: each wakes this process and the server. */
const FETCH_EXPIRES_MS = 5_000;
/** Time for an answer to arrive. */
const ANSWER_MS = 2_000;
/** Pauses before a message comes again, by delivery. */
const AGAIN_MS = [50, 200, 1_000, 5_000] as const;
/** Pause after the server could not be asked. */
const RETRY_MS = 500;

/**
 * Connects, and reconnects for ever. Rejects with Fault `store_unavailable`, also when the server has no JetStream.
 * A stream is made by who first consumes from it or publishes to it, so that a service that only announces and listens
 * needs no right to make one. Answers come to inboxes below `_INBOX.<user>`, which no other user may read.
 */
export async function connectJetStreamBus({ url, clock, log, name, replicas = 1 }: JetStreamOptions): Promise<Bus> {
  const hosts = hostsOf(url);
  const settings: ConnectionOptions = {
    // Without the password: the client takes the first digits after a colon for the port, also those a password begins with.
    servers: [...hosts],
    name,
    maxReconnectAttempts: -1,
    // Otherwise a second refusal in a row ends the connection for good: a server that comes back before its users are set up refuses everybody for a while.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: 5_000,
    // Certificates as Node's own: NODE_EXTRA_CA_CERTS adds an authority.
    ...(isEncrypted(url) ? { tls: {} } : {}),
    ...identityOf(url),
  };
  let connection: NatsConnection;
  let manager: JetStreamManager;
  try {
    connection = await connect(settings);
  } catch (error) {
    throw new Fault('store_unavailable', `NATS at NATS_URL (${hosts.join(', ')}) ${refusalOf(codeOf(error))}.`, { cause: error });
  }
  try {
    manager = await connection.jetstreamManager();
  } catch (error) {
    await connection.close();
    throw new Fault('store_unavailable', `NATS at NATS_URL (${hosts.join(', ')}) gives us no JetStream (${codeOf(error)}): ${codeOf(error) === 'TIMEOUT' ? 'if it is a cluster, wait until that has a leader; else ' : ''}start it with --jetstream, and allow this user $JS.API.INFO.`, { cause: error });
  }
  return new JetStreamBus(connection, manager, clock, log, replicas, settings.inboxPrefix);
}

/** The server's own code for a message above `max_msg_size` of a stream. */
const ABOVE_SIZE_OF_STREAM = 10_054;

/** Above `max_payload` of the server, which its client knows, or above what an administrator set for the stream. */
const isTooLarge = (error: unknown): boolean => error instanceof NatsError && (codeOf(error) === 'MAX_PAYLOAD_EXCEEDED' || error.api_error?.err_code === ABOVE_SIZE_OF_STREAM);

/** The client knows the limit as of its connection, and a server does not tell it of another one. So long a connection is old enough to be made anew for that. */
const LIMIT_KNOWN_MS = 60_000;

/** Of the client's error, such as CONNECTION_REFUSED; it names no secret. */
const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown');

/** A server that has another user is told from one that is not there. */
const refusalOf = (code: string): string => (/^AUTH/.test(code) ? `refused (wrong user or password, ${code})` : `did not answer (${code})`);

/** Of the server's answer; it names streams and consumers. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown');

/** Whether the server only says that this was all: nothing there (404), time over (408), or a request it gave up (409), unless its consumer is gone or unfit. */
const isNoMore = ({ code, message }: NatsError): boolean => code === '404' || code === '408' || (code === '409' && !/deleted|push based/i.test(message));

class JetStreamBus implements Bus {
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #connectionListeners = new Set<(isConnected: boolean) => void>();
  readonly #subscriptions = new Set<Subscription>();
  readonly #replicas: number;
  readonly #inboxPrefix: string | undefined;
  /** Streams that are there as far as we know, or are being made, by name. */
  readonly #streams = new Map<string, Promise<void>>();
  #reconnects = 0;
  #connectedAtMs: number;
  #connected = true;
  #closed: Promise<void> | undefined;

  constructor(connection: NatsConnection, manager: JetStreamManager, clock: Clock, log: Log, replicas: number, inboxPrefix: string | undefined) {
    this.#connection = connection;
    this.#manager = manager;
    this.#clock = clock;
    this.#log = log;
    this.#connectedAtMs = clock.monotonicMs();
    this.#replicas = replicas;
    this.#inboxPrefix = inboxPrefix;
    void this.#watch();
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type === Events.Disconnect) this.#setConnected(false);
      else if (status.type === Events.Reconnect) {
        // Perhaps to a server that lost its state.
        this.#reconnects += 1;
        this.#connectedAtMs = this.#clock.monotonicMs();
        this.#streams.clear();
        this.#setConnected(true);
      }
      // An announcement that is refused has no other way to say so.
      else if (status.type === Events.Error) this.#log.warn('The bus refused something.', { error: String(status.data), ...status.permissionContext });
    }
    this.#setConnected(false);
  }

  #setConnected(isConnected: boolean): void {
    if (this.#connected === isConnected) return;
    this.#connected = isConnected;
    if (isConnected) this.#log.info('The bus is connected again.');
    else if (this.#closed === undefined) this.#log.warn('The bus lost its connection.');
    for (const listener of this.#connectionListeners) listener(isConnected);
  }

  async publish(subject: string, payload: Uint8Array, options: { readonly messageId?: string } = {}): Promise<void> {
    // Fail at once while disconnected: the client would queue it and the caller would wait for nothing.
    if (!this.isConnected()) throw new Fault('store_unavailable', 'The bus is not connected.');
    try {
      await this.#keep(subject, payload, { timeout: PUBLISH_TIMEOUT_MS, ...(options.messageId === undefined ? {} : { msgID: options.messageId }) });
    } catch (error) {
      if (isTooLarge(error)) {
        this.#askLimitAgain(error);
        throw new Fault('bad_message', 'The bus takes no message of this size.', { cause: error });
      }
      throw new Fault('store_unavailable', 'The bus did not confirm a message.', { cause: error });
    }
  }

  /** Connects anew, at most once a minute, since the limit may have been raised meanwhile. */
  #askLimitAgain(error: unknown): void {
    if (codeOf(error) !== 'MAX_PAYLOAD_EXCEEDED' || this.#clock.monotonicMs() - this.#connectedAtMs < LIMIT_KNOWN_MS) return;
    this.#connectedAtMs = this.#clock.monotonicMs();
    this.#connection.reconnect().catch(() => undefined);
  }

  async #keep(subject: string, payload: Uint8Array, options: Partial<JetStreamPublishOptions>): Promise<void> {
    const stream = streamOf(subject);
    if (stream !== undefined) await this.#ensureStream(stream);
    try {
      await this.#connection.jetstream().publish(subject, payload, options);
    } catch (error) {
      // A server that lost its state knows no stream.
      if (stream !== undefined) this.#streams.delete(stream.name);
      throw error;
    }
  }

  #ensureStream(stream: KeptStream): Promise<void> {
    const known = this.#streams.get(stream.name);
    if (known !== undefined) return known;
    const made = ensureStream(this.#manager, stream, this.#replicas, this.#log).catch((error: unknown) => {
      this.#streams.delete(stream.name);
      throw error;
    });
    this.#streams.set(stream.name, made);
    return made;
  }

  announce(subject: string, payload: Uint8Array): void {
    if (!this.isConnected()) return;
    try {
      this.#connection.publish(subject, payload);
    } catch {
      // At most once: a lost connection loses it.
    }
  }

  async listen(subject: string, handler: (message: BusMessage) => void): Promise<Subscription> {
    const refusals: Error[] = [];
    const inner = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) {
          // Kept for the start only; later ones are told of by #watch.
          if (refusals.length === 0) refusals.push(error);
          return;
        }
        try {
          handler({ subject: message.subject, payload: message.data, deliveries: 1 });
        } catch (failure) {
          this.#log.error('A listener of the bus failed.', { subject }, failure);
        }
      },
    });
    // Only once the server knows: what is published after this resolves is heard.
    await this.#connection.flush().catch(() => undefined);
    if (refusals.length > 0) throw new Fault('store_unavailable', 'The bus does not let this service listen.', { cause: refusals[0] });
    return {
      stop: () => {
        inner.unsubscribe();
        return Promise.resolve();
      },
    };
  }

  async consume(options: ConsumeOptions, handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>): Promise<Subscription> {
    const stream = streamOf(options.subject);
    if (stream === undefined) throw new Fault('internal_error', 'No stream keeps this subject.');
    await this.#ensureConsumer(stream, options);
    const { name } = stream;
    let stopped = false;
    const isStopped = (): boolean => stopped || this.#closed !== undefined;
    const stopping = new AbortController();
    const work = this.#pull(stream, options, handler, isStopped, stopping.signal);
    const subscription: Subscription = {
      lag: async () => {
        const { num_pending: waiting, num_ack_pending: inWork } = await this.#manager.consumers.info(name, options.durable);
        return waiting + inWork;
      },
      stop: async () => {
        stopped = true;
        stopping.abort();
        this.#subscriptions.delete(subscription);
        await work;
      },
    };
    this.#subscriptions.add(subscription);
    return subscription;
  }

  async #ensureConsumer(stream: KeptStream, options: ConsumeOptions): Promise<void> {
    const config = {
      durable_name: options.durable,
      filter_subject: options.subject,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(ACK_WAIT_MS),
      // Poison is counted by us, so that its copy is stored before the original goes.
      max_deliver: -1,
      max_ack_pending: Math.max(1_000, options.batchMessagesMax * 8),
    };
    try {
      await this.#ensureStream(stream);
      await this.#manager.consumers.add(stream.name, config);
    } catch (error) {
      const exists = await this.#manager.consumers.info(stream.name, options.durable).then(() => true, () => false);
      if (!exists) throw new Fault('store_unavailable', `The bus could not make the consumer ${options.durable} of its stream ${stream.name} (${messageOf(error)}).`, { cause: error });
    }
  }

  async #pull(stream: KeptStream, options: ConsumeOptions, handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>, isStopped: () => boolean, signal: AbortSignal): Promise<void> {
    let reconnects = this.#reconnects;
    let dueAtMs = this.#clock.monotonicMs();
    /** Messages of the batch before; 0 = none lay there. */
    let before = 0;
    while (!isStopped()) {
      try {
        if (reconnects !== this.#reconnects) {
          // A request for messages of a consumer that is gone looks like one that found none.
          const made = this.#reconnects;
          await this.#ensureConsumer(stream, options);
          reconnects = made;
        }
        const waitMs = dueAtMs - this.#clock.monotonicMs();
        if (before > 0 && before < options.batchMessagesMax && waitMs > 0) {
          await this.#pause(waitMs, signal);
          if (isStopped()) return;
        }
        const batch = before > 0 ? await this.#ask(stream.name, options.durable, { batch: options.batchMessagesMax }) : await this.#await(stream.name, options, signal);
        before = batch.length;
        if (batch.length === 0) continue;
        dueAtMs = this.#clock.monotonicMs() + options.batchWaitMs;
        await this.#handle(batch, handler, options);
      } catch (error) {
        if (isStopped()) return;
        this.#log.debug('The bus could not be asked for messages.', { durable: options.durable, error: error instanceof Error ? error.name : 'unknown' });
        await this.#pause(RETRY_MS, signal);
        // A server that lost its state knows neither stream nor consumer.
        this.#streams.delete(stream.name);
        if (this.isConnected() && !isStopped()) await this.#ensureConsumer(stream, options).catch(() => undefined);
      }
    }
  }

  /** One message, waited for, and what lies there with it, up to the limit: no more is waited for, so that no open request is left behind whose messages nobody would take. */
  async #await(stream: string, options: ConsumeOptions, signal: AbortSignal): Promise<readonly JsMsg[]> {
    const first = await this.#ask(stream, options.durable, { batch: 1, expiresMs: FETCH_EXPIRES_MS }, signal);
    if (first.length === 0 || options.batchMessagesMax === 1 || signal.aborted) return first;
    // What was taken is handled, whatever becomes of the rest.
    return [...first, ...(await this.#ask(stream, options.durable, { batch: options.batchMessagesMax - 1 }).catch(() => []))];
  }

  /**
   * Asks for messages once, for those that lie there or for `expiresMs`, and gives the inbox of the answers back. The client's own `fetch` keeps it for ever, here and at the
   * server, where fewer messages come than were asked for (nats 2.29.3: it counts them, and drops the subscription at the last only).
   * `giveUp` ends it early: the server is told, and what it had sent before it knew is taken.
   */
  async #ask(stream: string, durable: string, { batch, expiresMs }: { readonly batch: number; readonly expiresMs?: number }, giveUp?: AbortSignal): Promise<JsMsg[]> {
    // The client would keep the request until it is connected again.
    if (!this.isConnected()) throw new Fault('store_unavailable', 'The bus is not connected.');
    const messages: JsMsg[] = [];
    const inbox = createInbox(this.#inboxPrefix);
    let end: (problem?: Error) => void = () => undefined;
    const isOver = new Promise<Error | undefined>((resolve) => (end = resolve));
    const source = this.#connection.subscribe(inbox, {
      callback: (error, message) => {
        const problem = error ?? checkJsError(message);
        if (problem !== null) end(isNoMore(problem) ? undefined : problem);
        else if (messages.push(toJsMsg(message)) >= batch) end();
      },
    });
    void source.closed.then(() => end());
    // A server answers each request of a consumer that it has, at its end at the latest. Of one that is gone it says nothing, for as long as it is asked.
    let limit = this.#clock.setTimer((expiresMs ?? 0) + ANSWER_MS, () => end(new Fault('store_unavailable', 'The bus did not answer.')), { unref: true });
    const forget = this.onConnectionChange((isConnected) => isConnected || end());
    const leave = (): void => {
      limit.cancel();
      limit = this.#clock.setTimer(ANSWER_MS, () => end(), { unref: true });
      source.drain().catch(() => end());
    };
    giveUp?.addEventListener('abort', leave);
    try {
      const asked = { batch, ...(expiresMs === undefined ? { no_wait: true } : { expires: nanos(expiresMs) }) };
      this.#connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, Buffer.from(JSON.stringify(asked)), { reply: inbox });
      if (giveUp?.aborted === true) leave();
      const problem = await isOver;
      // What arrived before the failure is handled; the next request meets the failure again.
      if (problem !== undefined && messages.length === 0) throw problem;
    } finally {
      giveUp?.removeEventListener('abort', leave);
      forget();
      limit.cancel();
      source.unsubscribe();
    }
    return messages;
  }

  async #handle(batch: readonly JsMsg[], handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>, options: ConsumeOptions): Promise<void> {
    let verdicts: readonly Verdict[] = [];
    try {
      verdicts = await handler(batch.map((message) => ({ subject: message.subject, payload: message.data, deliveries: message.info.deliveryCount })));
    } catch (error) {
      this.#log.error('A consumer of the bus failed; its batch comes again.', { durable: options.durable, messages: batch.length }, error);
    }
    const burials: Promise<void>[] = [];
    for (const [index, message] of batch.entries()) {
      const verdict = verdicts[index];
      const deliveries = message.info.deliveryCount;
      if (verdict === 'done') message.ack();
      else if (verdict === 'poison' || (verdict === undefined && deliveries >= DELIVERIES_MAX)) burials.push(this.#bury(message, options));
      else message.nak(AGAIN_MS[Math.min(deliveries, AGAIN_MS.length) - 1] ?? 5_000);
    }
    await Promise.all(burials);
  }

  /** Copy first, then end the original: a crash between the two leaves one copy too many, never one too few. */
  async #bury(message: JsMsg, options: ConsumeOptions): Promise<void> {
    try {
      const reasons = headers();
      reasons.set('Durable', options.durable);
      await this.#keep(deadLetterSubject(message.subject), message.data, { timeout: PUBLISH_TIMEOUT_MS, headers: reasons, msgID: `dlq/${options.durable}/${message.info.stream}/${message.seq}` });
      message.term();
      this.#log.warn('A message was moved to the dead letters.', { subject: message.subject, durable: options.durable, sequence: message.seq });
    } catch {
      message.nak(AGAIN_MS[3]);
    }
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        // The signal lives as long as the consumer.
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = this.#clock.setTimer(ms, end);
      signal.addEventListener('abort', end);
    });
  }

  isConnected(): boolean {
    return this.#connected && this.#closed === undefined;
  }

  onConnectionChange(listener: (isConnected: boolean) => void): () => void {
    this.#connectionListeners.add(listener);
    return () => void this.#connectionListeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await Promise.all([...this.#subscriptions].map((subscription) => subscription.stop()));
      await (this.#connection.isClosed() ? Promise.resolve() : this.#connection.drain().catch(() => this.#connection.close()));
    })();
    return this.#closed;
  }
}
