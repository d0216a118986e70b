/** POST /v1/chat/completions, terminated on node:http itself: express costs more than all the rest. */
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { Tracer } from '@signalbox/runtime/span';
import { together } from '@signalbox/runtime/turn';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonBody, readBody } from '../../adapters/body.js';
import { breakOff } from '../../adapters/responses.js';
import type { BodyPlace, BodyRoom } from '../../domain/body-room.js';
import { mayInfer } from '../../domain/caller-now.js';
import { conduct, type Conducted, type Neighbours } from '../../domain/conduct.js';
import { endingOf, type ClaimEnding } from '../../domain/repeats.js';
import type { RequestPlaces } from '../../domain/request-places.js';
import type { RunningRequests } from '../../domain/running-requests.js';
import type { SessionNames } from '../../domain/session-name.js';
import type { EdgeMetrics } from '../../metrics.js';
import { apiError, faultToApiError, type ApiError } from '../../wire/errors.js';
import { AnswerRecorder } from '../../wire/kept-answer.js';
import type { Gate } from '../gate.js';
import { keepsAnswers, type RepeatGate } from '../repeat-gate.js';
import type { AccessLog } from './access-log.js';
import { HttpAnswer } from './answer.js';
import { readChatRequest, readLargeChatRequest, type NameSession } from './schema.js';
import { beginChatSpan, conductedAttributes, endChatSpan } from './trace.js';

export interface ChatHandlerOptions {
  readonly gate: Gate;
  readonly neighbours: Neighbours;
  readonly makeId: IdSource;
  readonly clock: Clock;
  readonly bodyBytesMax: number;
  readonly bodies: BodyRoom;
  readonly places: RequestPlaces;
  readonly metrics: EdgeMetrics;
  readonly repeats: RepeatGate;
  readonly sessionNames: SessionNames;
  /** Absent: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly running: RunningRequests;
  /** Absent: no request leaves a line. */
  readonly accessLog?: AccessLog | undefined;
}

export type ChatHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What metrics and the access log call a request whose client hung up before any status left. */
const CLIENT_LEFT = 499;
const SESSION_ID_MAX = 256;
/** A larger body is read in steps: other requests get their turn in between. */
const LARGE_BODY_BYTES = 131_072;

const overloaded = (): ApiError => apiError('overloaded', { retryAfterMs: 1_000 });

const nextTurn = (): Promise<void> => new Promise((resolve) => together(resolve));

/** A header that is empty says nothing. */
function sessionOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && header !== '' ? header : undefined;
}

