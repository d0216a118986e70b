/** GET /v1/decisions/{id}: why a request was routed as it was. POST /v1/feedback: a client's score of an answer. */
import type { FeedbackRequest, FeedbackResponse__Output, GetDecisionRequest, GetDecisionResponse__Output } from '@signalbox/contracts/billing';
import type { RecentDecisionRequest, RecentDecisionResponse__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { parseId } from '@signalbox/kernel/ids';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type NextFunction, type Request, type Response } from 'express';
import { z } from 'zod';
import { apiError } from '../../wire/errors.js';
import { sendJson, type Control } from '../control-route.js';
import { decisionBody } from './body.js';
import { strictFields } from '../strict-fields.js';

const DEADLINE_MS = 5_000;

const feedbackSchema = strictFields({ request_id: z.string().min(1).max(200), score: z.number().min(0).max(1) });

export interface DecisionsDeps {
  readonly billing: RpcClient;
  readonly routing: RpcClient;
  readonly control: Control;
  needsScope(scope: string): (request: Request, response: Response, next: NextFunction) => void;
}

/** Routers for /v1/decisions and /v1/feedback. */
export function createDecisionsRouters({ billing, routing, control, needsScope }: DecisionsDeps): { readonly decisions: Router; readonly feedback: Router } {
  const { callerOf, fail, parse } = control;
  const ask = async <Message extends object, Answer>(client: RpcClient, code: 'billing_unavailable' | 'routing_unavailable', request: Request, method: string, message: Message): Promise<Answer> => {
    try {
      return await client.unary<Message, Answer>(method, message, { deadlineMs: DEADLINE_MS, requestId: callerOf(request).requestId });
    } catch (error) {
      throw error instanceof Fault && error.code === 'internal_error' ? error : new Fault(code, 'the service did not answer', { cause: error });
    }
  };
  /** A decision that routing has not sent to billing yet. */
  const recent = async (request: Request, query: Pick<RecentDecisionRequest, 'id' | 'requestId'>): Promise<RecentDecisionResponse__Output | undefined> => {
    const found = await ask<RecentDecisionRequest, RecentDecisionResponse__Output>(routing, 'routing_unavailable', request, 'RecentDecision', { accountId: callerOf(request).caller.account.id, ...query });
    return found.found ? found : undefined;
  };

  const decisions = Router();
  decisions.get('/:id', needsScope('usage:read'), async (request, response) => {
    const id = parseId('decision', String(request.params['id'] ?? ''));
    const stored = id === undefined ? undefined : await ask<GetDecisionRequest, GetDecisionResponse__Output>(billing, 'billing_unavailable', request, 'GetDecision', { accountId: callerOf(request).caller.account.id, id });
    const found = id === undefined ? undefined : (stored?.decision ?? (await recent(request, { id })));
    if (found === undefined || found === null) fail(response, apiError('decision_not_found', { param: 'id' }));
    else sendJson(response, 200, decisionBody(found));
  });

  const feedback = Router();
  feedback.post('/', needsScope('inference'), async (request, response) => {
    const given = await parse(request, response, feedbackSchema);
    if (given === undefined) return;
    const accountId = callerOf(request).caller.account.id;
    const told: FeedbackRequest = { accountId, requestId: given.request_id, score: given.score };
    const tell = (message: FeedbackRequest): Promise<FeedbackResponse__Output> => ask(billing, 'billing_unavailable', request, 'Feedback', message);
    let { known, kept } = await tell(told);
    const early = kept ? undefined : await recent(request, { requestId: given.request_id });
    if (early !== undefined) {
      const { id, requestId, atMs, recordJson, viaAuto } = early;
      ({ known, kept } = await tell({ ...told, decision: { id, requestId, accountId, atMs, recordJson, viaAuto } }));
    }
    if (known) response.status(204).set('cache-control', 'no-store').end();
    else fail(response, apiError('request_not_found', { param: 'request_id' }));
  });
  return { decisions, feedback };
}
