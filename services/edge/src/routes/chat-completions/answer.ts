/** The HTTP answer to one chat completion: headers, body or stream, trailers, and a client that leaves. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import type { Body__Output, Failed__Output, Head__Output } from '@signalbox/contracts/worker';
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { fieldOfParam } from '@signalbox/kernel/param-names';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import { atTurnEnd } from '@signalbox/runtime/turn';
import type { ServerResponse } from 'node:http';
import { BROKEN_BY_CLIENT, othersWait, takenBytes, watchRest } from '../../adapters/responses.js';
import type { Answer, AttemptReport, CallerState, ClientListener, PipelineStage, Refusal, Route, Settlement } from '../../domain/answer.js';
import type { ChatRequest } from '../../domain/chat-request.js';
import { healingTermsOf } from '../../domain/healing.js';
import type { Caller } from '../../domain/ports.js';
import type { Unread } from '../../domain/reader-pace.js';
import { SETTLED_MS } from '../../domain/repeats.js';
import { renderCompletion, type UsageFigures } from '../../wire/chat.js';
import { apiError, forVariant } from '../../wire/errors.js';
import { CHUNKED, UNFRAMED } from '../../wire/framing.js';
import { addRouterHeaders, routerTrailers, STREAM_HEADERS, trailerHeader, type HeaderList } from '../../wire/headers.js';
import type { JsonValue } from '../../wire/json-text.js';
import type { AnswerRecorder } from '../../wire/kept-answer.js';
import { cutToApiError } from '../../wire/refusals.js';
import { createStreamWire, type StreamBreak, type StreamEnd, type StreamWire } from '../../wire/stream.js';
import type { Gate } from '../gate.js';
import { errorOfRefusal, isUncounted } from './refusal.js';

export interface AnswerOptions {
  readonly gate: Gate;
  readonly clock: Clock;
  readonly response: ServerResponse;
  readonly request: ChatRequest;
  readonly requestId: string;
  readonly caller: Caller;
  readonly wantsMetadata: boolean;
  /** Records the answer of a request with an Idempotency-Key. */
  readonly recorder?: AnswerRecorder | undefined;
}

/** How long a stream that is being stopped waits for its cost; the connection is cut one second after stopping began. */
const LAST_FIGURES_MS = 800;

/** Request fields that had no effect: unknown ones, and those the endpoint does not support. */
function ignoredOf({ ignoredParams }: ChatRequest, dropParams: readonly string[] = []): readonly string[] {
  if (dropParams.length === 0) return ignoredParams;
  return [...ignoredParams, ...new Set(dropParams.map(fieldOfParam))];
}

const flush = (answer: HttpAnswer): void => answer.flush();

export class HttpAnswer implements Answer {
  private readonly createdSeconds: number;
  private listener: ClientListener | undefined;
  private wire: StreamWire | undefined;
  /** A chunk was sent, so all others must name the same model. Until then another attempt may answer, although headers were sent. */
  private hasChunk = false;
  /** Chunks of this event-loop turn: they are sent as one write when it ends. */
  private waiting: Uint8Array[] = [];
  /** The routing decision, if the client asked to see it. */
  private plan: DecideResponse__Output | undefined;
  /** The headers of the stream contain the number of attempts. */
  private attemptsAreTold = false;
  /** `onSlow` was called, and `onDrain` not yet. */
  private isSlow = false;
  /** The answer is complete, or was given up. */
  private isDone = false;
  /** Edge itself ended it early. */
  private isStopped = false;
  /** Runs while a stopping stream waits for its worker to report the cost. */
  private patience: Timer | undefined;

  constructor(private readonly options: AnswerOptions) {
    this.createdSeconds = Math.floor(options.clock.nowMs() / 1_000);
    options.response.on('close', () => {
      if (!this.isDone && !this.outlivesClient()) this.listener?.onGone(this.hasLeft());
    });
  }

  attend(listener: ClientListener): void {
    this.listener = listener;
    if (this.isGone()) listener.onGone(this.hasLeft());
    else if (this.isSlow) this.tellSlow();
  }

  isGone(): boolean {
    return this.isStopped || (!this.isDone && this.options.response.destroyed && !this.outlivesClient());
  }

  /** True when the client closed or broke the connection, sent invalid bytes after its request, or read nothing for a minute. False when edge itself cut it off (end of a drain, compromised key). */
  private hasLeft(): boolean {
    const { socket } = this.options.response.req;
    return socket.readableEnded || socket.errored !== null;
  }

  /** True for an answer that goes on after its client left: not streamed, so charged in full anyway, and kept for a repeat. */
  private outlivesClient(): boolean {
    const { recorder, request } = this.options;
    return recorder !== undefined && recorder.keeps && !request.stream;
  }

