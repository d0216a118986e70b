/** The story of a chat-completion request, from a validated body to a settled answer. */
import type { AdmitRequest, AdmitResponse__Output } from '@signalbox/contracts/quota';
import type { DecideRequest, DecideResponse__Output, PlannedAttempt__Output } from '@signalbox/contracts/routing';
import type { DispatchRequest, Outcome } from '@signalbox/contracts/worker';
import { assert } from '@signalbox/kernel/assert';
import type { Clock } from '@signalbox/kernel/clock';
import { toFault } from '@signalbox/kernel/fault';
import { asNanoUsd } from '@signalbox/kernel/money';
import { priceCardOf } from '@signalbox/kernel/price-cards';
import { cardFor, costOf, NO_TOKENS } from '@signalbox/kernel/tokens';
import { answerTerms, holdFor, promptTokensMax, type Granted, type Hold, type HoldQuestion } from './amounts.js';
import type { Answer, AttemptReport, Estimate } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import { runAttempt, type Activity, type Reserve } from './dispatch.js';
import type { FloodGuard } from './flood.js';
import { healingTermsOf, type SchemaCheck } from './healing.js';
import { allowedModelsOf, isHard, isLimited, limitsOf } from './limits.js';
import { ownCredentialsOf } from './own-credentials.js';
import { observeAnswer, preparePlugins, withFee, type PluginNeighbours } from './plugin-run.js';
import type { Caller, QuotaPort, RoutingPort, WorkersPort } from './ports.js';
import { overheadTokensMax } from './prompt-overheads.js';
import { tending, written } from './tellings.js';
import type { ServerTools, Turn } from './turn.js';
import { conductRounds, type Conducted, type RoundStart } from './tool-rounds.js';
import type { WaitingRoom } from './waiting-room.js';
import type { RetryBudget } from './retry-budget.js';

export interface Neighbours extends PluginNeighbours {
  readonly routing: RoutingPort;
  readonly quota: QuotaPort;
  readonly workers: WorkersPort;
  readonly waitingRoom: WaitingRoom;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly checkSchema: SchemaCheck;
  /** Shared by all requests. */
  readonly retries: RetryBudget;
  /** Accounts whose answers were not the JSON that they asked for, so that the operator paid for another. Absent: nobody counts. */
  readonly unhealedAnswers?: FloodGuard;
}

export type { Conducted } from './tool-rounds.js';

/** At most three providers are tried for one request. */
const ATTEMPTS_MAX = 3;
/** How long only live holds may keep a request waiting (contract, section 8). */
const LIVE_HOLDS_WAIT_MS = 2_000;
const IDLE_TIMEOUT_MS = 30_000;
/** Output tokens assumed by the pre-flight estimate of a stream's cost. */
const ESTIMATED_OUTPUT_TOKENS = 256;

const NO_REPORTS: readonly AttemptReport[] = [];
const NOBODY_TOLD: readonly Promise<void>[] = [];
const REFUSED: Conducted = { attempts: [], result: 'refused' };

/** Never rejects: whatever happens is told to `turn.answer`. */
export async function conduct(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const { answer } = turn;
  try {
    if (!mayInfer(turn)) return REFUSED;
    if (turn.request.pluginIds.length > 0) return await conductWithPlugins(neighbours, turn);
    return await conductPrepared(neighbours, turn);
  } catch (error) {
    answer.refuse({ kind: 'fault', fault: toFault(error) });
    return REFUSED;
  }
}

/** Plugins run before routing, since they change what there is to route, and hear of the answer once it has been given. */
async function conductWithPlugins(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const prepared = await preparePlugins(neighbours, turn);
  if (prepared === undefined) return REFUSED;
  const conducted = await conductPrepared(neighbours, prepared.turn);
  if (conducted.result === 'answered' && prepared.observes) observeAnswer(neighbours, turn);
  return conducted;
}

