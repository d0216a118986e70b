/** POST /v1/chat/completions, served by node:http directly: Express would cost more than everything else that edge does. */
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import type { IdSource } from '@signalbox/kernel/ids';
import type { Span, Tracer } from '@signalbox/runtime/span';
import { together } from '@signalbox/runtime/turn';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJsonBody, readBody, type BodyRead } from '../../adapters/body.js';
import { breakOff } from '../../adapters/responses.js';
import type { BodyPlace, BodyRoom } from '../../domain/body-room.js';
import { mayInfer } from '../../domain/caller-now.js';
import type { ChatRequest } from '../../domain/chat-request.js';
import { conduct, type Conducted, type Neighbours } from '../../domain/conduct.js';
import type { Caller } from '../../domain/ports.js';
import { endingOf, type ClaimEnding } from '../../domain/repeats.js';
import type { RequestPlaces } from '../../domain/request-places.js';
import type { RunningRequests } from '../../domain/running-requests.js';
import type { SessionNames } from '../../domain/session-name.js';
import type { Turn } from '../../domain/turn.js';
import type { EdgeMetrics } from '../../metrics.js';
import { apiError, faultToApiError, type ApiError } from '../../wire/errors.js';
import { isGivenTwice } from '../../wire/given-twice.js';
import { AnswerRecorder } from '../../wire/kept-answer.js';
import type { Gate } from '../gate.js';
import { keepsAnswers, type RepeatGate } from '../repeat-gate.js';
import type { AccessLog } from './access-log.js';
import { HttpAnswer } from './answer.js';
import { readChatRequest, readLargeChatRequest, type ChatRequestResult, type NameSession } from './schema.js';
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
  /** Absent = no tracing. */
  readonly tracer?: Tracer | undefined;
  readonly running: RunningRequests;
  /** Absent = no access log. */
  readonly accessLog?: AccessLog | undefined;
}

export type ChatHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Status in metrics and the access log of a request whose client left before any status was sent. */
const CLIENT_LEFT = 499;
const SESSION_ID_MAX = 256;
/** A larger body is read in steps, so that other requests are served in between. */
const LARGE_BODY_BYTES = 131_072;

const overloaded = (): ApiError => apiError('overloaded', { retryAfterMs: 1_000 });

const nextTurn = (): Promise<void> => new Promise((resolve) => together(resolve));

export function createChatHandler(options: ChatHandlerOptions): ChatHandler {
  return async (request, response) => new ChatExchange(options, request, response).run();
}

/** One request and its answer. Whatever the end, it gives back its places and its room for the body. */
class ChatExchange {
  private readonly requestId: string;
  private readonly startedMs: number;
  private readonly span: Span | undefined;
  /** Removes it from the running requests. */
  private leave: (() => void) | undefined;
  /** Gives back the place of a request that is not complete yet; may be called twice. */
  private arrived: (() => void) | undefined;
  private bodyPlace: BodyPlace | undefined;
  private isWorking = false;
  private accountId: string | undefined;
  private answer: HttpAnswer | undefined;
  private conducted: Conducted | undefined;

  constructor(
    private readonly options: ChatHandlerOptions,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    const { makeId, clock, metrics, tracer } = options;
    this.requestId = makeId('request');
    this.startedMs = clock.monotonicMs();
    metrics.chatStarted();
    this.span = tracer === undefined ? undefined : beginChatSpan(tracer, this.requestId, request);
  }

