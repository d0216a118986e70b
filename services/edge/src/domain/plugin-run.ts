/** Plugins of a request: checks, what they add before routing, their fees, and the notice to those that observe answers. */
import type { PriceCard__Output, PriceStep__Output } from '@signalbox/contracts/common';
import type { PrepareRequest, PrepareResponse__Output, Stage__Output, Tool__Output } from '@signalbox/contracts/plugins';
import type { DecideResponse__Output } from '@signalbox/contracts/routing';
import { assert } from '@signalbox/kernel/assert';
import { cardIdWith, type CardFees } from '@signalbox/kernel/card-fees';
import type { Clock } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { isTier, tierTerms } from '@signalbox/kernel/tiers';
import { readOptions } from '@signalbox/plugin-kit/options';
import type { PipelineStage, PluginProblem } from './answer.js';
import type { ChatRequest } from './chat-request.js';
import type { FileLine } from './file-line.js';
import type { FloodGuard } from './flood.js';
import { allowedModelsOf } from './limits.js';
import { createPluginAnswer } from './plugin-answer.js';
import { ownCredentialsOf } from './own-credentials.js';
import { FILE_READER, isPluginId, PLUGINS } from './plugins.js';
import type { Caller, PluginsPort } from './ports.js';
import { clientToolNames, toolChoiceOf, TOOLS_MAX, withTools } from './tool-request.js';
import type { ServerTools, Turn } from './turn.js';

export interface PluginNeighbours {
  /** Absent = no plugins are installed. */
  readonly plugins?: PluginsPort | undefined;
  /** Returns the request with other messages (JSON text). */
  readonly withMessages?: ((request: ChatRequest, messages: Buffer) => ChatRequest) | undefined;
  /** Counts by account the plugin runs for requests that were then refused. */
  readonly wastedRuns?: FloodGuard | undefined;
  /** Where requests wait for their files to be read; absent = none waits. */
  readonly fileLine?: FileLine | undefined;
  readonly clock: Clock;
  /** The latest known record of a caller, without a call; the caller itself if there is none. Absent = always the caller itself. */
  readonly presentCaller?: ((caller: Caller) => Caller) | undefined;
}

export interface PreparedTurn {
  readonly turn: Turn;
  /** At least one plugin observes answers. */
  readonly observes: boolean;
}

/** Runs the plugins; returns the changed turn, or undefined if the request was refused. Rejects with Fault `overloaded` if there is no room for what they add. */
export async function preparePlugins(neighbours: PluginNeighbours, turn: Turn): Promise<PreparedTurn | undefined> {
  const { plugins, withMessages, wastedRuns, fileLine, clock } = neighbours;
  const { caller, request, answer } = turn;
  const installed = await plugins?.manifests();
  const problem = installed === undefined ? undefined : optionProblem(request, installed);
  if (problem !== undefined) {
    answer.refuse({ kind: 'plugin-problem', problem });
    return undefined;
  }
  if (!accountMay(turn)) return undefined;
  const absent = request.pluginIds.find((id) => plugins === undefined || withMessages === undefined || (installed !== undefined && !installed.has(id)));
  if (plugins === undefined || withMessages === undefined || absent !== undefined) {
    answer.refuse({ kind: 'plugin-unavailable', plugin: absent ?? '' });
    return undefined;
  }
  const waitMs = wastedRuns?.waitMs(caller.account.id) ?? 0;
  if (waitMs > 0) {
    answer.refuse({ kind: 'plugins-flooded', waitMs });
    return undefined;
  }
  const startedMs = clock.monotonicMs();
  const prepared = await prepare(plugins, turn, fileLine);
  if (prepared === undefined) return { turn: { ...turn, answer: createPluginAnswer(answer, { stages: request.pluginIds.map(failedStage), citations: [], files: [] }), silentSinceMs: startedMs }, observes: false };
  const found = prepared.problem;
  if (found !== null && found.kind !== '') {
    const { kind, plugin, param, message } = found;
    // A file was opened in vain, which may cost as much as reading it.
    if (kind === 'invalid') wastedRuns?.note(caller.account.id);
    answer.refuse(kind === 'unavailable' ? { kind: 'plugin-unavailable', plugin } : { kind: 'plugin-problem', problem: { kind: kind === 'conflict' ? 'conflict' : 'value', plugin, param, message } });
    return undefined;
  }
  const clash = choiceProblem(request, prepared.tools) ?? (prepared.tools.length === 0 ? undefined : toolProblem(request, prepared.tools));
  if (clash !== undefined) {
    wastedRuns?.note(caller.account.id);
    answer.refuse({ kind: 'plugin-problem', problem: clash });
    return undefined;
  }
  const stages = prepared.stages.map(stageOf);
  const feeNanoUsd = stages.reduce((sum, stage) => sum + stage.feeNanoUsd, 0n);
  return {
    turn: {
      ...turn,
      request: withTheirTools(prepared.messages.length === 0 ? request : withMessages(request, Buffer.from(prepared.messages)), prepared.tools),
      ...(prepared.tools.length === 0 ? {} : { tools: serverTools(neighbours, plugins, turn, prepared) }),
      answer: createPluginAnswer(answer, { stages, citations: prepared.citations, files: prepared.files, onWaste: () => wastedRuns?.note(caller.account.id) }),
      silentSinceMs: startedMs,
      ...(feeNanoUsd > 0n ? { feeNanoUsd } : {}),
    },
    observes: prepared.observes,
  };
}

