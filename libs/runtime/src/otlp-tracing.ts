/** Spans by the OpenTelemetry SDK, exported over OTLP. Loaded by `tracing.ts` only if a collector is configured. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace, type Attributes, type Context, type SpanContext, type Span as SdkSpan, type Tracer as SdkTracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '@signalbox/kernel/clock';
import { LiveMap } from '@signalbox/kernel/live-map';
import type { Log } from './log.js';
import type { Span, SpanAttributes, Tracer, Tracing } from './span.js';

/** Most spans that wait for the collector; further ones are dropped. A span is about a kilobyte. */
const QUEUED_SPANS_MAX = 2_048;
const BATCH_SPANS_MAX = 512;
const BATCH_WAIT_MS = 1_000;
const EXPORT_TIMEOUT_MS = 5_000;
const STOP_MS_MAX = 2_000;
/** Most requests whose calls find their parent span; further requests are recorded without the calls they make. */
const LIVE_REQUESTS_MAX = 10_000;
/** Longer values are cut; ids and names are shorter. */
const VALUE_LENGTH_MAX = 256;

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const KINDS = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER };

export interface OtlpOptions {
  readonly endpoint: string;
  /** Share of requests that begin here, 0 to 1. */
  readonly share: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Undefined if the text is not a traceparent. */
function readTraceparent(text: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(text) ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return text.startsWith('ff') || !trace.isSpanContextValid(context) ? undefined : context;
}

class OtlpSpan implements Span {
  readonly traceparent: string;
  private isOver = false;

  constructor(
    private readonly span: SdkSpan,
    private readonly onEnd: ((span: OtlpSpan) => void) | undefined,
  ) {
    const { traceId, spanId } = span.spanContext();
    this.traceparent = `00-${traceId}-${spanId}-01`;
  }

  set(attributes: SpanAttributes): void {
    if (!this.isOver) this.span.setAttributes(attributes as Attributes);
  }

  rename(name: string): void {
    if (!this.isOver) this.span.updateName(name);
  }

  end(errorType?: string): void {
    if (this.isOver) return;
    this.isOver = true;
    if (errorType !== undefined) this.span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR });
    this.span.end();
    this.onEnd?.(this);
  }
}

function createTracer(sdk: SdkTracer): Tracer {
  const live = new LiveMap<string, OtlpSpan>();
  const contextOf = (parent: string | undefined): Context | undefined => {
    if (parent === undefined) return ROOT_CONTEXT;
    const context = readTraceparent(parent);
    return context === undefined ? undefined : trace.setSpanContext(ROOT_CONTEXT, context);
  };
  return {
    start: ({ name, kind, requestId, parent, link, attributes }) => {
      const context = contextOf(parent);
      if (context === undefined) return undefined;
      const linked = link === undefined ? undefined : readTraceparent(link);
      const span = sdk.startSpan(name, { kind: KINDS[kind], attributes: attributes as Attributes, ...(linked === undefined ? {} : { links: [{ context: linked }] }) }, context);
      if (!span.isRecording()) return undefined;
      if (kind !== 'server' || requestId === '' || live.size >= LIVE_REQUESTS_MAX) return new OtlpSpan(span, undefined);
      const started = new OtlpSpan(span, (ended) => {
        if (live.get(requestId) === ended) live.delete(requestId);
      });
      live.set(requestId, started);
      return started;
    },
    traceparentOf: (requestId) => live.get(requestId)?.traceparent ?? '',
  };
}

/** Logs once that the collector does not accept spans, and once that it does again. */
function reporting(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== 0;
        if (hasFailed && !isFailing) log.warn('Traces cannot be exported; they are dropped until the collector answers.');
        else if (!hasFailed && isFailing) log.info('Traces are exported again.');
        isFailing = hasFailed;
        done(result);
      }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}

export function openOtlpTracing({ endpoint, share, clock, log }: OtlpOptions): Tracing {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const exporter = reporting(new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MS }), log);
  // One queue and one connection for all services of the process.
  const processor = new BatchSpanProcessor({ exporter, maxQueueSize: QUEUED_SPANS_MAX, maxExportBatchSize: BATCH_SPANS_MAX, scheduledDelayMillis: BATCH_WAIT_MS, exportTimeoutMillis: EXPORT_TIMEOUT_MS });
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) });
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.setTimer(STOP_MS_MAX, resolve);
      const done = (): void => {
        timer.cancel();
        resolve();
      };
      processor.shutdown().then(done, done);
    });
  let stopped: Promise<void> | undefined;
  return {
    tracer: (service) => {
      const resource = resourceFromAttributes({ 'service.namespace': 'signalbox', 'service.name': service });
      const provider = new TracerProvider({ resource, sampler, spanLimits: { attributeValueLengthLimit: VALUE_LENGTH_MAX }, spanProcessors: [processor] });
      return createTracer(provider.getTracer('signalbox'));
    },
    stop: () => (stopped ??= stop()),
  };
}
