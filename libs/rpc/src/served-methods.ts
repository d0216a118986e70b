/** A method with the handler that answers it. */
import type { AnyStreamHandler, AnyUnaryHandler, Handlers } from './call.js';
import type { Method } from './channel.js';

export interface Served {
  readonly name: string;
  readonly method: Method;
  readonly unary: AnyUnaryHandler | undefined;
  readonly stream: AnyStreamHandler | undefined;
}

/** By RPC name; methods without a handler are not in it. */
export function servedMethods(methods: ReadonlyMap<string, Method>, handlers: Handlers): ReadonlyMap<string, Served> {
  const served = new Map<string, Served>();
  for (const [name, method] of methods) {
    const unary = Object.hasOwn(handlers.unary, name) ? handlers.unary[name] : undefined;
    const stream = handlers.stream !== undefined && Object.hasOwn(handlers.stream, name) ? handlers.stream[name] : undefined;
    if (unary !== undefined || stream !== undefined) served.set(name, { name, method, unary, stream });
  }
  return served;
}