const stageOf = ({ name, plugin, status, durationMs, feeNanoUsd, detail, boughtProvider, boughtNanoUsd }: Stage__Output): PipelineStage => ({
  stage: name, plugin, status, durationMs, feeNanoUsd: BigInt(feeNanoUsd), detail: detailOf(detail), ...(boughtProvider === '' ? {} : { bought: { provider: boughtProvider, nanoUsd: BigInt(boughtNanoUsd) } }),
});

const withTheirTools = (request: ChatRequest, tools: readonly Tool__Output[]): ChatRequest => (tools.length === 0 ? request : withTools(request, tools.map(({ definition }) => Buffer.from(definition).toString('utf8'))));

function serverTools({ presentCaller }: PluginNeighbours, plugins: PluginsPort, turn: Turn, { tools, toolRoundsMax }: PrepareResponse__Output): ServerTools {
  const { caller } = turn;
  const asked = pluginsRequest(turn);
  return {
    names: new Set(tools.map(({ name }) => name)),
    spending: new Map(tools.filter(({ feeNanoUsdMax, imagesMax }) => BigInt(feeNanoUsdMax) > 0n || imagesMax > 0).map(({ name, feeNanoUsdMax, imagesMax }) => [name, { feeNanoUsdMax: BigInt(feeNanoUsdMax), imagesMax }])),
    roundsMax: toolRoundsMax,
    run: async (call, byok, signal) => {
      // The account's allow and deny lists apply as they are now.
      const now = presentCaller?.(caller) ?? caller;
      const { requestId = '', accountId = '', plugins: wishes = [], zdr = false, denyTraining = false, allowedProviders = [], deniedProviders = [], models = null, ownCredentials = [] } = now === caller ? asked : pluginsRequest({ ...turn, caller: now });
      const { content, stage, images } = await plugins.runTool({ requestId, accountId, plugins: wishes, name: call.name, arguments: call.arguments, zdr, denyTraining, allowedProviders, deniedProviders, models, byok, ownCredentials }, signal);
      return { content, stage: stage === null ? { ...failedStage(call.name), plugin: '' } : stageOf(stage), images };
    },
  };
}

/** With tools of plugins a request has one choice, tool names are unique, and there are at most `TOOLS_MAX` tools in all. */
function toolProblem(request: ChatRequest, tools: readonly Tool__Output[]): PluginProblem | undefined {
  if (request.choices > 1) return { kind: 'value', plugin: '', param: 'n', message: "Invalid value for 'n': plugins that offer tools to the model give one answer." };
  const own = clientToolNames(request);
  const all = own.length + tools.length;
  if (all > TOOLS_MAX) return { kind: 'value', plugin: '', param: 'tools', message: `Invalid value for 'tools': expected at most ${TOOLS_MAX} items, and ${own.length} with the ${tools.length} of plugins of this request are ${all}.` };
  const at = own.findIndex((name) => tools.some((tool) => tool.name === name));
  return at === -1 ? undefined : { kind: 'value', plugin: '', param: `tools.[${at}].function.name`, message: `Invalid value for 'tools.[${at}].function.name': '${own[at] ?? ''}' is a tool of a plugin of this request.` };
}

/** If the client forces a tool call, it or a plugin must offer that tool. */
function choiceProblem(request: ChatRequest, tools: readonly Tool__Output[]): PluginProblem | undefined {
  const choice = toolChoiceOf(request);
  if (choice?.isForced !== true) return undefined;
  const own = clientToolNames(request);
  const theirs = tools.map(({ name }) => name);
  if ([...own, ...theirs].some((name) => choice.name === '' || choice.name === name)) return undefined;
  const expected = own.length > 0 ? ['the name of one of `tools`', ...theirs].join(', or ') : theirs.length === 0 ? '`tools` beside it' : `the name of a tool that is offered: ${theirs.join(', ')}`;
  return { kind: 'value', plugin: '', param: 'tool_choice', message: `Invalid value for 'tool_choice': expected ${expected}.` };
}

/** Undefined when the plugins service is away: the request then goes on without its plugins. */
async function prepare(plugins: PluginsPort, turn: Turn, fileLine: FileLine | undefined): Promise<PrepareResponse__Output | undefined> {
  const { caller, request, answer, takeRoom } = turn;
  const left = new AbortController();
  answer.attend({ onSlow: () => undefined, onDrain: () => undefined, onGone: () => left.abort() });
  const leave = request.pluginIds.includes(FILE_READER) ? await fileLine?.enter(caller.account.id, left.signal) : undefined;
  try {
    const prepared = await plugins.prepare(pluginsRequest(turn), left.signal).catch(() => undefined);
    // Before the next one's text may arrive.
    if (prepared !== undefined && takeRoom?.(prepared.messages.length) === false) throw new Fault('overloaded', 'no room for what plugins added');
    return prepared;
  } finally {
    leave?.();
  }
}