async function conductPrepared(neighbours: Neighbours, turn: Turn): Promise<Conducted> {
  const { answer } = turn;
  // Who pays is known with the plan, except where the account has no credential of its own.
  if (ownCredentialsOf(turn.caller).providers.length === 0 && !partsAreBounded(turn, false)) return REFUSED;
  const decided = await neighbours.routing.decide(decideRequest(turn));
  const plan = turn.feeNanoUsd === undefined ? decided : withFee(decided, turn.feeNanoUsd);
  if (turn.explain === true) answer.decided(plan);
  if (plan.refusal !== 'REFUSAL_UNSPECIFIED' && plan.refusal !== 'ALL_UNHEALTHY') {
    answer.refuse({ kind: 'routing', decision: plan, model: turn.request.model });
    return REFUSED;
  }
  if (plan.attempts.length > 0 && !partsAreBounded(turn, isOwn(plan))) return REFUSED;
  const admitted = await admit(neighbours, turn, plan);
  if (admitted === undefined) return REFUSED;
  if (turn.tools !== undefined) return await dispatchRounds(neighbours, turn, decided, admitted, turn.tools);
  return await dispatchPlan(neighbours, turn, plan, admitted);
}

/** The model may call tools of ours: it is asked in rounds. Fees stand in the cards of the round that follows what they are for. */
function dispatchRounds(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, tools: ServerTools): Promise<Conducted> {
  const { quota, workers, clock, heartbeatMs, wastedRuns } = neighbours;
  const accountId = turn.caller.account.id;
  const planOf = ({ round, before }: RoundStart, feeNanoUsd: bigint): DecideResponse__Output => {
    const priced = feeNanoUsd > 0n ? withFee(plan, feeNanoUsd) : plan;
    // Whoever answered so far goes on; the others of the plan stand by.
    const answering = before.at(-1)?.provider;
    return round === 1 ? priced : { ...priced, attempts: [...priced.attempts].sort((a, b) => Number(b.provider === answering) - Number(a.provider === answering)) };
  };
  return conductRounds({
    turn, tools, plan, clock, heartbeatMs,
    tell: (provider, attempt, outcome, isFollowed) => workers.tellOutcome(provider, accountId, turn.requestId, attempt, outcome, isFollowed),
    hold: async (next, start, feeNanoUsd) => (await growHold(quota, next, planOf(start, feeNanoUsd), admitted, start)) !== undefined,
    onWaste: () => wastedRuns?.note(accountId),
    tend: (provider, attempt) => workers.tend(provider, turn.requestId, attempt),
    dispatch: async (next, start, feeNanoUsd) => {
      const ordered = planOf(start, feeNanoUsd);
      const room = start.round === 1 ? admitted : await growHold(quota, next, ordered, admitted, start);
      return room === undefined ? 'no-room' : dispatchPlan(neighbours, next, ordered, room, start);
    },
  });
}

/** The hold covers the rounds before and the next one; undefined when the account's limits leave no room for it. */
async function growHold(quota: QuotaPort, { requestId, caller }: Turn, { attempts }: DecideResponse__Output, { admission, question }: Admitted, start: RoundStart): Promise<Admitted | undefined> {
  const asked: HoldQuestion = { ...question, attempts: attempts.slice(0, ATTEMPTS_MAX), promptTokensMax: question.promptTokensMax + promptTokensMax(start.addedBytes, start.addedMessages) };
  const hold = holdFor(asked);
  if (!question.isLimited) return { admission, question: asked, hold };
  const left = (room: string | undefined, used: bigint): bigint | undefined => (room === undefined ? undefined : BigInt(room) > used ? BigInt(room) - used : 0n);
  const roomNanoUsd = left(admission.roomNanoUsd, start.earlierNanoUsd);
  const roomTokens = left(admission.roomTokens, BigInt(start.earlierTokens));
  const within = (wanted: bigint, room: bigint | undefined): bigint => (room !== undefined && room < wanted ? room : wanted);
  const wanted = { nanoUsd: within(hold.amountNanoUsd, roomNanoUsd), tokens: within(hold.tokens, roomTokens) };
  const least = { nanoUsd: hold.minAmountNanoUsd > 0n ? hold.minAmountNanoUsd : hold.amountNanoUsd, tokens: hold.minTokens > 0n ? hold.minTokens : hold.tokens };
  if (wanted.nanoUsd < least.nanoUsd || wanted.tokens < least.tokens) return undefined;
  for (const { nanoUsd, tokens } of [wanted, least]) {
    if (!(await quota.extend(caller.account.id, requestId, start.earlierNanoUsd + nanoUsd, BigInt(start.earlierTokens) + tokens, admission.epoch))) continue;
    const held: AdmitResponse__Output = { ...admission, heldNanoUsd: String(nanoUsd), heldTokens: String(tokens) };
    if (roomNanoUsd !== undefined) held.roomNanoUsd = String(roomNanoUsd);
    if (roomTokens !== undefined) held.roomTokens = String(roomTokens);
    return { admission: held, question: asked, hold };
  }
  return undefined;
}

