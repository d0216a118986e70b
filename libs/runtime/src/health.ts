/** `/livez`, `/readyz` and `/metrics` of a service, on its own port. */
import { createServer, type Server } from 'node:http';
import { doorError } from './config.js';
import type { Metrics } from './metrics.js';

export interface HealthServer {
  /** Resolves with the port. */
  start(): Promise<number>;
  stop(): Promise<void>;
}

export interface HealthOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  readonly ready: () => boolean;
}

export function createHealthServer({ host, port, metrics, ready }: HealthOptions): HealthServer {
  const server: Server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0];
    if (path === '/livez') response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n');
    else if (path === '/readyz') {
      const isReady = ready();
      response.writeHead(isReady ? 200 : 503, { 'content-type': 'text/plain' }).end(isReady ? 'ready\n' : 'not ready\n');
    } else if (path === '/metrics') {
      metrics.registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    } else response.writeHead(404).end();
  });
  return {
    start: () =>
      new Promise((resolve, reject) => {
        const refuse = (error: Error): void => reject(doorError(error, { host, port, variable: 'METRICS_PORT' }));
        server.once('error', refuse);
        server.listen(port, host, () => {
          server.off('error', refuse);
          const address = server.address();
          resolve(typeof address === 'object' && address !== null ? address.port : port);
        });
      }),
    stop: () =>
      new Promise((resolve) => {
        if (!server.listening) {
          resolve();
          return;
        }
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
