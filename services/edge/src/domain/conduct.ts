/** A chat-completion request from its validated body to a settled answer: plugins, routing, admission, dispatch. */
import type { DecideRequest, DecideResponse__Output } from '@signalbox/contracts/routing';
import type { CardFees } from '@signalbox/kernel/card-fees';
import { toFault } from '@signalbox/kernel/fault';
import { admit, ATTEMPTS_MAX, growHold, isOwn, partsAreBounded, type Admitted } from './admission.js';
import { promptTokensMin } from './amounts.js';
import { callerNow, mayInfer } from './caller-now.js';
import { dispatchPlan } from './dispatch-plan.js';
import { allowedModelsOf } from './limits.js';
import { sessionOf } from './moved-conversations.js';
import type { Neighbours } from './neighbours.js';
import { ownCredentialsOf } from './own-credentials.js';
import { attemptsLeft, listKindOf } from './present-lists.js';
import { observeAnswer, preparePlugins, withFees } from './plugin-run.js';
import { conductRounds, type Conducted, type RoundStart } from './tool-rounds.js';
import type { ServerTools, Turn } from './turn.js';

export type { Neighbours } from './neighbours.js';
export type { Conducted } from './tool-rounds.js';

const REFUSED: Conducted = { attempts: [], result: 'refused' };

/** Runs one request. Never rejects: every result, errors included, goes to `turn.answer`. */
export async function conduct(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const { answer } = turn;
  try {
    if (!mayInfer(turn.caller)) {
      answer.refuse({ kind: 'scope', scope: 'inference' });
      return REFUSED;
    }
    if (!mayReachStored(turn)) return REFUSED;
    if (turn.request.pluginIds.length > 0) return await conductWithPlugins(neighbours, turn);
    return await conductPrepared(neighbours, turn);
  } catch (error) {
    answer.refuse({ kind: 'fault', fault: toFault(error) });
    return REFUSED;
  }
}

/** Plugins run before routing, since they change the request. Those that observe answers are told afterwards. */
async function conductWithPlugins(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const prepared = await preparePlugins(neighbours, turn);
  if (prepared === undefined) return REFUSED;
  // Plugins may take long, so the caller is checked again, and routing and admission use the account's present settings.
  const now = await callerNow(turn);
  if (now.refusal !== undefined) {
    turn.answer.refuse(now.refusal);
    return REFUSED;
  }
  const caller = neighbours.presentCaller?.(now.caller) ?? now.caller;
  const conducted = await conductPrepared(neighbours, { ...prepared.turn, caller });
  if (conducted.result === 'answered' && prepared.observes) observeAnswer(neighbours, turn);
  return conducted;
}

async function conductPrepared(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const { answer } = turn;
  // Checked before routing if the account has no own credential, since no plan can then change who pays.
  if (ownCredentialsOf(turn.caller).providers.length === 0 && !partsAreBounded(turn, false)) return REFUSED;
  const decided = await neighbours.routing.decide(decideRequest(turn, neighbours.moved?.homeOf(turn)));
  const plan = turn.feeNanoUsd === undefined ? decided : withFees(decided, { feeNanoUsd: turn.feeNanoUsd, bought: [] });
  if (turn.explain === true) answer.decided(plan);
  if (!mayReachStored(turn, plan)) return REFUSED;
  if (plan.refusal !== 'REFUSAL_UNSPECIFIED' && plan.refusal !== 'ALL_UNHEALTHY') {
    answer.refuse({ kind: 'routing', decision: plan, model: turn.request.model });
    return REFUSED;
  }
  if (plan.attempts.length > 0 && !partsAreBounded(turn, isOwn(plan))) return REFUSED;
  const admitted = await admit(neighbours, turn, plan);
  if (admitted === undefined) return REFUSED;
  const conducted = await (turn.tools === undefined ? dispatchPlan(neighbours, turn, within(plan, admitted), admitted) : dispatchRounds(neighbours, turn, within(decided, admitted), admitted, turn.tools));
  if (conducted.result === 'answered') neighbours.moved?.answered(turn, plan, conducted.attempts);
  return conducted;
}

/** The plan without the attempts that the account's money does not pay for. */
function within(plan: DecideResponse__Output, { question: { attempts } }: Admitted): DecideResponse__Output {
  if (attempts.length >= Math.min(plan.attempts.length, ATTEMPTS_MAX)) return plan;
  const paid = new Set(attempts.map(({ endpointId }) => endpointId));
  return { ...plan, attempts: plan.attempts.filter(({ endpointId }) => paid.has(endpointId)) };
}