function mayInfer({ caller, answer }: Turn): boolean {
  if (caller.key.scopes.includes('inference')) return true;
  answer.refuse({ kind: 'scope', scope: 'inference' });
  return false;
}

/** All attempts of a plan run on the account's own credentials, or none: who pays never changes on the way. */
function isOwn(plan: DecideResponse__Output): boolean {
  return plan.attempts[0]?.byok ?? false;
}

/** True when a limit watches what the request uses: on the account's own credential nothing but its allotments of tokens. */
function isWatched(caller: Caller, byok: boolean): boolean {
  const limits = limitsOf(caller);
  return byok ? limits.byokTokens !== undefined || isHard(limits) : isLimited(limits);
}

/** No limit can be kept for parts whose tokens nothing bounds (BILLING, section 4). */
function partsAreBounded({ caller, request, answer }: Turn, byok: boolean): boolean {
  if (!request.hasUnboundedParts || !isWatched(caller, byok)) return true;
  answer.refuse({ kind: 'unbounded-parts' });
  return false;
}

/** A small stable number from the request's id: the seed of every draw in its plan. */
function seedOf(requestId: string): number {
  let hash = 2_166_136_261;
  for (let i = requestId.length - 10; i < requestId.length; i += 1) hash = Math.imul(hash ^ requestId.charCodeAt(i), 16_777_619) >>> 0;
  return hash;
}

function decideRequest({ requestId, caller, request, explain }: Turn): DecideRequest {
  const { account } = caller;
  const own = ownCredentialsOf(caller);
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
    baselineModel: account.policyBaselineModel || account.baselineModel,
    session: request.sessionId ?? request.conversationKey,
    seed: seedOf(requestId),
    byokProviders: own.providers,
    byokZdrProviders: own.zdrProviders,
    promptText: request.promptText,
  };
  if (explain === true) question.explain = true;
  if (account.costWeight !== undefined) question.costWeight = account.costWeight;
  if (request.maxTokens !== undefined) question.maxTokens = request.maxTokens;
  if (request.preferredMaxLatency !== undefined) question.preferredMaxLatency = request.preferredMaxLatency;
  if (request.preferredMinThroughput !== undefined) question.preferredMinThroughput = request.preferredMinThroughput;
  return question;
}

interface Admitted {
  readonly admission: AdmitResponse__Output;
  readonly question: HoldQuestion;
  readonly hold: Hold;
}

/** One atomic admission; undefined when the answer has been given. */
async function admit(neighbours: Neighbours, { requestId, caller, request, answer }: Turn, plan: DecideResponse__Output): Promise<Admitted | undefined> {
  const limits = limitsOf(caller);
  const attempts = plan.attempts.slice(0, ATTEMPTS_MAX);
  const byok = isOwn(plan);
  const asked: HoldQuestion = {
    attempts,
    promptTokensMax: promptTokensMax(request.promptBytes, request.messageCount) + overheadTokensMax(attempts, request),
    maxTokens: request.maxTokens,
    choices: request.choices,
    isLimited: isWatched(caller, byok),
    isFree: byok,
  };
  const hold = holdFor(asked);
  const question: AdmitRequest = {
    requestId,
    accountId: caller.account.id,
    keyId: caller.key.id,
    counter: 'CHAT',
    limits,
    amountNanoUsd: hold.amountNanoUsd.toString(),
    minAmountNanoUsd: hold.minAmountNanoUsd.toString(),
    tokens: hold.tokens.toString(),
    minTokens: hold.minTokens.toString(),
    byok,
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
    if (!answer.isGone()) answer.refuse({ kind: 'attempts', attempts: [], retryAfterMs: plan.retryAfterMs });
    return undefined;
  }
  return { admission, question: asked, hold };
}

