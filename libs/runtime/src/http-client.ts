/**
 * undici without what nobody here uses of it: its entry loads fetch, WebSocket, mocks and caches as well, which is 9 MB
 * of every process and a tenth of a second of its start. The version is pinned, since these paths are not promised.
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

/** One request to an address of the operator's: never to one that a client gave, which is what `net-guard` is for. Rejects with undici's errors; the body has to be read or dumped. */
export function request(url: string | URL, options: Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path' | 'method'> & { readonly method?: undici.Dispatcher.HttpMethod } = {}): Promise<undici.Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  agent ??= new Agent();
  return requestOf.call(agent, { method: 'GET', ...options, origin, path: `${pathname}${search}` });
}
