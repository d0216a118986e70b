/** The root span of a request, without any text of the client or the model. */
import type { Span, SpanAttributes, Tracer } from '@signalbox/runtime/span';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Conducted } from '../../domain/conduct.js';

const ROUTE = '/v1/chat/completions';

/** Undefined when the request is not sampled. A client's own trace is only linked: it decides neither the sampling nor the trace id. */
export function beginChatSpan(tracer: Tracer, requestId: string, { headers: { traceparent } }: IncomingMessage): Span | undefined {
  return tracer.start({
    name: `POST ${ROUTE}`,
    kind: 'server',
    requestId,
    link: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': 'POST', 'http.route': ROUTE, 'gen_ai.operation.name': 'chat', 'signalbox.request_id': requestId },
  });
}

/** Attributes of the result, with the catalog's names of model and provider, not what the client wrote. */
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