/** Where only live holds stand in the way, quota is asked again as they end, for up to two seconds. */
function admitOnceFree({ quota, clock, waitingRoom }: Neighbours, question: AdmitRequest, blocked: AdmitResponse__Output, answer: Answer): Promise<AdmitResponse__Output> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    let isTimeUp = false;
    /** Only one question is on its way: the answer of a second could be a hold that nobody knows of. */
    let isAsking = false;
    let latest = blocked;
    const over = (admission: AdmitResponse__Output): boolean => {
      isOver = true;
      giveUp.cancel();
      resolve(admission);
      return true;
    };
    const ask = async (): Promise<boolean> => {
      if (isOver || answer.isGone()) return isOver || over(latest);
      if (isAsking) return false;
      isAsking = true;
      try {
        latest = await quota.admit(question);
        return latest.decision !== 'BLOCKED_BY_LIVE' || isTimeUp ? over(latest) : isOver;
      } catch (error) {
        isOver = true;
        giveUp.cancel();
        reject(toFault(error));
        return true;
      } finally {
        isAsking = false;
      }
    };
    const leave = waitingRoom.enter(question.accountId ?? '', ask);
    const giveUp = clock.setTimer(LIVE_HOLDS_WAIT_MS, () => {
      // A last look, so that nobody is refused over room that was freed a moment ago.
      isTimeUp = true;
      leave();
      void ask();
    });
  });
}

/** Tries the plan. While another answer is tried for one that is kept in reserve, its worker hears that edge lives: it would end the hold, and charge it, after 30 s. */
async function dispatchPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start?: RoundStart): Promise<Conducted> {
  const { workers, clock } = neighbours;
  let stopTending: (() => void) | undefined;
  try {
    return await tryPlan(neighbours, turn, plan, admitted, start, (provider, attempt) => (stopTending = tending(clock, () => workers.tend(provider, turn.requestId, attempt))));
  } finally {
    stopTending?.();
  }
}

