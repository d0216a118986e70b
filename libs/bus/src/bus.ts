/** Publish and consume. Transport only, never the record: consumers deduplicate (docs/adr/0005-nats-client.md). */

export interface BusMessage {
  readonly subject: string;
  readonly payload: Uint8Array;
  /**
   * From 1; above 1 the message was delivered before. NATS before 2.10 may once tell 1 of a message that comes again, when the
   * request it was meant for ended at that moment, and counts on as it should (nats-io/nats.net.v1, issue 812): never too high.
   */
  readonly deliveries: number;
}

export interface Subscription {
  /** Stops delivery; a batch in work is finished first. Safe to call twice. */
  stop(): Promise<void>;
  /** Of `consume`: messages that are stored and not yet acknowledged under the durable name. Rejects when the server does not say. */
  lag?(): Promise<number>;
}

export interface ConsumeOptions {
  /** Durable name: consumers of one name share the messages. */
  readonly durable: string;
  /** Subject filter, such as `usage.v1.>`. */
  readonly subject: string;
  readonly batchMessagesMax: number;
  /** From the beginning of one batch to that of the next, unless the one before was full: a lone message waits for nothing. */
  readonly batchWaitMs: number;
}

/**
 * What to do with a message. `again` is for a store that is away: it comes again for as long as that takes. Of a batch
 * whose handler rejects all come again, each at its fifth delivery as a dead letter.
 */
export type Verdict = 'done' | 'again' | 'poison';

export interface Bus {
  /** Durable: resolves when the message is stored, at least once. Rejects with a Fault: `bad_message` if the transport takes no message of this size, else `store_unavailable`. `messageId` lets the transport drop duplicates (best effort). */
  publish(subject: string, payload: Uint8Array, options?: { readonly messageId?: string }): Promise<void>;
  /** At most once, to whoever listens now; never throws for a lost connection. */
  announce(subject: string, payload: Uint8Array): void;
  /** Live messages of a subject pattern (`*` one token, `>` the rest), from `announce` and `publish` alike. */
  listen(subject: string, handler: (message: BusMessage) => void): Promise<Subscription>;
  /** Durable messages, in batches, one batch at a time. Verdicts in the order of the messages; unacknowledged ones come again. */
  consume(options: ConsumeOptions, handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>): Promise<Subscription>;
  isConnected(): boolean;
  /** Called on each change of `isConnected`. Returns a function that stops it. */
  onConnectionChange(listener: (isConnected: boolean) => void): () => void;
  close(): Promise<void>;
}
