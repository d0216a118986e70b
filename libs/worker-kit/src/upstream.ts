/** HTTP towards one provider: undici's dispatch with one pool, no redirects, no retries of its own. */
import { Pool, type Dispatcher } from 'undici';
import type { UpstreamRequest } from './provider.js';

const CONNECT_MS = 3_000;
const CONNECTIONS_MAX = 1_024;

export interface UpstreamListener {
  onHead(status: number, headers: Readonly<Record<string, string | readonly string[] | undefined>>): void;
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** `connect`: not a byte of the request left. Called at most once, and never after `onEnd`. */
  onError(kind: 'connect' | 'disconnected'): void;
}

export interface UpstreamCall {
  pause(): void;
  resume(): void;
  /** Cuts the connection; the listener hears nothing more. Safe to call twice. */
  abort(): void;
}

export interface Upstream {
  post(request: UpstreamRequest, requestId: string, listener: UpstreamListener): UpstreamCall;
  close(): Promise<void>;
}

export function createUpstream(origin: string): Upstream {
  const pool = new Pool(origin, { connections: CONNECTIONS_MAX, connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 });
  return {
    post: (request, requestId, listener) => {
      let controller: Dispatcher.DispatchController | undefined;
      let isOver = false;
      pool.dispatch(
        {
          path: request.path,
          method: 'POST',
          headers: { ...request.headers, 'x-request-id': requestId },
          body: request.body,
        },
        {
          onRequestStart: (started) => {
            controller = started;
            if (isOver) started.abort(new Error('aborted'));
          },
          onResponseStart: (_controller, status, headers) => {
            if (!isOver && status >= 200) listener.onHead(status, headers);
          },
          onResponseData: (_controller, chunk) => {
            if (!isOver) listener.onData(chunk);
          },
          onResponseEnd: () => {
            if (isOver) return;
            isOver = true;
            listener.onEnd();
          },
          onResponseError: () => {
            if (isOver) return;
            isOver = true;
            listener.onError(controller === undefined ? 'connect' : 'disconnected');
          },
        },
      );
      return {
        pause: () => controller?.pause(),
        resume: () => controller?.resume(),
        abort: () => {
          if (isOver) return;
          isOver = true;
          controller?.abort(new Error('aborted'));
        },
      };
    },
    close: () => pool.destroy(),
  };
}