/** Tries the plan in order until one attempt answers. Nothing is tried again once content reached the client. `start`: of one round of several, whose answered attempts are told of by whoever conducts the rounds. `onReserve` hears of at most one attempt. */
async function tryPlan(neighbours: Neighbours, turn: Turn, plan: DecideResponse__Output, admitted: Admitted, start: RoundStart | undefined, onReserve: (provider: string, attempt: number) => void): Promise<Conducted> {
  const { workers, quota, clock, heartbeatMs, checkSchema, retries } = neighbours;
  const { requestId, caller, answer, request } = turn;
  const accountId = caller.account.id;
  const reports: AttemptReport[] = [];
  /** Grows by those that are tried again on another credential. */
  const attempts = plan.attempts.slice(0, ATTEMPTS_MAX);
  const activity: Activity = { lastSentMs: turn.silentSinceMs ?? clock.monotonicMs() };
  const before = start?.before ?? NO_REPORTS;
  const first = before.length;
  let reserve: { readonly number: number; readonly report: AttemptReport; readonly give: Reserve } | undefined;
  // What failed after a round was answered leaves the hold to what answered.
  const tell = (provider: string, attempt: number, outcome: Outcome): Promise<void> => workers.tellOutcome(provider, accountId, requestId, attempt, outcome, first > 0 && outcome === 'DISCARDED');
  const all = (): readonly AttemptReport[] => (first === 0 ? reports : [...before, ...reports]);
  // Failed attempts whose workers do not know what became of them. One counts as superseded only when a later one is
  // surely in a journal: it gives up its say over the hold, which else nobody would end.
  let untold: { readonly provider: string; readonly number: number; readonly isTraced: boolean }[] = [];
  const tellEarlier = (outcome: 'SUPERSEDED' | 'DISCARDED', kept?: number): readonly Promise<void>[] => {
    if (untold.length === 0) return NOBODY_TOLD;
    const telling = untold.filter(({ number }) => number !== kept);
    untold = untold.filter(({ number }) => number === kept);
    return telling.map(({ provider, number }) => tell(provider, number, outcome));
  };
  // True once an attempt is in a worker's journal: that worker then ends the hold when it learns the outcome.
  let isJournaled = false;
  const discard = (): Promise<void> => {
    const tellings = tellEarlier('DISCARDED');
    if (!isJournaled && first === 0) quota.release(accountId, requestId);
    return written(isJournaled ? tellings : [], clock);
  };
  // Whether an answer kept in reserve is superseded is known when a better one has been given.
  let isSuperseding = false;
  const supersede = (): void => {
    isSuperseding = true;
    void tellEarlier('SUPERSEDED', reserve?.number);
  };
  const terms = healingTermsOf(request);

  retries.noteRequest();
  for (const planned of attempts) {
    const number = first + reports.length + 1;
    if (reports.length > 0 && !retries.take()) break;
    isSuperseding = false;
    const { provider, model } = planned;
    const result = await runAttempt({
      workers,
      clock,
      heartbeatMs,
      activity,
      answer,
      request: dispatchRequest(turn, plan, planned, admitted, number, start),
      isStream: request.stream,
      route: { provider, model, decisionId: plan.decisionId, attempts: start === undefined ? number : undefined, head: undefined, estimate: () => estimateOf(request, plan, planned) },
      earlier: all(),
      decisionId: plan.decisionId,
      healing: terms === undefined ? undefined : { terms, checkSchema, mayFailOver: start === undefined && reserve === undefined && number < attempts.length && retries.hasRoom() && (neighbours.unhealedAnswers?.waitMs(accountId) ?? 0) === 0 },
      onJournaled: () => {
        supersede();
        // Should this edge die now, the round is concluded as soon as those before, which end the hold that it draws on.
        if (start !== undefined) workers.tend(provider, requestId, number);
      },
    });
    const report: AttemptReport = { provider, model, failed: result.kind === 'failed' ? result.failed : undefined, byok: planned.byok, round: start?.round };
    switch (result.kind) {
      case 'complete':
      case 'cut':
        void tellEarlier('SUPERSEDED');
        if (start === undefined) void tell(provider, number, 'DELIVERED');
        if (reserve !== undefined) neighbours.unhealedAnswers?.note(accountId);
        reports.push(report);
        return { attempts: all(), result: result.kind === 'cut' ? 'cut' : 'answered' };
      case 'gone':
        // The worker concludes the same from the cancel, unless its last event had already left. Unless it is known to
        // be in a journal, earlier attempts are left to their workers, which conclude by themselves.
        if (result.wasSent) {
          void tell(provider, number, 'DELIVERED');
          if (isSuperseding) void tellEarlier('SUPERSEDED');
        } else void discard();
        if (start === undefined || result.wasSent) reports.push(report);
        return { attempts: all(), result: 'gone' };
      case 'failed':
        reports.push(report);
        untold.push({ provider, number, isTraced: result.trace !== 'none' });
        if (result.trace !== 'none') isJournaled = true;
        // Once for each: it comes next, and the last of the plan gives way.
        if (result.failed.otherCredential === true && attempts.indexOf(planned) === reports.length - 1) {
          attempts.splice(reports.length, 0, planned);
          attempts.splice(ATTEMPTS_MAX);
        }
        if (result.reserve !== undefined) {
          reserve = { number, report: { provider, model, failed: undefined, byok: planned.byok }, give: result.reserve };
          onReserve(provider, number);
        }
        break;
    }
    if (!(report.failed?.retryable ?? false)) break;
  }
  if (reserve !== undefined && !answer.isGone()) {
    // Nobody gave a better one: it is what the client gets, and pays.
    void tell(reserve.report.provider, reserve.number, 'DELIVERED');
    untold = untold.filter(({ isTraced }) => isTraced);
    void tellEarlier('SUPERSEDED', reserve.number);
    reports[reserve.number - 1] = reserve.report;
    reserve.give(reports);
    return { attempts: reports, result: 'answered' };
  }
  await discard();
  answer.refuse({ kind: 'attempts', attempts: all() });
  return { attempts: all(), result: 'refused' };
}

