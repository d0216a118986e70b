/** One `/metrics`, `/livez` and `/readyz` for all services of the all-in-one. */
import { doorError } from '@signalbox/runtime/config';
import type { Service } from '@signalbox/runtime/lifecycle';
import { createServer } from 'node:http';
import { request } from '@signalbox/runtime/http-client';

export interface MetricsDoor {
  readonly port: number;
  stop(): Promise<void>;
}

const SCRAPE_MS_MAX = 5_000;
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Joins the expositions of several services (Prometheus text format 0.0.4): each metric has its HELP and TYPE once, and
 * its samples in one block, as the format requires. The label `service` distinguishes the samples.
 */
export function joinExpositions(texts: readonly string[]): string {
  const blocks = new Map<string, { readonly head: string[]; readonly samples: string[] }>();
  for (const text of texts) {
    let block = { head: [] as string[], samples: [] as string[] };
    for (const line of text.split('\n')) {
      const [, kind, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (name === undefined) {
        if (line !== '') block.samples.push(line);
        continue;
      }
      const known = blocks.get(name);
      if (known === undefined) blocks.set(name, (block = { head: [], samples: [] }));
      else block = known;
      if (!block.head.some((told) => told.startsWith(`# ${kind ?? ''} `))) block.head.push(line);
    }
  }
  return [...blocks.values()].map(({ head, samples }) => [...head, ...samples, ''].join('\n')).join('');
}

async function scrape(service: Service): Promise<string> {
  const port = service.ports()['metrics'];
  if (port === undefined) return '';
  const { statusCode, body } = await request(`http://127.0.0.1:${String(port)}/metrics`, { signal: AbortSignal.timeout(SCRAPE_MS_MAX) });
  const text = await body.text();
  return statusCode === 200 ? text : '';
}

/** Listens on `host`:`port`; rejects if it cannot. `services` is read at each request. A service that does not answer is left out of that scrape. */
export async function openMetricsDoor({ host, port, services }: { readonly host: string; readonly port: number; readonly services: readonly Service[] }): Promise<MetricsDoor> {
  const server = createServer((asked, response) => {
    const path = (asked.url ?? '').split('?')[0];
    if (path === '/livez') response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n');
    else if (path === '/readyz') {
      const late = services.filter((service) => !service.ready()).map(({ name }) => name);
      response.writeHead(late.length === 0 ? 200 : 503, { 'content-type': 'text/plain' }).end(late.length === 0 ? 'ready\n' : `not ready: ${late.join(', ')}\n`);
    } else if (path === '/metrics') {
      void Promise.all(services.map((service) => scrape(service).catch(() => ''))).then((texts) => response.writeHead(200, { 'content-type': CONTENT_TYPE }).end(joinExpositions(texts)));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(doorError(error, { host, port, variable: 'METRICS_PORT' })));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
