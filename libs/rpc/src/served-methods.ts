/** A method with the handler that answers it. */
import type { AnyStreamHandler, AnyUnaryHandler, Handlers } from './call.js';
import type { SpanAttributes } from '@signalbox/runtime/span';
import type { Method } from './channel.js';

export interface Served {
  readonly name: string;
  readonly method: Method;
  readonly unary: AnyUnaryHandler | undefined;
  readonly stream: AnyStreamHandler | undefined;
  /** For the spans of its calls. */
  readonly span: { readonly name: string; readonly attributes: SpanAttributes };
}

/** A span is named after its RPC: `signalbox.quota.v1.QuotaService/Admit`. */
export function spanOf({ path }: Method): Served['span'] {
  const [service = '', method = ''] = path.slice(1).split('/');
  return { name: path.slice(1), attributes: { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method } };
}

/** By RPC name, without the methods that have no handler. */
export function servedMethods(methods: ReadonlyMap<string, Method>, handlers: Handlers): ReadonlyMap<string, Served> {
  const served = new Map<string, Served>();
  for (const [name, method] of methods) {
    const unary = Object.hasOwn(handlers.unary, name) ? handlers.unary[name] : undefined;
    const stream = handlers.stream !== undefined && Object.hasOwn(handlers.stream, name) ? handlers.stream[name] : undefined;
    if (unary !== undefined || stream !== undefined) served.set(name, { name, method, unary, stream, span: spanOf(method) });
  }
  return served;
}