/** The order of checks decides which error wins (contract, section 1). */
export function createChatHandler({ gate, neighbours, makeId, clock, bodyBytesMax, bodies, places, metrics, repeats, sessionNames, running, tracer, accessLog }: ChatHandlerOptions): ChatHandler {
  return async (request, response) => {
    const requestId = makeId('request');
    const startedMs = clock.monotonicMs();
    let leave: () => void = () => undefined;
    let arrived: (() => void) | undefined;
    let isWorking = false;
    let place: BodyPlace | undefined;
    let accountId: string | undefined;
    let answer: HttpAnswer | undefined;
    let conducted: Conducted | undefined;
    metrics.chatStarted();
    const span = tracer === undefined ? undefined : beginChatSpan(tracer, requestId, request);
    try {
      const entered = gate.enter(request, response, requestId);
      if (entered instanceof Promise) {
        arrived = places.arrive();
        if (arrived === undefined) {
          gate.fail(response, requestId, overloaded());
          return;
        }
      }
      let caller = entered instanceof Promise ? await entered : entered;
      arrived?.();
      if (caller === undefined) return;
      accountId = caller.account.id;
      leave = running.enter(caller.key.id, (how) => (how === 'cut' ? breakOff(response) : answer?.stop()));
      if (!isJsonBody(request)) {
        gate.fail(response, requestId, gate.noteInvalid(caller, apiError('unsupported_media_type')), caller);
        return;
      }
      const isLate = !request.complete;
      if (isLate) {
        arrived = places.arrive(accountId);
        if (arrived === undefined) {
          gate.fail(response, requestId, overloaded(), caller);
          return;
        }
      }
      place = bodies.enter(accountId);
      const reading = readBody(request, bodyBytesMax, place.take);
      const read = reading instanceof Promise ? await reading : reading;
      arrived?.();
      if (read.kind === 'aborted') {
        // It hung up, or was too late and has its 408: nobody reads another answer.
        gate.noteInvalid(caller, apiError('request_timeout'));
        return;
      }
      if (read.kind === 'too-large') {
        gate.fail(response, requestId, gate.noteInvalid(caller, apiError('payload_too_large', { message: `The body is larger than ${bodyBytesMax} bytes.` })), caller);
        return;
      }
      if (read.kind === 'no-room') {
        gate.fail(response, requestId, overloaded(), caller);
        return;
      }
      if (isLate) {
        // Its body took its time: a request begins when it is whole, under what its key may do then.
        const now = gate.enter(request, response, requestId);
        caller = now instanceof Promise ? await now : now;
        if (caller === undefined) return;
      }
      isWorking = places.begin(accountId);
      if (!isWorking) {
        gate.fail(response, requestId, overloaded(), caller);
        return;
      }
      const named = sessionOf(request.headers['x-session-id']);
      const nameSession: NameSession = (sessionId, opening) => sessionNames(caller.account.id, sessionId ?? named, opening);
      const parsed = read.body.length > LARGE_BODY_BYTES ? await readLargeChatRequest(read.body, caller.variant, nameSession, nextTurn) : readChatRequest(read.body, caller.variant, nameSession);
      if (parsed.kind === 'invalid') {
        gate.fail(response, requestId, gate.noteInvalid(caller, parsed.error), caller);
        return;
      }
      const wantsMetadata = request.headers['x-router-metadata'] === 'enabled';
      if (named !== undefined && named.length > SESSION_ID_MAX) {
        gate.fail(response, requestId, gate.noteInvalid(caller, apiError('invalid_value', { param: 'x-session-id', message: `Invalid value for 'x-session-id': expected at most ${SESSION_ID_MAX} characters.` })), caller);
        return;
      }
      const { request: chat } = parsed;
      const idempotencyKey = request.headers['idempotency-key'];
      // A key that may ask for nothing is told so, and not what another key of the account was answered.
      if (typeof idempotencyKey === 'string' && mayInfer(caller)) {
        const claim = await repeats.enter({ request, response, requestId, caller, key: idempotencyKey, body: read.body, isBilled: true, mayKeep: !chat.zdr });
        if (claim === undefined) return;
        const recorder = new AnswerRecorder(keepsAnswers(caller) && !chat.zdr, caller.key.id);
        let ending: ClaimEnding = { kind: 'abandoned' };
        try {
          answer = new HttpAnswer({ gate, clock, response, request: chat, requestId, caller, wantsMetadata, recorder });
          conducted = await conduct(neighbours, { requestId, caller, request: chat, answer, explain: wantsMetadata, keepClaim: claim.keep });
          metrics.chatConducted(conducted.result, conducted.attempts);
          span?.set(conductedAttributes(chat.stream, conducted));
          ending = endingOf(conducted, recorder, chat.stream && request.httpVersion !== '1.0');
        } finally {
          const ended = claim.end(ending);
          // An edge that stops waits for its requests: one that may be sent again at once finds its key free.
          if (conducted?.isUncharged === true) await ended;
        }
        return;
      }
      answer = new HttpAnswer({ gate, clock, response, request: chat, requestId, caller, wantsMetadata });
      conducted = await conduct(neighbours, { requestId, caller, request: chat, answer, explain: wantsMetadata });
      metrics.chatConducted(conducted.result, conducted.attempts);
      span?.set(conductedAttributes(chat.stream, conducted));
    } catch (error) {
      gate.fail(response, requestId, faultToApiError(toFault(error)));
    } finally {
      if (span !== undefined) endChatSpan(span, response);
      leave();
      place?.leave();
      arrived?.();
      if (isWorking && accountId !== undefined) places.end(accountId);
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT;
      const durationMs = clock.monotonicMs() - startedMs;
      metrics.chatEnded(status, durationMs);
      accessLog?.({ requestId, status, durationMs, accountId, conducted });
    }
  };
}