  callerNow(): Promise<Caller | CallerState> {
    const { gate, response, requestId } = this.options;
    return gate.callerNow(response.req, requestId);
  }

  decided(plan: DecideResponse__Output): void {
    this.plan = plan;
  }

  admitted(admission: AdmitResponse__Output): void {
    this.options.gate.remember(this.options.caller, admission);
  }

  keepAlive(route: Route): void {
    const wire = this.open(route);
    this.flush();
    this.write(wire.keepAlive());
  }

  chunk(route: Route, choices: Uint8Array): void {
    this.open(route, route.attempts);
    this.hasChunk = true;
    if (this.waiting.push(choices) === 1) process.nextTick(flush, this);
  }

  /** Writes the waiting chunks. */
  flush(): void {
    if (this.waiting.length > 0 && this.wire !== undefined) this.write(this.wire.chunks(this.take()));
  }

  finish(route: Route, choices: Uint8Array, settlement: Settlement): void {
    this.end(this.open(route, settlement.attempts.length).finish(this.take(), choices, this.endOf(settlement)));
  }

  cut(route: Route, failed: Failed__Output, settlement: Settlement | undefined, attempts: readonly AttemptReport[], finished?: ReadonlySet<number>): void {
    const error = forVariant(cutToApiError(failed), this.options.caller.variant);
    const wire = this.open(route, attempts.length);
    this.end(wire.error(this.take(), error, settlement === undefined ? this.breakOf(route, withCut(attempts, failed)) : this.endOf({ ...settlement, attempts: withCut(settlement.attempts, failed) }), finished));
  }

