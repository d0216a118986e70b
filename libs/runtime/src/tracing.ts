/**
 * Traces: one span per hop, created explicitly. Without OTEL_EXPORTER_OTLP_ENDPOINT the tracer is undefined, which costs
 * one check per use, and nothing of OpenTelemetry is loaded.
 */
import type { Clock } from '@signalbox/kernel/clock';
import { z } from 'zod';
import { loadConfig, shareField, type Environment } from './config.js';
import type { Log } from './log.js';
import type { Tracing } from './span.js';

const schema = z.object({
  /** Base URL of an OTLP collector over HTTP, such as http://otel-collector:4318; absent = no traces. The exporter itself reads OTEL_EXPORTER_OTLP_HEADERS. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** Share of requests that are traced, decided where a request enters, for all its hops. */
  OTEL_TRACES_SAMPLER_ARG: shareField(1),
});

export type TracingConfig = Readonly<z.infer<typeof schema>>;

/** Throws ConfigError. */
export function loadTracingConfig(environment: Environment): TracingConfig {
  return loadConfig(schema, environment);
}

/** Undefined if no endpoint is set. An unreachable collector loses spans, but never fails a request. */
export async function openTracing({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: share }: TracingConfig, surroundings: { readonly clock: Clock; readonly log: Log }): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { openOtlpTracing } = await import('./otlp-tracing.js');
  return openOtlpTracing({ endpoint, share, ...surroundings });
}
