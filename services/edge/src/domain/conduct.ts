/** The story of a chat-completion request, from a validated body to a settled answer. */
import type { AdmitRequest, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { isTier, tierTerms } from '@signalbox/kernel/tiers';
import { costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import { affordableOutputTokens, holdFor, promptTokensMax, type Hold } from './amounts.js';
import type { Answer, AttemptReport, Estimate } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import { runAttempt, type Activity } from './dispatch.js';
import { allowedModelsOf, hasCap, isLimited, limitsOf } from './limits.js';
import { isPluginId, PLUGINS } from './plugins.js';
import type { Caller, QuotaPort, RoutingPort, WorkersPort } from './ports.js';

export interface Neighbours {
  readonly routing: RoutingPort;
  readonly quota: QuotaPort;
  readonly workers: WorkersPort;
  readonly clock: Clock;
  readonly heartbeatMs: number;
}

export interface Turn {
  readonly requestId: string;
  readonly caller: Caller;
  readonly request: ChatRequest;
  readonly answer: Answer;
}

export interface Conducted {
  readonly attempts: readonly AttemptReport[];
  readonly result: 'answered' | 'cut' | 'gone' | 'refused';
}

/** At most three providers are tried for one request. */
const ATTEMPTS_MAX = 3;
/** How long only live holds may keep a request waiting (contract, section 8). */
const LIVE_HOLDS_WAIT_MS = 2_000;
const LIVE_HOLDS_POLL_MS = 50;
const IDLE_TIMEOUT_MS = 30_000;
/** Output tokens assumed by the pre-flight estimate of a stream's cost. */
const ESTIMATED_OUTPUT_TOKENS = 256;

const REFUSED: Conducted = { attempts: [], result: 'refused' };

/** Never rejects: whatever happens is told to `turn.answer`. */
export async function conduct(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const { answer } = turn;
  try {
    if (!mayInfer(turn) || !pluginsAllow(turn)) return REFUSED;
    if (!partsAreBounded(turn)) return REFUSED;
    const plan = await neighbours.routing.decide(decideRequest(turn));
    if (plan.refusal !== 'REFUSAL_UNSPECIFIED' && plan.refusal !== 'ALL_UNHEALTHY') {
      answer.refuse({ kind: 'routing', decision: plan, model: turn.request.model });
      return REFUSED;
    }
    const admitted = await admit(neighbours, turn, plan);
    if (admitted === undefined) return REFUSED;
    return await dispatchPlan(neighbours, turn, plan, admitted);
  } catch (error) {
    answer.refuse({ kind: 'fault', fault: toFault(error) });
    return REFUSED;
  }
}

function mayInfer({ caller, answer }: Turn): boolean {
  if (caller.key.scopes.includes('inference')) return true;
  answer.refuse({ kind: 'scope', scope: 'inference' });
  return false;
}

function pluginsAllow({ caller, request, answer }: Turn): boolean {
  const { account, variant } = caller;
  assert(isTier(account.tier), 'A stored account has a known tier.');
  const { isPaid } = tierTerms(variant, account.tier);
  const paid = request.pluginIds.find((id) => isPluginId(id) && PLUGINS[id].isPaid);
  if (paid !== undefined && !isPaid) {
    answer.refuse({ kind: 'plugin-requires-paid', plugin: paid });
    return false;
  }
  const [first] = request.pluginIds;
  if (first === undefined) return true;
  answer.refuse({ kind: 'plugin-unavailable', plugin: first });
  return false;
}

/** A cap cannot be kept for parts whose tokens nothing bounds (BILLING, section 4). */
function partsAreBounded({ caller, request, answer }: Turn): boolean {
  if (!request.hasUnboundedParts || !hasCap(limitsOf(caller))) return true;
  answer.refuse({ kind: 'unbounded-parts' });
  return false;
}

/** A small stable number from the request's id: the seed of every draw in its plan. */
function seedOf(requestId: string): number {
  let hash = 2_166_136_261;
  for (let i = requestId.length - 10; i < requestId.length; i += 1) hash = Math.imul(hash ^ requestId.charCodeAt(i), 16_777_619) >>> 0;
  return hash;
}

function decideRequest({ requestId, caller, request }: Turn): DecideRequest {
  const { account } = caller;
  const question: DecideRequest = {
    requestId,
    accountId: account.id,
    model: request.model,
    models: [...request.models],
    needs: request.needs,
    promptTokens: request.promptTokens,
    dataCollection: request.dataCollection,
    zdr: request.zdr,
    minQuantization: request.minQuantization,
    maxQuantization: request.maxQuantization,
    provider: request.provider ?? null,
    allowModels: allowedModelsOf(caller),
    denyModels: account.denyModels,
    allowProviders: account.allowProviders,
    denyProviders: account.denyProviders,
    mode: account.routingMode,
    baselineModel: account.baselineModel,
    session: request.sessionId ?? request.conversationKey,
    seed: seedOf(requestId),
    byokProviders: [],
    promptText: request.promptText,
  };
  if (request.maxTokens !== undefined) question.maxTokens = request.maxTokens;
  if (request.preferredMaxLatency !== undefined) question.preferredMaxLatency = request.preferredMaxLatency;
  if (request.preferredMinThroughput !== undefined) question.preferredMinThroughput = request.preferredMinThroughput;
  return question;
}

interface Admitted {
  readonly admission: AdmitResponse__Output;
  readonly hold: Hold;
  readonly isLimited: boolean;
  readonly promptTokensMax: number;
}

/** One atomic admission; undefined when the answer has been given. */
async function admit(neighbours: Neighbours, { requestId, caller, request, answer }: Turn, plan: DecideResponse__Output): Promise<Admitted | undefined> {
  const limits = limitsOf(caller);
  const limited = isLimited(limits);
  const prompt = promptTokensMax(request.promptBytes, request.messageCount);
  const hold = holdFor({ attempts: plan.attempts.slice(0, ATTEMPTS_MAX), promptTokensMax: prompt, maxTokens: request.maxTokens, choices: request.choices, isLimited: limited });
  const question: AdmitRequest = {
    requestId,
    accountId: caller.account.id,
    keyId: caller.key.id,
    counter: 'CHAT',
    limits,
    amountNanoUsd: hold.amountNanoUsd.toString(),
    minAmountNanoUsd: hold.minAmountNanoUsd.toString(),
    tokens: hold.tokens.toString(),
    byok: false,
  };
  let admission = await neighbours.quota.admit(question);
  if (admission.decision === 'BLOCKED_BY_LIVE') admission = await admitOnceFree(neighbours, question, admission, answer);
  answer.admitted(admission);
  if (admission.decision !== 'ADMITTED') {
    answer.refuse({ kind: 'admission', admission });
    return undefined;
  }
  // After admission, since a refusal by limits is the caller's and comes first.
  if (plan.attempts.length === 0 || answer.isGone()) {
    neighbours.quota.release(caller.account.id, requestId);
    if (!answer.isGone()) answer.refuse({ kind: 'attempts', attempts: [] });
    return undefined;
  }
  return { admission, hold, isLimited: limited, promptTokensMax: prompt };
}

/** Where only live holds stand in the way, quota is asked again for up to two seconds. */
async function admitOnceFree({ quota, clock }: Neighbours, question: AdmitRequest, blocked: AdmitResponse__Output, answer: Answer): Promise<AdmitResponse__Output> {
  const giveUpAtMs = clock.monotonicMs() + LIVE_HOLDS_WAIT_MS;
  let admission = blocked;
  while (admission.decision === 'BLOCKED_BY_LIVE' && clock.monotonicMs() < giveUpAtMs && !answer.isGone()) {
    await new Promise<void>((resolve) => clock.setTimer(LIVE_HOLDS_POLL_MS, resolve));
    admission = await quota.admit(question);
  }
  return admission;
}

/** Tries the plan in order until one attempt answers. Nothing is tried again once content reached the client. */
async function dispatchPlan({ workers, quota, clock, heartbeatMs }: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted): Promise<Conducted> {
  const { requestId, caller, answer, request } = turn;
  const accountId = caller.account.id;
  const reports: AttemptReport[] = [];
  const attempts = plan.attempts.slice(0, ATTEMPTS_MAX);
  const activity: Activity = { lastSentMs: clock.monotonicMs() };
  const tell = (provider: string, attempt: number, outcome: Outcome): void => workers.tellOutcome(provider, accountId, requestId, attempt, outcome);
  // Attempts that know what became of them. One counts as superseded only when a later one is surely in a journal: it
  // gives up its say over the hold, which else nobody would end.
  let told = 0;
  const tellEarlier = (outcome: 'SUPERSEDED' | 'DISCARDED'): void => {
    for (const { provider } of reports.slice(told)) tell(provider, (told += 1), outcome);
  };
  // True once an attempt is in a worker's journal: that worker then ends the hold when it learns the outcome.
  let isJournaled = false;
  const discard = (): void => {
    tellEarlier('DISCARDED');
    if (!isJournaled) quota.release(accountId, requestId);
  };
  const supersede = (): void => tellEarlier('SUPERSEDED');

  for (const planned of attempts) {
    const number = reports.length + 1;
    const { provider, model } = planned;
    const result = await runAttempt({
      workers,
      clock,
      heartbeatMs,
      activity,
      answer,
      request: dispatchRequest(turn, plan, planned, admitted, number),
      isStream: request.stream,
      route: { provider, model, head: undefined, estimate: () => estimateOf(request, plan, planned) },
      earlier: reports,
      decisionId: plan.decisionId,
      onJournaled: supersede,
    });
    const report: AttemptReport = { provider, model, failed: result.kind === 'failed' ? result.failed : undefined };
    switch (result.kind) {
      case 'complete':
      case 'cut':
        tell(provider, number, 'DELIVERED');
        reports.push(report);
        return { attempts: reports, result: result.kind === 'cut' ? 'cut' : 'answered' };
      case 'gone':
        // The worker concludes the same from the cancel, unless its last event had already left. Unless it is known to
        // be in a journal, earlier attempts are left to their workers, which conclude by themselves.
        if (result.wasSent) tell(provider, number, 'DELIVERED');
        else discard();
        reports.push(report);
        return { attempts: reports, result: 'gone' };
      case 'failed':
        reports.push(report);
        if (result.trace !== 'none') isJournaled = true;
        break;
    }
    if (!(report.failed?.retryable ?? false)) break;
  }
  discard();
  answer.refuse({ kind: 'attempts', attempts: reports });
  return { attempts: reports, result: 'refused' };
}

function estimateOf(request: ChatRequest, plan: DecideResponse__Output, { card }: PlannedAttempt__Output): Estimate {
  assert(card !== null, 'A planned attempt carries its price card.');
  const tokens = { ...NO_TOKENS, inputUncached: request.promptTokens, outputText: Math.min(request.maxTokens ?? ESTIMATED_OUTPUT_TOKENS, ESTIMATED_OUTPUT_TOKENS) };
  const cost = costOf(tokens, priceCardOf(card));
  const reference = plan.referenceCard !== null && plan.referenceCard.id !== '' ? costOf(tokens, priceCardOf(plan.referenceCard)) : cost;
  return { costNanoUsd: cost, savingsNanoUsd: asNanoUsd(reference > cost ? reference - cost : 0n) };
}

function dispatchRequest({ requestId, caller, request }: Turn, plan: DecideResponse__Output, planned: PlannedAttempt__Output, admitted: Admitted, attempt: number): DispatchRequest {
  assert(planned.card !== null, 'A planned attempt carries its price card.');
  const { admission, hold } = admitted;
  const bounded = admitted.isLimited ? affordableOutputTokens(priceCardOf(planned.card), asNanoUsd(admission.heldNanoUsd), admitted.promptTokensMax, hold.outputTokens, request.choices) : request.maxTokens;
  const dispatched: DispatchRequest = {
    requestId,
    attempt,
    retryOf: Array.from({ length: attempt - 1 }, (_, index) => index + 1),
    accountId: caller.account.id,
    keyId: caller.key.id,
    endpointId: planned.endpointId,
    model: planned.model,
    provider: planned.provider,
    providerModelId: planned.providerModelId,
    wireProtocol: planned.wireProtocol,
    card: planned.card,
    referenceCard: plan.referenceCard,
    periods: admission.periods,
    heldNanoUsd: admission.heldNanoUsd,
    byok: false,
    stream: request.stream,
    maxTokensParam: planned.maxTokensParam,
    temperatureMax: planned.temperatureMax,
    fields: planned.dropParams.length === 0 ? [...request.fields] : request.fields.filter((field) => !planned.dropParams.includes(field.name)),
    promptTokens: request.promptTokens,
    firstByteTimeoutMs: planned.firstByteTimeoutMs,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    responseFormat: request.needs.responseFormat ?? '',
    routedFrom: request.model,
    decisionId: plan.decisionId,
    clientStream: request.stream,
    maxOutputTokens: planned.maxOutputTokens,
  };
  if (bounded !== undefined) dispatched.maxTokens = bounded;
  return dispatched;
}
