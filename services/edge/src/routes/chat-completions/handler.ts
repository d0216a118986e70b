/** POST /v1/chat/completions, terminated on node:http itself: express costs more than all the rest. */
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonBody, readBody } from '../../adapters/body.js';
import { conduct, type Neighbours } from '../../domain/conduct.js';
import type { EdgeMetrics } from '../../metrics.js';
import { apiError, faultToApiError } from '../../wire/errors.js';
import type { Gate } from '../gate.js';
import { HttpAnswer } from './answer.js';
import { readChatRequest } from './schema.js';

export interface ChatHandlerOptions {
  readonly gate: Gate;
  readonly neighbours: Neighbours;
  readonly makeId: IdSource;
  readonly clock: Clock;
  readonly bodyBytesMax: number;
  readonly metrics: EdgeMetrics;
}

export type ChatHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What metrics call a request whose client hung up before any status left. */
const CLIENT_LEFT = 499;
const SESSION_ID_MAX = 256;

/** A header that is empty or too long says nothing. */
function sessionOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && header !== '' && header.length <= SESSION_ID_MAX ? header : undefined;
}

/** The order of checks decides which error wins (contract, section 1). */
export function createChatHandler({ gate, neighbours, makeId, clock, bodyBytesMax, metrics }: ChatHandlerOptions): ChatHandler {
  return async (request, response) => {
    const requestId = makeId('request');
    const startedMs = clock.monotonicMs();
    metrics.chatStarted();
    try {
      const entered = gate.enter(request, response, requestId);
      const caller = entered instanceof Promise ? await entered : entered;
      if (caller === undefined) return;
      if (!isJsonBody(request)) {
        gate.fail(response, requestId, gate.noteInvalid(caller, apiError('unsupported_media_type')), caller);
        return;
      }
      const read = await readBody(request, bodyBytesMax);
      if (read.kind === 'aborted') return;
      if (read.kind === 'too-large') {
        gate.fail(response, requestId, gate.noteInvalid(caller, apiError('payload_too_large', { message: `The body is larger than ${bodyBytesMax} bytes.` })), caller);
        return;
      }
      const parsed = readChatRequest(read.body, caller.variant);
      if (parsed.kind === 'invalid') {
        gate.fail(response, requestId, gate.noteInvalid(caller, parsed.error), caller);
        return;
      }
      const wantsMetadata = request.headers['x-router-metadata'] === 'enabled';
      const session = parsed.request.sessionId ?? sessionOf(request.headers['x-session-id']);
      const chat = session === parsed.request.sessionId ? parsed.request : { ...parsed.request, sessionId: session };
      const answer = new HttpAnswer({ gate, clock, response, request: chat, requestId, caller, wantsMetadata });
      const { result, attempts } = await conduct(neighbours, { requestId, caller, request: chat, answer });
      metrics.chatConducted(result, attempts);
    } catch (error) {
      gate.fail(response, requestId, faultToApiError(toFault(error)));
    } finally {
      metrics.chatEnded(response.headersSent ? response.statusCode : CLIENT_LEFT, clock.monotonicMs() - startedMs);
    }
  };
}