  body(body: Body__Output, settlement: Settlement): void {
    this.isDone = true;
    this.patience?.cancel();
    const { gate, response, request, requestId, caller } = this.options;
    const { provider, model, decisionId, sunsetDate, dropParams } = settlement;
    const costNanoUsd = BigInt(settlement.end.costNanoUsd);
    const savingsNanoUsd = BigInt(settlement.end.savingsNanoUsd);
    const rendered = renderCompletion({
      id: requestId,
      created: this.createdSeconds,
      model,
      choices: body.choices,
      usage: usageOf(settlement),
      xRouter: caller.variant === 'B' ? undefined : { provider, costNanoUsd, savingsNanoUsd, routedFrom: request.model },
      systemFingerprint: body.systemFingerprint,
      serviceTier: body.serviceTier,
      routerMetadata: this.metadataOf(settlement),
    });
    const headers: HeaderList = ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(rendered.length)];
    this.addCommonHeaders(headers);
    addRouterHeaders(headers, { provider, model, sunsetDate, costNanoUsd, savingsNanoUsd, basis: 'final', attempts: settlement.attempts.length, decisionId, healed: settlement.healed, ignoredParams: ignoredOf(request, dropParams) });
    const { recorder } = this.options;
    if (recorder !== undefined) {
      recorder.head(headers);
      recorder.part(rendered);
      recorder.end(costNanoUsd, {});
    }
    response.writeHead(200, headers);
    // Written together with other answers of this turn: system calls in direct succession are faster.
    atTurnEnd(() => {
      response.end(rendered);
      watchRest(response, gate.readers);
    });
  }

  refuse(refusal: Refusal, settlement?: Settlement): void {
    if (this.isDone) return;
    this.isDone = true;
    if (this.options.recorder !== undefined && refusal.kind === 'fault' && refusal.fault.code === 'internal_error') this.options.recorder.isDoubtful = true;
    const { gate, clock, response, request, requestId, caller } = this.options;
    const own = errorOfRefusal(refusal, { nowMs: clock.nowMs(), caller, request });
    const error = isUncounted(refusal) ? gate.noteInvalid(caller, own) : own;
    const last = refusal.kind === 'attempts' ? refusal.attempts.at(-1) : undefined;
    if (this.wire === undefined) gate.fail(response, requestId, error, caller, this.refusalMetadata(refusal));
    else this.end((this.hasChunk || last === undefined ? this.wire : this.wireOf(last.model)).error(this.take(), forVariant(error, caller.variant), settlement === undefined ? this.endOfNothing(refusal) : this.endOf(settlement)));
  }

  abandon(unread: Unread): void {
    this.isDone = true;
    const { gate, clock, response, caller } = this.options;
    gate.readers.onUnread?.(unread);
    if (this.wire === undefined || othersWait(response)) {
      response.destroy(BROKEN_BY_CLIENT);
      return;
    }
    // Not recorded: a repeat must not get this end.
    response.end(this.wire.error(this.take(), forVariant(apiError('answer_not_read'), caller.variant)));
    // Counted already.
    watchRest(response, { clock });
  }

  /** The drain is over. Answers that go on without their client continue; all others end with an error after which the client may retry. A stream that has begun is ended by its worker, which reports the cost; a complete answer whose workers were told is delivered. */
  stop(): void {
    if (this.isDone || this.isGone() || this.outlivesClient()) return;
    if ((this.hasChunk || this.listener?.isGiving === true) && this.listener?.onStop?.() === true) this.patience = this.options.clock.setTimer(LAST_FIGURES_MS, this.stopNow);
    else this.stopNow();
  }

  private readonly stopNow = (): void => {
    if (this.isDone || this.isGone()) return;
    this.isStopped = true;
    this.listener?.onGone(false);
    const { recorder, request } = this.options;
    // The cost of a stream that had not begun is known only once it is booked, so a repeat with its Idempotency-Key must wait.
    this.refuse({ kind: 'stopping', isCharged: this.hasChunk, retryAfterMs: recorder !== undefined && request.stream ? SETTLED_MS : undefined });
  };

  /** The renderer of the stream. The first call sends the headers, with `attempts` if no other attempt can follow. */
  private open(route: Route, attempts?: number): StreamWire {
    if (this.wire === undefined) this.sendHead(route, attempts);
    else if (this.hasChunk) return this.wire;
    this.wire = this.wireOf(route.model, route.head);
    return this.wire;
  }

  private wireOf(model: string, head?: Head__Output): StreamWire {
    const { response, request, requestId, caller } = this.options;
    return createStreamWire({
      id: requestId,
      created: this.createdSeconds,
      model,
      routedFrom: request.model,
      includeUsage: request.includeUsage,
      choices: request.choices,
      variant: caller.variant,
      systemFingerprint: head?.systemFingerprint,
      serviceTier: head?.serviceTier,
      framing: response.req.httpVersion === '1.0' ? UNFRAMED : CHUNKED,
    });
  }

  private sendHead(route: Route, attempts: number | undefined): void {
    const { response, request } = this.options;
    const headers: HeaderList = [...STREAM_HEADERS];
    // HTTP/1.0, used by old proxies, has neither chunks nor trailers, and node:http throws when they are announced.
    if (response.req.httpVersion !== '1.0') headers.push(...trailerHeader({ attempts: attempts === undefined, healed: healingTermsOf(request) !== undefined }));
    this.attemptsAreTold = attempts !== undefined;
    this.addCommonHeaders(headers);
    addRouterHeaders(headers, { provider: route.provider, model: route.model, sunsetDate: route.sunsetDate, ...route.estimate(), basis: 'estimate', attempts, decisionId: route.decisionId, ignoredParams: ignoredOf(request, route.dropParams) });
    this.options.recorder?.head(headers);
    response.writeHead(200, headers);
    // The headers announce chunked encoding; from here on the wire frames the chunks itself.
    response.chunkedEncoding = false;
  }

  private addCommonHeaders(headers: HeaderList): void {
    headers.push('x-request-id', this.options.requestId);
    this.options.gate.addHeaders(headers, this.options.caller);
  }

  private write(bytes: Buffer): void {
    const { response, recorder } = this.options;
    recorder?.part(bytes);
    if (response.write(bytes) || this.isSlow) return;
    this.isSlow = true;
    response.once('drain', () => {
      // node:http also emits `drain` while the connection itself is still full, so that event is awaited, too.
      if (response.socket?.writableNeedDrain === true) response.socket.once('drain', this.onDrain);
      else this.onDrain();
    });
    this.tellSlow();
  }

  private tellSlow(): void {
    this.listener?.onSlow(() => takenBytes(this.options.response));
  }

  private readonly onDrain = (): void => {
    this.isSlow = false;
    this.listener?.onDrain();
  };

  private take(): readonly Uint8Array[] {
    const { waiting } = this;
    this.waiting = [];
    return waiting;
  }

  private end(last: Buffer): void {
    this.isDone = true;
    this.patience?.cancel();
    this.options.recorder?.part(last);
    this.options.response.end(last);
    watchRest(this.options.response, this.options.gate.readers);
  }

  private endOf(settlement: Settlement): StreamEnd {
    const { provider, end, healed } = settlement;
    const figures = { provider, costNanoUsd: BigInt(end.costNanoUsd), savingsNanoUsd: BigInt(end.savingsNanoUsd), attempts: this.attemptsAreTold ? undefined : settlement.attempts.length, healed };
    this.options.recorder?.end(figures.costNanoUsd, routerTrailers(figures));
    return { ...figures, usage: usageOf(settlement), routerMetadata: this.metadataOf(settlement) };
  }

  /** The end of a stream whose worker was lost. No cost is given, since it could differ from the later charge by the worker's log. */
  private breakOf({ provider, decisionId }: Route, attempts: readonly AttemptReport[]): StreamBreak {
    const routerMetadata = this.options.wantsMetadata ? { ...this.decisionText(), decision_id: decisionId, attempts: attempts.map(attemptText) } : undefined;
    return { provider, attempts: this.attemptsAreTold ? undefined : attempts.length, routerMetadata };
  }

  /** The end of a stream whose attempts all failed: the client got nothing and pays nothing, whatever the headers estimated. Undefined = the cost is not known. */
  private endOfNothing(refusal: Refusal): StreamEnd | undefined {
    const last = refusal.kind === 'attempts' ? refusal.attempts.at(-1) : undefined;
    if (refusal.kind !== 'attempts' || last === undefined) return undefined;
    return { provider: last.provider, costNanoUsd: 0n, savingsNanoUsd: 0n, attempts: this.attemptsAreTold ? undefined : refusal.attempts.length, usage: { tokens: NO_TOKENS, cachedKnown: false, reasoningKnown: false }, routerMetadata: this.refusalMetadata(refusal) };
  }

  private priceVersion(provider: string, model: string): string | null {
    return this.plan?.attempts.find((attempt) => attempt.provider === provider && attempt.model === model)?.card?.id ?? null;
  }

  private refusalMetadata(refusal: Refusal): JsonValue | undefined {
    if (!this.options.wantsMetadata) return undefined;
    if (refusal.kind === 'attempts') return { ...this.decisionText(), attempts: refusal.attempts.map(attemptText) };
    return this.plan === undefined ? undefined : this.decisionText();
  }

  /** Why routing decided as it did. */
  private decisionText(): { readonly [key: string]: JsonValue } {
    const { plan } = this;
    if (plan === undefined) return {};
    const routing = plan.explanationJson.length === 0 ? {} : { routing: JSON.parse(Buffer.from(plan.explanationJson).toString('utf8')) as JsonValue };
    return { decision_id: plan.decisionId, ...routing };
  }

  private metadataOf({ provider, model, decisionId, attempts, healed, pipeline: ran, end: { source, flags, stoppedBy, cardId } }: Settlement): JsonValue | undefined {
    if (!this.options.wantsMetadata && stoppedBy === '') return undefined;
    const stopped = stoppedBy === '' ? {} : { stopped_by: stoppedBy };
    const pipeline = healed === undefined && ran === undefined ? {} : { pipeline: pipelineText(ran ?? [], healed) };
    return this.options.wantsMetadata ? { ...this.decisionText(), decision_id: decisionId, price_version: cardId === '' ? this.priceVersion(provider, model) : cardId, usage_source: source.toLowerCase(), flags, attempts: attempts.map(attemptText), ...pipeline, ...stopped } : stopped;
  }
}

