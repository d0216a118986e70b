/** Runs the plugins of a request: first checks all options, then runs them by rank, each with its own time limit. */
import type { Bought } from '@signalbox/kernel/card-fees';
import type { Clock } from '@signalbox/kernel/clock';
import { Conversation, firstChars } from '@signalbox/plugin-kit/conversation';
import type { OptionSpecs, OptionValues } from '@signalbox/plugin-kit/manifest';
import { readOptions } from '@signalbox/plugin-kit/options';
import { PluginFailure, PluginRefusal, type AnyPlugin, type CitedSource, type DataPolicy, type OwnCredential, type Prepared, type StageDetail, type ToolDefinition, type ToolImage } from '@signalbox/plugin-kit/plugin';
import type { Registry } from './registry.js';

export interface Wish {
  readonly id: string;
  readonly options: Readonly<Record<string, unknown>>;
}

export interface Asked {
  readonly requestId: string;
  readonly accountId: string;
  readonly user: string;
  readonly wishes: readonly Wish[];
  readonly messages: readonly unknown[];
  readonly policy: DataPolicy;
}

/** Why the request is refused; a mistake of the client. */
export interface Problem {
  readonly kind: 'invalid' | 'unavailable' | 'conflict';
  readonly plugin: string;
  readonly param: string;
  readonly message: string;
}

export interface Stage {
  readonly name: string;
  readonly plugin: string;
  readonly status: 'completed' | 'failed' | 'scheduled';
  readonly durationMs: number;
  /** Nano-USD; 0 unless completed. */
  readonly feeNanoUsd: bigint;
  /** The part of the fee that a provider bills. */
  readonly bought?: Bought;
  readonly detail: StageDetail;
}

export type PrepareResult =
  | { readonly kind: 'problem'; readonly problem: Problem }
  | {
      readonly kind: 'prepared';
      /** Undefined = unchanged. */
      readonly messages: readonly unknown[] | undefined;
      readonly stages: readonly Stage[];
      readonly citations: readonly CitedSource[];
      readonly files: readonly { readonly hash: string; readonly name: string }[];
      readonly observes: boolean;
      /** Functions offered to the model, like a client's own tools. */
      readonly tools: readonly OfferedTool[];
      readonly toolRoundsMax: number;
    };

export interface OfferedTool extends ToolDefinition {
  /** For a function that spends money outside: the most that one call may cost, in nano-USD, including the plugin's own fee. 0 = it spends none. */
  readonly feeNanoUsdMax: bigint;
}

/** Who pays for a tool's calls to a provider. */
export interface ToolPayer {
  readonly byok: boolean;
  readonly ownCredentials: readonly OwnCredential[];
}

export interface ToolOutcome {
  readonly content: string;
  readonly stage: Stage;
  readonly images: readonly ToolImage[];
}

export interface ToolCall {
  readonly name: string;
  /** JSON text as the model wrote it, which may be invalid. */
  readonly arguments: string;
}

export interface Runner {
  /** Rejects only on a bug. `signal` aborts when the caller has left. */
  prepare(asked: Asked, signal: AbortSignal): Promise<PrepareResult>;
  observe(asked: Asked, signal: AbortSignal): Promise<readonly Stage[]>;
  /** Never rejects because of what a model or a tool does. */
  runTool(asked: Asked, call: ToolCall, payer: ToolPayer, signal: AbortSignal): Promise<ToolOutcome>;
}

/** How often a model is asked again with results. */
const TOOL_ROUNDS_MAX = 8;
/** Longest result of one call that is passed to a model; longer results are cut. */
const TOOL_CONTENT_CHARS_MAX = 131_072;

export interface RunnerOptions {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly onStage: (stage: Stage) => void;
}

/** A plugin of this request with its checked options. */
interface Chosen {
  readonly plugin: AnyPlugin;
  readonly options: OptionValues<OptionSpecs>;
}

/** Names of stages that differ from the plugin's id. */
const READING: Readonly<Record<string, string>> = { memory: 'memory-read' };
const WRITING: Readonly<Record<string, string>> = { memory: 'memory-write' };