/** The model may call tools that edge runs, so it is asked in rounds. The fees of a round's tool calls are added to the price cards of the next round. */
function dispatchRounds(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, tools: ServerTools): Promise<Conducted> {
  const { quota, workers, clock, heartbeatMs, wastedRuns } = neighbours;
  const accountId = turn.caller.account.id;
  const planOf = ({ round, before }: RoundStart, fees: CardFees): DecideResponse__Output => {
    const priced = fees.feeNanoUsd > 0n ? withFees(plan, fees) : plan;
    // The provider that answered the previous round comes first.
    const answering = before.at(-1)?.provider;
    return round === 1 ? priced : { ...priced, attempts: [...priced.attempts].sort((a, b) => Number(b.provider === answering) - Number(a.provider === answering)) };
  };
  return conductRounds({
    turn, tools, plan, clock, heartbeatMs,
    tell: (provider, attempt, outcome, isFollowed) => workers.tellOutcome(provider, turn.requestId, attempt, outcome, { isFollowed }),
    hold: async (next, start, feeNanoUsd) => (await growHold(quota, next, planOf(start, { feeNanoUsd, bought: [] }), admitted, start)) !== undefined,
    onWaste: () => wastedRuns?.note(accountId),
    tend: (provider, attempt) => workers.tend(provider, turn.requestId, attempt),
    dispatch: async (next, start, fees) => {
      const whole = planOf(start, fees);
      const left = start.round === 1 ? undefined : attemptsLeft(neighbours, next, whole.attempts);
      if (left?.attempts.length === 0) {
        next.answer.refuse({ kind: 'routing', decision: { ...whole, refusal: 'NO_ELIGIBLE_PROVIDER', excludedBy: [...left.excludedBy], attempts: [] }, model: turn.request.model });
        return { attempts: start.before, result: 'refused' };
      }
      const ordered = left === undefined ? whole : { ...whole, attempts: [...left.attempts] };
      const room = start.round === 1 ? admitted : await growHold(quota, next, whole, admitted, start);
      if (room === undefined) return 'no-room';
      const conducted = await dispatchPlan(neighbours, next, ordered, room, start);
      // The explanation shows the price cards of the last round.
      if (turn.explain === true && conducted.result !== 'refused') turn.answer.decided(ordered);
      return conducted;
    },
  });
}

/**
 * A request that names something stored at a provider by its id may only use the account's own credential, since the
 * operator's credential could reach what other accounts stored. Routing filters by this; the plan of a routing service that
 * did not is not dispatched.
 */
function mayReachStored({ caller, request, answer }: Turn, plan?: DecideResponse__Output): boolean {
  const { storedParam: param } = request;
  if (param === undefined) return true;
  const excludedBy = plan?.refusal === 'NO_ELIGIBLE_PROVIDER' ? plan.excludedBy : [];
  const isLeft = plan === undefined ? ownCredentialsOf(caller).providers.length > 0 : plan.attempts.every(({ byok }) => byok) && !excludedBy.includes('own_credential');
  if (!isLeft) answer.refuse({ kind: 'own-credential', param, excludedBy });
  return isLeft;
}

/** A 32-bit number from the request's id: the seed of every random choice in its plan. */
function seedOf(requestId: string): number {
  let hash = 2_166_136_261;
  for (let i = requestId.length - 10; i < requestId.length; i += 1) hash = Math.imul(hash ^ requestId.charCodeAt(i), 16_777_619) >>> 0;
  return hash;
}

function decideRequest(turn: Turn, homeEndpointId = ''): DecideRequest {
  const { requestId, caller, request, explain } = turn;
  const { account } = caller;
  const own = ownCredentialsOf(caller);
  const question: DecideRequest = {
    requestId,
    accountId: account.id,
    model: request.model,
    models: [...request.models],
    needs: request.needs,
    promptTokens: request.promptTokens,
    promptTokensMin: promptTokensMin(request),
    dataCollection: request.dataCollection,
    zdr: request.zdr,
    minQuantization: request.minQuantization,
    maxQuantization: request.maxQuantization,
    provider: request.provider ?? null,
    allowModels: allowedModelsOf(caller, listKindOf(request)),
    denyModels: account.denyModels,
    allowProviders: account.allowProviders,
    denyProviders: account.denyProviders,
    mode: account.routingMode,
    baselineModel: account.policyBaselineModel || account.baselineModel,
    session: sessionOf(turn),
    seed: seedOf(requestId),
    byokProviders: own.providers,
    byokZdrProviders: own.zdrProviders,
    byokOwnAddressProviders: own.ownAddressProviders,
    promptText: request.promptText,
  };
  if (explain === true) question.explain = true;
  if (homeEndpointId !== '') question.homeEndpointId = homeEndpointId;
  if (account.costWeight !== undefined) question.costWeight = account.costWeight;
  if (request.maxTokens !== undefined) question.maxTokens = request.maxTokens;
  if (request.preferredMaxLatency !== undefined) question.preferredMaxLatency = request.preferredMaxLatency;
  if (request.preferredMinThroughput !== undefined) question.preferredMinThroughput = request.preferredMinThroughput;
  return question;
}