/** The stages in order: plugins before the model, healing, plugins that run after the answer. */
function pipelineText(ran: readonly PipelineStage[], healed: readonly string[] | undefined): readonly JsonValue[] {
  const after = ran.filter(({ status }) => status === 'scheduled');
  return [...ran.filter(({ status }) => status !== 'scheduled').map(stageText), ...(healed === undefined ? [] : [healingStage(healed)]), ...after.map(stageText)];
}

function stageText({ stage, plugin, status, durationMs, feeNanoUsd, detail }: PipelineStage): JsonValue {
  return { stage, plugin, status, duration_ms: durationMs, fee_usd: feeNanoUsd, ...(Object.keys(detail).length === 0 ? {} : { detail }) };
}

/** Healing as a stage of the pipeline. */
function healingStage(healed: readonly string[]): JsonValue {
  const status = healed.includes('failed') ? 'failed' : healed.length === 0 ? 'unchanged' : 'repaired';
  return { stage: 'json-healing', status, steps: status === 'repaired' ? healed : [] };
}

function usageOf({ end }: Settlement): UsageFigures {
  return { tokens: end.tokens ?? NO_TOKENS, cachedKnown: end.cachedKnown, reasoningKnown: end.reasoningKnown };
}

/** Marks the last attempt as the one that broke off. */
function withCut(attempts: readonly AttemptReport[], cut: Failed__Output): readonly AttemptReport[] {
  return attempts.map((report, index, all) => (index === all.length - 1 ? { ...report, cut } : report));
}

function attemptText({ provider, model, failed, cut, round }: AttemptReport): { readonly [key: string]: JsonValue } {
  const ofRound = round === undefined ? {} : { round };
  const fault = failed ?? cut;
  if (fault === undefined) return { provider, model, status: 'answered', ...ofRound };
  return { provider, model, ...ofRound, status: failed === undefined ? 'cut' : 'failed', class: fault.class.toLowerCase(), provider_status: fault.status };
}
