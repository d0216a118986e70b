/** What a link runs on: frames over a connection of their own (framed-connection.ts), or a gRPC stream (grpc-transport.ts). */
import type { LinkItem } from './link-item.js';

export interface LinkTransport {
  /** Sends items as one batch. False = write no bodies until `onDrain`. */
  write(items: readonly LinkItem[]): boolean;
  /** This side sends no more. The transport closes once the other side has said so too. */
  end(): void;
  /** Cuts now. Safe to call twice. */
  close(): void;
}

export interface LinkListener {
  /** One batch in the form of link.v1.Batch, which link-codec.ts reads. */
  onBatch(batch: Buffer): void;
  onDrain(): void;
  /** The other side sends no more. */
  onEnd(): void;
  /** Called once, last; also after `close`. */
  onClosed(): void;
}