export function createRunner({ registry, clock, onStage }: RunnerOptions): Runner {
  const choose = ({ wishes, policy }: Asked): readonly Chosen[] | Problem => {
    const chosen: Chosen[] = [];
    for (const { id, options } of wishes) {
      const plugin = registry.find(id);
      if (plugin === undefined) return { kind: 'unavailable', plugin: id, param: 'plugins', message: `The plugin '${id}' is not installed here.` };
      const read = readOptions<OptionSpecs>(plugin.manifest.options, options);
      const problem = read.ok ? plugin.optionProblem?.(read.values) : read.problem;
      if (problem !== undefined || !read.ok) return { kind: 'invalid', plugin: id, param: `plugin_options.${id}.${problem?.name ?? ''}`, message: `Invalid option '${problem?.name ?? ''}' of the plugin '${id}': expected ${problem?.expected ?? ''}.` };
      if (!plugin.allows(policy, read.values)) {
        const by = plugin.leftOutBy?.(policy, read.values) ?? [];
        return { kind: 'conflict', plugin: id, param: 'plugins', message: `The plugin '${id}' as it is set up here cannot meet the policy of this request${by.length === 0 ? '' : `; left out by: ${by.join(', ')}`}.` };
      }
      chosen.push({ plugin, options: read.values });
    }
    return chosen.sort((a, b) => registry.rank(a.plugin.manifest.id) - registry.rank(b.plugin.manifest.id));
  };

  /** Runs `work` with the plugin's time limit; rejects with PluginFailure `timeout` beyond it, and `cancelled` if the caller leaves. */
  const inTime = <Result>(timeoutMs: number, caller: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> =>
    new Promise<Result>((resolve, reject) => {
      const own = new AbortController();
      const stop = (reason: string): void => {
        reject(new PluginFailure(reason));
        own.abort();
      };
      const timer = clock.setTimer(timeoutMs, () => stop('timeout'), { unref: true });
      const onCaller = (): void => stop('cancelled');
      caller.addEventListener('abort', onCaller, { once: true });
      if (caller.aborted) onCaller();
      work(own.signal)
        .then(resolve, reject)
        .finally(() => {
          timer.cancel();
          caller.removeEventListener('abort', onCaller);
        });
    });

  const stageOf = (name: string, plugin: string, startedMs: number, status: Stage['status'], feeNanoUsd: bigint, detail: StageDetail, bought?: Bought): Stage => {
    const stage = { name, plugin, status, durationMs: Math.max(0, Math.round(clock.monotonicMs() - startedMs)), feeNanoUsd, detail, ...(bought === undefined ? {} : { bought }) };
    onStage(stage);
    return stage;
  };
  const reasonOf = (error: unknown): string => (error instanceof PluginFailure ? error.reason : 'internal');

  return {
    prepare: async (asked, signal) => {
      const chosen = choose(asked);
      if (!isList(chosen)) return { kind: 'problem', problem: chosen };
      const conversation = new Conversation(asked.messages);
      const stages: Stage[] = [];
      const citations: CitedSource[] = [];
      const files: { readonly hash: string; readonly name: string }[] = [];
      let problem: Problem | undefined;
      const run = async ({ plugin, options }: Chosen): Promise<Prepared | undefined> => {
        const { id, timeoutMs } = plugin.manifest;
        if (plugin.prepare === undefined) return undefined;
        const name = READING[id] ?? id;
        const startedMs = clock.monotonicMs();
        const { requestId, accountId, user, policy } = asked;
        try {
          const prepared = await inTime(timeoutMs, signal, (own) => plugin.prepare?.({ requestId, accountId, user, options, policy, conversation, signal: own }) ?? Promise.reject(new PluginFailure('internal')));
          stages.push(stageOf(name, id, startedMs, 'completed', prepared.isIdle === true ? 0n : registry.feeNanoUsd(id), prepared.detail ?? {}));
          return prepared;
        } catch (error) {
          if (error instanceof PluginRefusal) problem ??= { kind: 'invalid', plugin: id, param: error.param, message: error.message };
          stages.push(stageOf(name, id, startedMs, 'failed', 0n, { reason: error instanceof PluginRefusal ? 'refused' : reasonOf(error) }));
          return undefined;
        }
      };
      for (const group of groupsOf(chosen, registry)) {
        // Changes to the conversation are applied in the order of ranks, whichever plugin was faster.
        for (const prepared of await Promise.all(group.map(run))) {
          if (prepared === undefined) continue;
          prepared.apply(conversation);
          citations.push(...(prepared.citations ?? []));
          files.push(...(prepared.files ?? []));
        }
        if (problem !== undefined) return { kind: 'problem', problem };
      }
      const observing = chosen.filter(({ plugin, options }) => plugin.observes?.(options, asked.policy) ?? false);
      for (const { plugin } of observing) stages.push({ name: WRITING[plugin.manifest.id] ?? plugin.manifest.id, plugin: plugin.manifest.id, status: 'scheduled', durationMs: 0, feeNanoUsd: 0n, detail: {} });
      const tools = chosen.flatMap(({ plugin, options }) => (plugin.tools?.(options, asked.policy) ?? []).map((tool): OfferedTool => ({ ...tool, feeNanoUsdMax: tool.costNanoUsdMax === undefined ? 0n : tool.costNanoUsdMax + registry.feeNanoUsd(plugin.manifest.id) })));
      const toolRoundsMax = Math.min(TOOL_ROUNDS_MAX, ...chosen.flatMap(({ options }) => (typeof options['max_rounds'] === 'number' ? [options['max_rounds']] : [])));
      return { kind: 'prepared', messages: conversation.changed(), stages, citations, files, observes: observing.length > 0, tools, toolRoundsMax };
    },

    runTool: async (asked, call, { byok, ownCredentials }, signal) => {
      const startedMs = clock.monotonicMs();
      const chosen = choose(asked);
      const found = isList(chosen) ? chosen.find(({ plugin, options }) => plugin.tools?.(options, asked.policy).some(({ name }) => name === call.name) === true) : undefined;
      if (found?.plugin.runTool === undefined) return { content: 'Error: there is no such tool.', images: [], stage: stageOf(call.name.slice(0, 64), '', startedMs, 'failed', 0n, { reason: 'unknown_tool' }) };
      const { plugin, options } = found;
      const { id, timeoutMs } = plugin.manifest;
      const given = argumentsOf(call.arguments);
      if (given === undefined) return { content: 'Error: the arguments are no JSON object.', images: [], stage: stageOf(id, id, startedMs, 'failed', 0n, { reason: 'bad_arguments' }) };
      const { requestId, accountId, policy } = asked;
      try {
        const result = await inTime(timeoutMs, signal, (own) => plugin.runTool?.({ requestId, accountId, options, policy, name: call.name, arguments: given, byok, ownCredentials, signal: own }) ?? Promise.reject(new PluginFailure('internal')));
        const bought: Bought | undefined = result.isFailed || result.costProvider === undefined || result.costNanoUsd === undefined ? undefined : { provider: result.costProvider, nanoUsd: result.costNanoUsd };
        const fee = result.isFailed ? 0n : registry.feeNanoUsd(id) + (result.costNanoUsd ?? 0n);
        return { content: firstChars(result.content, TOOL_CONTENT_CHARS_MAX), images: result.isFailed ? [] : (result.images ?? []), stage: stageOf(id, id, startedMs, result.isFailed ? 'failed' : 'completed', fee, result.detail ?? {}, bought) };
      } catch (error) {
        const reason = reasonOf(error);
        return { content: `Error: the tool could not be run (${reason}).`, images: [], stage: stageOf(id, id, startedMs, 'failed', 0n, { reason }) };
      }
    },

    observe: async (asked, signal) => {
      const chosen = choose(asked);
      if (!isList(chosen)) return [];
      const stages: Stage[] = [];
      const { requestId, accountId, user, policy } = asked;
      for (const { plugin, options } of chosen) {
        const { id, timeoutMs } = plugin.manifest;
        if (plugin.observe === undefined || plugin.observes?.(options, policy) !== true) continue;
        const startedMs = clock.monotonicMs();
        const name = WRITING[id] ?? id;
        try {
          const conversation = new Conversation(asked.messages);
          const detail = await inTime(timeoutMs, signal, (own) => plugin.observe?.({ requestId, accountId, user, options, policy, conversation, signal: own }) ?? Promise.resolve({}));
          stages.push(stageOf(name, id, startedMs, 'completed', 0n, detail));
        } catch (error) {
          stages.push(stageOf(name, id, startedMs, 'failed', 0n, { reason: reasonOf(error) }));
        }
      }
      return stages;
    },
  };
}

/** Undefined unless it is a JSON object. */
function argumentsOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

const isList = (chosen: readonly Chosen[] | Problem): chosen is readonly Chosen[] => Array.isArray(chosen);

/** Groups plugins that run concurrently. */
function groupsOf(chosen: readonly Chosen[], registry: Registry): readonly (readonly Chosen[])[] {
  const groups: Chosen[][] = [];
  let last: number | undefined;
  for (const one of chosen) {
    const rank = Math.floor(registry.rank(one.plugin.manifest.id));
    if (rank === last) groups.at(-1)?.push(one);
    else groups.push([one]);
    last = rank;
  }
  return groups;
}
