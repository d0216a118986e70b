/** Interface for tracing: one span per hop, created explicitly. */

/** Only ids, names and figures; never a client's or a model's text, a key, an account's secret or an error's message. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** One hop of a request that is being recorded. */
export interface Span {
  /** W3C traceparent to pass on, which makes later spans children of this one. */
  readonly traceparent: string;
  /** Has no effect after `end`. */
  set(attributes: SpanAttributes): void;
  rename(name: string): void;
  /** `errorType` is a fault's code or an HTTP status; absent = success. Safe to call twice. */
  end(errorType?: string): void;
}

export interface SpanStart {
  readonly name: string;
  /** `server` answers a caller, `consumer` processes queued messages. */
  readonly kind: 'server' | 'consumer';
  /** While a `server` span runs, this service's calls for the same request are its children. Empty = belongs to no request. */
  readonly requestId: string;
  /** W3C traceparent of the parent span; absent = the request begins here, and the sampler decides whether to record it. */
  readonly parent?: string;
  /** W3C traceparent from outside: the span links to it, but it does not influence sampling. */
  readonly link?: string | undefined;
  readonly attributes: SpanAttributes;
}

/** Tracer of one service. */
export interface Tracer {
  /** Undefined if the request is not recorded. Never throws. */
  start(span: SpanStart): Span | undefined;
  /** Traceparent of this service's span for a request; empty = the request is not recorded. */
  traceparentOf(requestId: string): string;
}

/** Tracing of one process. */
export interface Tracing {
  /** `service` is the service name in its spans, such as `quota` or `worker-groq`. */
  tracer(service: string): Tracer;
  /** Sends the remaining spans, for at most two seconds. Safe to call twice; never rejects. */
  stop(): Promise<void>;
}