/** Tells plugins that observe answers that the answer was given. */
export function observeAnswer({ plugins }: PluginNeighbours, turn: Turn): void {
  plugins?.observe(pluginsRequest(turn));
}

function pluginsRequest({ requestId, caller, request }: Turn): PrepareRequest {
  const { handles, zdrProviders, ownAddressProviders } = ownCredentialsOf(caller);
  return {
    requestId,
    accountId: caller.account.id,
    user: request.user ?? '',
    plugins: request.pluginIds.map((id) => ({ id, options: Buffer.from(JSON.stringify(optionsOf(request, id))) })),
    messages: request.fields.find(({ name }) => name === 'messages')?.value ?? Buffer.from('[]'),
    zdr: request.zdr,
    denyTraining: request.dataCollection === 'deny',
    ...providersLeft(caller, request),
    models: { allowedByName: allowedModelsOf(caller, 'byName'), allowedByChoice: allowedModelsOf(caller, 'viaAuto'), denied: caller.account.denyModels },
    ownCredentials: [...handles].map(([provider, handle]) => ({ provider, handle, zdr: zdrProviders.includes(provider), ownAddress: ownAddressProviders.includes(provider) })),
  };
}

/** The provider filters of the account and the request: plugins that call providers are bound by them too. */
function providersLeft({ account }: Caller, { provider }: ChatRequest): Required<Pick<PrepareRequest, 'allowedProviders' | 'deniedProviders'>> {
  const isListedOnly = provider?.allowFallbacks === false;
  const allowed = [account.allowProviders, provider?.only ?? [], isListedOnly ? (provider.order ?? []) : []];
  return { allowedProviders: allowed.filter((names) => names.length > 0).map((names) => ({ names })), deniedProviders: [...account.denyProviders, ...(provider?.ignore ?? [])] };
}

function optionsOf({ pluginOptions }: ChatRequest, id: string): Readonly<Record<string, unknown>> {
  const options: unknown = Object.hasOwn(pluginOptions, id) ? pluginOptions[id] : {};
  return typeof options === 'object' && options !== null ? (options as Readonly<Record<string, unknown>>) : {};
}

function optionProblem(request: ChatRequest, installed: NonNullable<Awaited<ReturnType<PluginsPort['manifests']>>>): PluginProblem | undefined {
  for (const id of request.pluginIds) {
    const manifest = installed.get(id);
    if (manifest === undefined) continue;
    const read = readOptions(manifest.options, optionsOf(request, id));
    if (read.ok) continue;
    const { name, kind, expected } = read.problem;
    const param = `plugin_options.${id}.${name}`;
    return { kind: kind === 'type' ? 'type' : 'value', plugin: id, param, message: kind === 'unknown' ? `The plugin '${id}' has no option '${name.slice(0, 64)}': expected ${expected}.` : `Invalid ${kind} for '${param}': expected ${expected}.` };
  }
  return undefined;
}

/** Refuses the whole request if it uses a paid plugin and the account is not on a paid tier. */
function accountMay({ caller: { account, variant }, request, answer }: Turn): boolean {
  assert(isTier(account.tier), 'A stored account has a known tier.');
  const paid = request.pluginIds.find((id) => isPluginId(id) && PLUGINS[id].isPaid);
  if (paid === undefined || tierTerms(variant, account.tier).isPaid) return true;
  answer.refuse({ kind: 'plugin-requires-paid', plugin: paid });
  return false;
}

const failedStage = (plugin: string): PipelineStage => ({ stage: plugin, plugin, status: 'failed', durationMs: 0, feeNanoUsd: 0n, detail: { reason: 'unavailable' } });

function detailOf(bytes: Uint8Array): PipelineStage['detail'] {
  return bytes.length === 0 ? {} : (JSON.parse(Buffer.from(bytes).toString('utf8')) as PipelineStage['detail']);
}

/** The plan with the fees added to all price cards, so that worker, hold, ledger and billing still compute from one card. The reference card includes them too, so that fees do not count as savings. */
export function withFees(plan: DecideResponse__Output, fees: CardFees): DecideResponse__Output {
  const dearer = (card: PriceCard__Output): PriceCard__Output => ({ ...card, id: cardIdWith(card.id, fees), requestNanoUsd: String(BigInt(card.requestNanoUsd) + fees.feeNanoUsd) });
  const dearerSteps = (steps: PriceStep__Output[]): PriceStep__Output[] => (steps.length === 0 ? steps : steps.map((step) => (step.card === null ? step : { ...step, card: dearer(step.card) })));
  return {
    ...plan,
    // A card without an id means that there is no reference.
    referenceCard: plan.referenceCard === null || plan.referenceCard.id === '' ? plan.referenceCard : dearer(plan.referenceCard),
    referenceSteps: dearerSteps(plan.referenceSteps),
    attempts: plan.attempts.map((attempt) => (attempt.card === null ? attempt : { ...attempt, card: dearer(attempt.card), steps: dearerSteps(attempt.steps) })),
  };
}
