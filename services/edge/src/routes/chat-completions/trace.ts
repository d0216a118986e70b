/** The first span of a request: what the edge knows of it, without a word of the client's or the model's. */
import type { Span, SpanAttributes, Tracer } from '@signalbox/runtime/span';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Conducted } from '../../domain/conduct.js';

const ROUTE = '/v1/chat/completions';

/** Undefined when the sampler passes the request over. A client's own trace is linked to, and decides nothing: neither what is recorded nor under which id. */
export function beginChatSpan(tracer: Tracer, requestId: string, { headers: { traceparent } }: IncomingMessage): Span | undefined {
  return tracer.start({
    name: `POST ${ROUTE}`,
    kind: 'server',
    requestId,
    link: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': 'POST', 'http.route': ROUTE, 'gen_ai.operation.name': 'chat', 'signalbox.request_id': requestId },
  });
}

/** How it went. Models and providers are the catalog's names: what a client wrote is not told. */
export function conductedAttributes(isStream: boolean, { result, attempts }: Conducted): SpanAttributes {
  const answered = attempts.findLast(({ failed }) => failed === undefined);
  return {
    'signalbox.stream': isStream,
    'signalbox.result': result,
    'signalbox.attempts': attempts.length,
    ...(answered === undefined ? {} : { 'gen_ai.response.model': answered.model, 'signalbox.provider': answered.provider }),
  };
}

export function endChatSpan(span: Span, { headersSent, statusCode }: ServerResponse): void {
  if (headersSent) span.set({ 'http.response.status_code': statusCode });
  if (!headersSent) span.end('client_left');
  else span.end(statusCode >= 500 ? String(statusCode) : undefined);
}
