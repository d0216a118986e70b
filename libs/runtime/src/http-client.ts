/**
 * undici without its unused parts: its main module also loads fetch, WebSocket, mocks and caches, which costs 9 MB per
 * process and a tenth of a second at the start. The version is pinned, since these paths are not part of its public API.
 */
import type * as undici from 'undici';
import requestOf from 'undici/lib/api/api-request.js';
import connect from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import UndiciClient from 'undici/lib/dispatcher/client.js';
import UndiciPool from 'undici/lib/dispatcher/pool.js';

export type Client = undici.Client;
export type Pool = undici.Pool;
export type DispatchHandler = undici.Dispatcher.DispatchHandler;
export type DispatchOptions = undici.Dispatcher.DispatchOptions;
export type DispatchController = undici.Dispatcher.DispatchController;
export type Connector = undici.buildConnector.connector;

export const Client: typeof undici.Client = UndiciClient;
export const Pool: typeof undici.Pool = UndiciPool;
export const buildConnector: typeof undici.buildConnector = connect;

let agent: Agent | undefined;

/** One request to an address chosen by the operator, never by a client (use `net-guard` for those). Rejects with undici's errors; the body must be read or dumped. */
export function request(url: string | URL, options: Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path' | 'method'> & { readonly method?: undici.Dispatcher.HttpMethod } = {}): Promise<undici.Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  agent ??= new Agent();
  return requestOf.call(agent, { method: 'GET', ...options, origin, path: `${pathname}${search}` });
}