  /** Never rejects. The order of checks decides which error a client gets that made several: key and rate of bad requests, content type, size, the body's fields, then everything in `conduct`. */
  async run(): Promise<void> {
    try {
      // Usually the key is cached and the body has arrived: nothing is awaited then, which saves a turn of the loop.
      const identifying = this.identify();
      let caller = identifying instanceof Promise ? await identifying : identifying;
      this.arrived?.();
      if (caller === undefined) return;
      this.accountId = caller.account.id;
      this.leave = this.options.running.enter(caller.key.id, (how) => (how === 'cut' ? breakOff(this.response) : this.answer?.stop()));
      const isLate = !this.request.complete;
      const receiving = this.receive(caller);
      const read = receiving instanceof Promise ? await receiving : receiving;
      this.arrived?.();
      if (isLate && read?.kind === 'ok') {
        // The body arrived later: the key is checked again, since a request counts from the moment it is complete.
        caller = await this.options.gate.enter(this.request, this.response, this.requestId);
        if (caller === undefined) return;
      }
      const body = read === undefined ? undefined : this.bodyOf(read, caller);
      if (body === undefined) return;
      const parsing = this.parse(body, caller);
      const parsed = parsing instanceof Promise ? await parsing : parsing;
      const chat = parsed === undefined ? undefined : this.checked(parsed, caller);
      if (chat === undefined) return;
      const idempotencyKey = this.request.headers['idempotency-key'];
      // A key without the scope is refused by `conduct`, and must not get an answer that another key of the account received.
      if (typeof idempotencyKey === 'string' && mayInfer(caller)) await this.conductClaimed(caller, chat, idempotencyKey, body);
      else await this.conduct(caller, chat);
    } catch (error) {
      this.options.gate.fail(this.response, this.requestId, faultToApiError(toFault(error)));
    } finally {
      this.end();
    }
  }

  /** The caller; undefined when the request was answered. */
  private identify(): Caller | undefined | Promise<Caller | undefined> {
    const { gate, places } = this.options;
    const entered = gate.enter(this.request, this.response, this.requestId);
    if (!(entered instanceof Promise)) return entered;
    this.arrived = places.arrive();
    return this.arrived === undefined ? this.refuse(overloaded()) : entered;
  }

  /** The body, or why there is none; undefined when the request was answered. */
  private receive(caller: Caller): BodyRead | undefined | Promise<BodyRead> {
    const { places, bodies, bodyBytesMax } = this.options;
    if (!isJsonBody(this.request)) return this.refuseInvalid(caller, apiError('unsupported_media_type'));
    if (!this.request.complete) {
      this.arrived = places.arrive(caller.account.id);
      if (this.arrived === undefined) return this.refuse(overloaded(), caller);
    }
    this.bodyPlace = bodies.enter(caller.account.id);
    return readBody(this.request, bodyBytesMax, this.bodyPlace.take);
  }

  /** The body, once the request has its place; undefined when it was answered, or its client has left. */
  private bodyOf(read: BodyRead, caller: Caller): Buffer | undefined {
    const { gate, places, bodyBytesMax } = this.options;
    switch (read.kind) {
      case 'aborted':
        // The client left, or took too long and got its 408: no further answer is sent.
        gate.noteInvalid(caller, apiError('request_timeout'));
        return undefined;
      case 'too-large':
        return this.refuseInvalid(caller, apiError('payload_too_large', { message: `The body is larger than ${bodyBytesMax} bytes.` }));
      case 'no-room':
        return this.refuse(overloaded(), caller);
      case 'ok':
        this.isWorking = places.begin(caller.account.id);
        return this.isWorking ? read.body : this.refuse(overloaded(), caller);
    }
  }

  private parse(body: Buffer, { account, variant }: Caller): ChatRequestResult | Promise<ChatRequestResult> {
    const named = this.sessionHeader();
    const nameSession: NameSession = (sessionId, opening) => this.options.sessionNames(account.id, sessionId ?? named, opening);
    return body.length > LARGE_BODY_BYTES ? readLargeChatRequest(body, variant, nameSession, nextTurn) : readChatRequest(body, variant, nameSession);
  }

