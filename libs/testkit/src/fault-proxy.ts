/** A TCP proxy between a client and a server that can be made to fail: cut, freeze, delay, lose replies. */
import { connect, createServer, type Socket } from 'node:net';
import { systemClock } from '@signalbox/runtime/clock';

export interface FaultProxy {
  readonly host: string;
  readonly port: number;
  /** Breaks every open connection; new ones are refused until `heal`. */
  cut(): void;
  /** Breaks every open connection; new ones work. */
  cutOnce(): void;
  /** Keeps connections open and moves no byte either way until `heal`. New connections open and hang. */
  freeze(): void;
  /** Holds each chunk back by `ms`, both ways. */
  delay(ms: number): void;
  /** Requests arrive, replies are thrown away, until `heal`. */
  dropReplies(): void;
  /** Ends all faults; held bytes go out. */
  heal(): void;
  /** Connections open now. */
  connections(): number;
  /** Safe to call twice. */
  close(): Promise<void>;
}

type Mode = 'pass' | 'refuse' | 'frozen' | 'mute';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/** Listens on a free port of loopback and passes everything to `target`. */
export async function createFaultProxy(target: { readonly host: string; readonly port: number }): Promise<FaultProxy> {
  let mode: Mode = 'pass';
  let delayMs = 0;
  const pairs = new Set<Pair>();
  const held: (() => void)[] = [];

  const pass = (from: Socket, to: Socket, isReply: boolean): void => {
    from.on('data', (chunk) => {
      if (isReply && mode === 'mute') return;
      const write = (): void => {
        if (!to.destroyed) to.write(chunk);
      };
      // Once something is held, later bytes queue behind it.
      const move = (): void => (mode === 'frozen' ? void held.push(write) : write());
      if (delayMs > 0) systemClock.setTimer(delayMs, move, { unref: true });
      else move();
    });
  };

  const server = createServer((client) => {
    if (mode === 'refuse') {
      client.on('error', () => undefined);
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target.port, target.host);
    const pair: Pair = { client, server: upstream };
    pairs.add(pair);
    client.setNoDelay(true);
    upstream.setNoDelay(true);
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      socket.on('error', end);
      socket.on('close', end);
    }
    pass(client, upstream, false);
    pass(upstream, client, true);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;

  const breakAll = (): void => {
    held.length = 0;
    for (const { client, server: upstream } of [...pairs]) {
      client.resetAndDestroy();
      upstream.destroy();
    }
    pairs.clear();
  };
  let closed: Promise<void> | undefined;

  return {
    host: '127.0.0.1',
    port,
    cut: () => {
      mode = 'refuse';
      breakAll();
    },
    cutOnce: breakAll,
    freeze: () => {
      mode = 'frozen';
    },
    delay: (ms) => {
      delayMs = ms;
    },
    dropReplies: () => {
      mode = 'mute';
    },
    heal: () => {
      mode = 'pass';
      delayMs = 0;
      for (const write of held.splice(0)) write();
    },
    connections: () => pairs.size,
    close: () => {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        breakAll();
      });
      return closed;
    },
  };
}
