/** The HTTP side of one chat completion: headers, body or stream, trailers, hang-up. */
import type { AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { Failed__Output } from '@signalbox/contracts/worker';
import { NO_TOKENS } from '@signalbox/kernel/tokens';
import type { ServerResponse } from 'node:http';
import type { Answer, AttemptReport, Refusal, Route, Settlement } from '../../domain/answer.js';
import type { ChatRequest } from '../../domain/chat-request.js';
import type { Caller } from '../../domain/ports.js';
import { renderCompletion, type UsageFigures } from '../../wire/chat.js';
import { apiError, faultToApiError, forVariant, type ApiError } from '../../wire/errors.js';
import { routerHeaders, routerTrailers, STREAM_HEADERS, TRAILER_HEADERS } from '../../wire/headers.js';
import type { JsonValue } from '../../wire/json-text.js';
import { admissionToApiError, allAttemptsFailed, cutToApiError, refusalToApiError } from '../../wire/refusals.js';
import { createStreamWire, DONE, KEEP_ALIVE, type StreamEnd, type StreamWire } from '../../wire/stream.js';
import type { Gate } from '../gate.js';

/** A client that leaves the end of its answer untouched for this long is cut (FAILURES, slow reader). */
const STALLED_READER_MS = 60_000;

const UNCOUNTED: ReadonlySet<Refusal['kind']> = new Set<Refusal['kind']>(['scope', 'plugin-requires-paid', 'plugin-unavailable', 'unbounded-parts', 'routing']);

export interface AnswerOptions {
  readonly gate: Gate;
  readonly response: ServerResponse;
  readonly request: ChatRequest;
  readonly requestId: string;
  readonly caller: Caller;
  readonly wantsMetadata: boolean;
  readonly createdSeconds: number;
  readonly nowMs: () => number;
}

export function createAnswer({ gate, response, request, requestId, caller, wantsMetadata, createdSeconds, nowMs }: AnswerOptions): Answer {
  const { variant } = caller;
  let wire: StreamWire | undefined;
  let isDone = false;
  let gone: (() => void)[] = [];
  response.on('close', () => {
    if (!isDone) for (const listener of gone) listener();
    gone = [];
  });

  const commonHeaders = (): Record<string, string> => ({
    'x-request-id': requestId,
    ...gate.headersOf(caller.account.id),
  });

  const open = (route: Route): StreamWire => {
    if (wire !== undefined) return wire;
    wire = createStreamWire({
      id: requestId,
      created: createdSeconds,
      model: route.model,
      routedFrom: request.model,
      includeUsage: request.includeUsage,
      variant,
      ...(route.head === undefined || route.head.systemFingerprint === '' ? {} : { systemFingerprint: route.head.systemFingerprint }),
    });
    const { provider, estimatedCostNanoUsd: costNanoUsd, estimatedSavingsNanoUsd: savingsNanoUsd } = route;
    // HTTP/1.0, which old proxies speak, has neither chunks nor trailers, and node:http throws on announcing them.
    const trailers = response.req.httpVersion === '1.0' ? {} : TRAILER_HEADERS;
    response.writeHead(200, { ...STREAM_HEADERS, ...trailers, ...commonHeaders(), ...routerHeaders({ provider, costNanoUsd, savingsNanoUsd, basis: 'estimate', ignoredParams: request.ignoredParams }) });
    return wire;
  };

  const metadataOf = ({ decisionId, attempts, end: { source, flags, stoppedBy } }: Settlement): JsonValue | undefined => {
    const stopped = stoppedBy === '' ? {} : { stopped_by: stoppedBy };
    if (wantsMetadata) return { decision_id: decisionId, usage_source: source.toLowerCase(), flags, attempts: attempts.map(attemptText), ...stopped };
    return stoppedBy === '' ? undefined : stopped;
  };

  const endOf = (settlement: Settlement): StreamEnd => ({
    usage: usageOf(settlement),
    provider: settlement.provider,
    costNanoUsd: BigInt(settlement.end.costNanoUsd),
    savingsNanoUsd: BigInt(settlement.end.savingsNanoUsd),
    routerMetadata: metadataOf(settlement),
  });

  const end = (last: Buffer, settlement: Settlement | undefined): void => {
    isDone = true;
    response.write(last);
    if (settlement !== undefined) {
      response.addTrailers(routerTrailers(BigInt(settlement.end.costNanoUsd), BigInt(settlement.end.savingsNanoUsd)));
    }
    response.end(DONE);
    watchRest();
  };

  const watchRest = (): void => {
    if (response.writableLength > 0) response.setTimeout(STALLED_READER_MS, () => response.destroy());
  };

  const errorOf = (refusal: Refusal): ApiError => {
    switch (refusal.kind) {
      case 'scope':
        return apiError('insufficient_scope', { message: `The API key lacks the scope ${refusal.scope}.` });
      case 'plugin-requires-paid':
        return apiError('PLUGIN_REQUIRES_PAID', { param: 'plugins', message: `The plugin ${refusal.plugin} needs a paid account.`, metadata: { plugin: refusal.plugin } });
      case 'plugin-unavailable':
        return apiError('plugin_unavailable', { param: 'plugins', message: `The plugin ${refusal.plugin} is not installed here.`, metadata: { plugin: refusal.plugin } });
      case 'unbounded-parts':
        return apiError('invalid_value', { param: 'messages', message: 'Under a cost cap, images and files must be sent as data URLs: what a reference costs cannot be bounded beforehand.' });
      case 'routing':
        return refusalToApiError(refusal.decision, refusal.model);
      case 'admission':
        return admissionToApiError(refusal.admission, nowMs());
      case 'attempts':
        return allAttemptsFailed(refusal.attempts);
      case 'fault':
        return faultToApiError(refusal.fault);
    }
  };

  return {
    admitted: (admission: AdmitResponse__Output) => gate.remember(caller.account.id, admission),
    keepAlive: (route) => {
      open(route);
      response.write(KEEP_ALIVE);
    },
    chunk: (route, choices) => response.write(open(route).chunk(choices)),
    finish: (route, choices, settlement) => end(open(route).finish(choices, endOf(settlement)), settlement),
    cut: (route, failed: Failed__Output, settlement) => {
      end(open(route).errorChunk(forVariant(cutToApiError(failed), variant), settlement === undefined ? undefined : endOf(settlement)), settlement);
    },
    body: (_route, body, settlement) => {
      isDone = true;
      const { provider, model, decisionId } = settlement;
      const figures = { provider, costNanoUsd: BigInt(settlement.end.costNanoUsd), savingsNanoUsd: BigInt(settlement.end.savingsNanoUsd) };
      const rendered = renderCompletion({
        id: requestId,
        created: createdSeconds,
        model,
        choices: body.choices,
        usage: usageOf(settlement),
        xRouter: variant === 'B' ? undefined : { ...figures, routedFrom: request.model },
        systemFingerprint: body.systemFingerprint,
        serviceTier: body.serviceTier,
        routerMetadata: metadataOf(settlement),
      });
      response.writeHead(200, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': rendered.length,
        ...commonHeaders(),
        ...routerHeaders({ ...figures, basis: 'final', attempts: settlement.attempts.length, decisionId, ignoredParams: request.ignoredParams }),
      });
      response.end(rendered);
      watchRest();
    },
    refuse: (refusal) => {
      if (isDone) return;
      isDone = true;
      const own = errorOf(refusal);
      // What admission never counts, the flood guard does (contract, section 1).
      const error = UNCOUNTED.has(refusal.kind) ? gate.noteInvalid(caller, own) : own;
      if (wire === undefined) gate.fail(response, requestId, error, caller);
      else end(wire.errorChunk(forVariant(error, variant)), undefined);
    },
    onDrain: (listener) => {
      response.once('drain', listener);
    },
    abandon: () => {
      isDone = true;
      response.destroy();
    },
    isGone: () => !isDone && response.destroyed,
    onGone: (listener) => {
      if (response.destroyed && !isDone) listener();
      else gone.push(listener);
    },
  };
}

function usageOf({ end }: Settlement): UsageFigures {
  return { tokens: end.tokens ?? NO_TOKENS, cachedKnown: end.cachedKnown, reasoningKnown: end.reasoningKnown };
}

function attemptText({ provider, model, failed }: AttemptReport): { readonly [key: string]: JsonValue } {
  return failed === undefined ? { provider, model, status: 'answered' } : { provider, model, status: 'failed', class: failed.class.toLowerCase(), provider_status: failed.status };
}
