/** Checks of the trace of one request, for every way to run the system. */
import { expect } from '@jest/globals';
import type { CollectedSpan, OtlpCollector } from '@signalbox/testkit/otlp-collector';
import { until } from './client.js';

const COLLECTED_MS_MAX = 20_000;
const EDGE = 'POST /v1/chat/completions';
const BOOKED = 'book usage';

/** The spans of a request's trace, once edge's span is there and each attempt is booked. */
export async function traceOf(collector: OtlpCollector, requestId: string): Promise<readonly CollectedSpan[]> {
  let trace: readonly CollectedSpan[] = [];
  await until(
    () => {
      const spans = collector.spans();
      const edge = spans.find(({ name, attributes }) => name === EDGE && attributes['signalbox.request_id'] === requestId);
      trace = spans.filter(({ traceId }) => traceId === edge?.traceId);
      return Promise.resolve(edge !== undefined && String(trace.filter(({ name }) => name === BOOKED).length) === edge.attributes['signalbox.attempts']);
    },
    COLLECTED_MS_MAX,
    50,
    `the trace of ${requestId}`,
  );
  return trace;
}

/** `service name` of a span and its ancestors, root first. */
export function pathOf(span: CollectedSpan, trace: readonly CollectedSpan[]): string {
  const parent = trace.find(({ spanId }) => spanId === span.parentSpanId);
  const shown = `${span.service} ${span.name.replace(/^.*\//, '')}`;
  return parent === undefined ? shown : `${pathOf(parent, trace)} > ${shown}`;
}

/** Expects that only the root span has no parent in the trace, and that none of `secrets` (texts, names, keys) was sent to the collector. */
export function expectOneTraceWithoutContent(collector: OtlpCollector, trace: readonly CollectedSpan[], secrets: readonly string[]): void {
  expect(trace.filter(({ parentSpanId }) => !trace.some(({ spanId }) => spanId === parentSpanId)).map(({ service, name }) => `${service} ${name}`)).toEqual([`edge ${EDGE}`]);
  for (const secret of secrets) expect(collector.text().includes(secret)).toBe(false);
}