  /** The request after all checks; undefined when it was refused. */
  private checked(parsed: ChatRequestResult, caller: Caller): ChatRequest | undefined {
    if (parsed.kind === 'invalid') return this.refuseInvalid(caller, parsed.error);
    const session = this.sessionHeader();
    if (session === undefined) return parsed.request;
    if (isGivenTwice(this.request.rawHeaders, 'x-session-id')) return this.refuseInvalid(caller, apiError('invalid_value', { param: 'x-session-id', message: "Invalid value for 'x-session-id': it must be sent once." }));
    if (session.length <= SESSION_ID_MAX) return parsed.request;
    return this.refuseInvalid(caller, apiError('invalid_value', { param: 'x-session-id', message: `Invalid value for 'x-session-id': expected at most ${SESSION_ID_MAX} characters.` }));
  }

  /** An empty header counts as absent. */
  private sessionHeader(): string | undefined {
    const header = this.request.headers['x-session-id'];
    return typeof header === 'string' && header !== '' ? header : undefined;
  }

  private async conduct(caller: Caller, chat: ChatRequest, recorder?: AnswerRecorder, keepClaim?: Turn['keepClaim']): Promise<Conducted> {
    const { options: { gate, clock, neighbours, metrics }, request, response, requestId } = this;
    const wantsMetadata = request.headers['x-router-metadata'] === 'enabled';
    const answer = new HttpAnswer({ gate, clock, response, request: chat, requestId, caller, wantsMetadata, recorder });
    this.answer = answer;
    const turn = { requestId, caller, request: chat, answer, explain: wantsMetadata, takeRoom: this.bodyPlace?.take };
    const conducted = await conduct(neighbours, keepClaim === undefined ? turn : { ...turn, keepClaim });
    this.conducted = conducted;
    metrics.chatConducted(conducted.result, conducted.attempts);
    this.span?.set(conductedAttributes(chat.stream, conducted));
    return conducted;
  }

  /** Runs a request with an Idempotency-Key, unless another with the same key runs or ran, and ends its claim. */
  private async conductClaimed(caller: Caller, chat: ChatRequest, key: string, body: Buffer): Promise<void> {
    const { options: { repeats }, request, response, requestId } = this;
    const claim = await repeats.enter({ request, response, requestId, caller, key, body, isBilled: true, mayKeep: !chat.zdr });
    if (claim === undefined) return;
    const recorder = new AnswerRecorder(keepsAnswers(caller) && !chat.zdr, caller.key.id);
    let ending: ClaimEnding = { kind: 'abandoned' };
    try {
      const conducted = await this.conduct(caller, chat, recorder, claim.keep);
      ending = endingOf(conducted, recorder, chat.stream && request.httpVersion !== '1.0');
    } finally {
      const ended = claim.end(ending);
      // Awaited, so that a stopping edge does not exit before the key of a request that may be repeated is free.
      if (this.conducted?.isUncharged === true) await ended;
    }
  }

  private refuse(error: ApiError, caller?: Caller): undefined {
    this.options.gate.fail(this.response, this.requestId, error, caller);
    return undefined;
  }

  /** Refuses a request for an error of its own. A caller with too many of them gets 429 instead. */
  private refuseInvalid(caller: Caller, error: ApiError): undefined {
    return this.refuse(this.options.gate.noteInvalid(caller, error), caller);
  }

  /** A large answer is in memory until the client has read it. Node 20 never marks as closed an answer that was broken off while it waited for others on its connection (`breakOff`): no further `close` comes of it. */
  private leaveRoom(): void {
    const { bodyPlace: place, response } = this;
    if (place === undefined) return;
    if (place.isCounted() && !response.destroyed) response.once('close', () => place.leave());
    else place.leave();
  }

  private end(): void {
    const { options: { places, clock, metrics, accessLog }, response, requestId, accountId, conducted, span } = this;
    if (span !== undefined) endChatSpan(span, response);
    this.leave?.();
    this.leaveRoom();
    this.arrived?.();
    if (this.isWorking && accountId !== undefined) places.end(accountId);
    const status = response.headersSent ? response.statusCode : CLIENT_LEFT;
    const durationMs = clock.monotonicMs() - this.startedMs;
    metrics.chatEnded(status, durationMs);
    accessLog?.({ requestId, status, durationMs, accountId, conducted });
  }
}