/** At the cards for the estimated prompt, which grows in rounds. */
function estimateOf(request: ChatRequest, plan: DecideResponse__Output, planned: PlannedAttempt__Output): Estimate {
  const card = cardFor(planned.steps, request.promptTokens) ?? planned.card;
  const referenceCard = cardFor(plan.referenceSteps, request.promptTokens) ?? plan.referenceCard;
  assert(card !== null, 'A planned attempt carries its price card.');
  const tokens = { ...NO_TOKENS, inputUncached: request.promptTokens, outputText: Math.min(request.maxTokens ?? ESTIMATED_OUTPUT_TOKENS, ESTIMATED_OUTPUT_TOKENS) };
  const cost = costOf(tokens, priceCardOf(card));
  const reference = referenceCard !== null && referenceCard.id !== '' ? costOf(tokens, priceCardOf(referenceCard)) : cost;
  return { costNanoUsd: cost, savingsNanoUsd: asNanoUsd(reference > cost ? reference - cost : 0n) };
}

function dispatchRequest({ requestId, caller, request }: Turn, plan: DecideResponse__Output, planned: PlannedAttempt__Output, admitted: Admitted, attempt: number, start: RoundStart | undefined): DispatchRequest {
  assert(planned.card !== null, 'A planned attempt carries its price card.');
  const { admission, hold, question } = admitted;
  const dispatched: DispatchRequest = {
    requestId,
    attempt,
    retryOf: Array.from({ length: attempt - 1 - (start?.before.length ?? 0) }, (_, index) => (start?.before.length ?? 0) + index + 1),
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
    byok: planned.byok,
    byokHandle: planned.byok ? (ownCredentialsOf(caller).handles.get(planned.provider) ?? '') : '',
    stream: request.stream || hold.isTranched,
    maxTokensParam: planned.maxTokensParam,
    temperatureMax: planned.temperatureMax,
    fields: planned.dropParams.length === 0 ? [...request.fields] : request.fields.filter((field) => !planned.dropParams.includes(field.name)),
    promptTokens: request.promptTokens,
    firstByteTimeoutMs: planned.firstByteTimeoutMs,
    // A model that is slow to begin may be as slow between its first events.
    idleTimeoutMs: Math.max(IDLE_TIMEOUT_MS, planned.firstByteTimeoutMs),
    responseFormat: request.needs.responseFormat ?? '',
    routedFrom: request.model,
    decisionId: plan.decisionId,
    clientStream: request.stream,
    maxOutputTokens: planned.maxOutputTokens,
    holdEpoch: admission.epoch,
  };
  if (planned.steps.length > 0) dispatched.steps = planned.steps;
  if (plan.referenceSteps.length > 0) dispatched.referenceSteps = plan.referenceSteps;
  if (start !== undefined) {
    dispatched.rounds = true;
    dispatched.earlierNanoUsd = String(start.earlierNanoUsd);
    dispatched.earlierTokens = start.earlierTokens;
  }
  if (!question.isLimited) {
    if (request.maxTokens !== undefined) dispatched.maxTokens = request.maxTokens;
    return dispatched;
  }
  const terms = answerTerms(planned, question, hold.isTranched, grantedBy(admission));
  dispatched.maxTokens = terms.maxTokens;
  dispatched.shortened = terms.isShortened;
  dispatched.gather = hold.isTranched && !request.stream;
  // The hold is one for all rounds: it holds what those before are charged. After a loss of quota's store the worker tells it.
  const earlier = start?.earlierNanoUsd ?? 0n;
  dispatched.heldNanoUsd = String(BigInt(admission.heldNanoUsd) + earlier);
  if (admission.heldTokens !== '0') dispatched.heldTokens = String(BigInt(admission.heldTokens) + BigInt(start?.earlierTokens ?? 0));
  if (terms.heldOutputTokens > 0) {
    dispatched.heldOutputTokens = terms.heldOutputTokens;
    dispatched.wholeNanoUsd = String(terms.wholeNanoUsd + earlier);
    dispatched.outputPriceMax = terms.outputPriceMax.toString();
  }
  return dispatched;
}

function grantedBy({ heldNanoUsd, heldTokens, roomNanoUsd, roomTokens }: AdmitResponse__Output): Granted {
  return {
    heldNanoUsd: asNanoUsd(heldNanoUsd),
    heldTokens: Number(heldTokens),
    roomNanoUsd: roomNanoUsd === undefined ? undefined : asNanoUsd(roomNanoUsd),
    roomTokens: roomTokens === undefined ? undefined : Number(roomTokens),
  };
}
