/** A collector of traces on loopback: takes OTLP over HTTP as JSON and keeps what it took. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  /** `service.name` of who sent it. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string;
  /** Trace ids of its links. */
  readonly linkedTraceIds: readonly string[];
  readonly isError: boolean;
  /** Values as text. */
  readonly attributes: Readonly<Record<string, string>>;
}

export interface OtlpCollector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string;
  spans(): readonly CollectedSpan[];
  /** All that was received, as it came. */
  text(): string;
  /** Requests that are left without an answer. */
  unanswered(): number;
  /** From now on it answers with this status, or never, and keeps nothing; 200 = it takes spans again. */
  answerWith(status: number | 'never'): void;
  stop(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
interface SpanMessage {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string }[];
  readonly status?: { readonly code?: number };
  readonly attributes: readonly Attribute[];
}
interface ExportMessage {
  readonly resourceSpans: readonly { readonly resource: { readonly attributes: readonly Attribute[] }; readonly scopeSpans: readonly { readonly spans: readonly SpanMessage[] }[] }[];
}

const STATUS_ERROR = 2;

function textOf({ value }: Attribute): string {
  const [only] = Object.values(value);
  return typeof only === 'object' ? JSON.stringify(only) : String(only);
}

const recordOf = (attributes: readonly Attribute[]): Readonly<Record<string, string>> => Object.fromEntries(attributes.map((attribute) => [attribute.key, textOf(attribute)]));

function spansOf({ resourceSpans }: ExportMessage): readonly CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = recordOf(resource.attributes)['service.name'] ?? '';
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId = '', links = [], status, attributes }) => ({ service, name, traceId, spanId, parentSpanId, linkedTraceIds: links.map((link) => link.traceId), isError: status?.code === STATUS_ERROR, attributes: recordOf(attributes) })),
    );
  });
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  let text = '';
  let status: number | 'never' = 200;
  const unanswered: ServerResponse[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts).toString('utf8');
      const isTaken = status === 200 && request.method === 'POST' && request.url === '/v1/traces';
      if (isTaken) {
        text += body;
        spans.push(...spansOf(JSON.parse(body) as ExportMessage));
      }
      if (status === 'never') {
        unanswered.push(response);
        return;
      }
      response.writeHead(isTaken || status !== 200 ? status : 404, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => spans,
    text: () => text,
    unanswered: () => unanswered.length,
    answerWith: (wanted) => {
      status = wanted;
    },
    stop: async () => {
      // Refused for good: an exporter whose connection breaks tries again for ten seconds, and keeps the process of the test alive.
      status = 400;
      await Promise.all(unanswered.filter(({ closed }) => !closed).map((response) => new Promise((resolve) => response.once('close', resolve).writeHead(400).end())));
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
