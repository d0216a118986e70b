/** Traces as whoever traces sees them: one span a hop, made by hand. */

/** Ids, names and figures; never a client's or a model's text, a key, an account's secret or an error's message. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** One hop of a request that is being recorded. */
export interface Span {
  /** W3C traceparent that makes what follows a child of this span. */
  readonly traceparent: string;
  /** Of no effect after `end`. */
  set(attributes: SpanAttributes): void;
  rename(name: string): void;
  /** `errorType` is a fault's code or an HTTP status; absent = it went well. Safe to call twice. */
  end(errorType?: string): void;
}

export interface SpanStart {
  readonly name: string;
  /** `server` answers a caller, `consumer` works off what was queued. */
  readonly kind: 'server' | 'consumer';
  /** While a `server` span runs, calls that this service makes for the same request are its children. Empty = of no request. */
  readonly requestId: string;
  /** W3C traceparent of the span that led here; absent = a request that begins here, which the sampler may pass over. */
  readonly parent?: string;
  /** W3C traceparent of a stranger, who is pointed to but decides nothing. */
  readonly link?: string | undefined;
  readonly attributes: SpanAttributes;
}

/** Of one service. */
export interface Tracer {
  /** Undefined when the request is not recorded. Never throws. */
  start(span: SpanStart): Span | undefined;
  /** Traceparent of the span under which this service works on a request; empty = it is not recorded. */
  traceparentOf(requestId: string): string;
}

/** Of one process. */
export interface Tracing {
  /** `service` is what its spans are named after, such as `quota` or `worker-groq`. */
  tracer(service: string): Tracer;
  /** Sends what is left, for at most two seconds. Safe to call twice; never rejects. */
  stop(): Promise<void>;
}
