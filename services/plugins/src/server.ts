/** RPC handlers of plugins: translate messages to domain calls and back. */
import type {
  AddSourceRequest__Output, AddSourceResponse, DeletedResponse, ListSourcesRequest__Output, ListSourcesResponse, ManifestsResponse, MemoryRequest__Output, MemoryResponse, ObserveRequest__Output, ObserveResponse,
  PluginWish__Output, PrepareRequest__Output, PrepareResponse, RemoveSourceRequest__Output, RunToolRequest__Output, RunToolResponse, Stage as StageMessage,
} from '@signalbox/contracts/plugins';
import { Fault } from '@signalbox/kernel/fault';
import { providersForbidden, providersNamed } from '@signalbox/kernel/provider-names';
import type { DataPolicy, ProviderBounds } from '@signalbox/plugin-kit/plugin';
import type { CallInfo, Handlers } from '@signalbox/rpc/call';
import type { Corpus, FactStore, PassageIndex } from './domain/ports.js';
import type { Registry } from './domain/registry.js';
import type { Asked, Runner, Stage, Wish } from './domain/run.js';
import { sourceOf } from './domain/sources.js';

export interface HandlersOptions {
  readonly registry: Registry;
  readonly runner: Runner;
  readonly index: PassageIndex;
  readonly facts: FactStore;
}

const FACTS_LISTED_MAX = 1_000;

function parsed(bytes: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new Fault('bad_message', `${what} are not valid JSON`);
  }
}

function wishOf({ id, options }: PluginWish__Output): Wish {
  const value = options.length === 0 ? {} : parsed(options, 'options');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Fault('bad_message', 'options are not an object');
  return { id, options: value as Wish['options'] };
}

function boundsOf({ allowedProviders, deniedProviders }: Pick<PrepareRequest__Output, 'allowedProviders' | 'deniedProviders'>): ProviderBounds {
  return { allowed: allowedProviders.map(({ names }) => providersNamed(names)), denied: providersForbidden(deniedProviders) };
}

/** The allow and deny lists that apply to a plan, and the credentials that it may use. */
function planTermsOf(request: Pick<PrepareRequest__Output, 'allowedProviders' | 'deniedProviders' | 'models' | 'ownCredentials'>): Pick<DataPolicy, 'providers' | 'models' | 'ownCredentials'> {
  return { providers: boundsOf(request), models: request.models ?? undefined, ownCredentials: request.ownCredentials };
}

function askedOf(request: PrepareRequest__Output | ObserveRequest__Output): Asked {
  const messages = parsed(request.messages, 'messages');
  if (!Array.isArray(messages)) throw new Fault('bad_message', 'messages are not an array');
  return {
    requestId: request.requestId,
    accountId: request.accountId,
    user: request.user,
    wishes: request.plugins.map(wishOf),
    messages: messages as readonly unknown[],
    policy: { zdr: request.zdr, denyTraining: request.denyTraining, ...('allowedProviders' in request ? planTermsOf(request) : {}) },
  };
}

const stageMessage = ({ name, plugin, status, durationMs, feeNanoUsd, detail, bought }: Stage): StageMessage => ({
  name, plugin, status, durationMs, feeNanoUsd: String(feeNanoUsd), detail: Object.keys(detail).length === 0 ? Buffer.alloc(0) : Buffer.from(JSON.stringify(detail)),
  ...(bought === undefined ? {} : { boughtProvider: bought.provider, boughtNanoUsd: String(bought.nanoUsd) }),
});

function corpusOf(text: string): Corpus {
  if (text === 'web' || text === 'books') return text;
  throw new Fault('bad_message', 'an unknown corpus');
}

/** Handlers for the Link and plain RPCs. */
export function createHandlers({ registry, runner, index, facts }: HandlersOptions): Handlers {
  return {
    unary: {
      Manifests: (): ManifestsResponse => ({ manifests: Buffer.from(JSON.stringify(registry.manifests())) }),
      Prepare: async (request: PrepareRequest__Output, { signal }: CallInfo): Promise<PrepareResponse> => {
        const result = await runner.prepare(askedOf(request), signal);
        if (result.kind === 'problem') return { problem: { ...result.problem } };
        return {
          messages: result.messages === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(result.messages)),
          stages: result.stages.map(stageMessage),
          citations: result.citations.map(({ marker, url, title, content }) => ({ marker, url, title, content })),
          files: result.files.map(({ hash, name }) => ({ hash, name })),
          observes: result.observes,
          tools: result.tools.map(({ name, description, parameters, feeNanoUsdMax, imagesMax = 0 }) => ({ name, definition: Buffer.from(JSON.stringify({ type: 'function', function: { name, description, parameters } })), feeNanoUsdMax: String(feeNanoUsdMax), imagesMax })),
          toolRoundsMax: result.toolRoundsMax,
        };
      },
      RunTool: async (request: RunToolRequest__Output, { signal }: CallInfo): Promise<RunToolResponse> => {
        const { requestId, accountId, plugins, name, arguments: text, zdr, denyTraining, byok, ownCredentials } = request;
        const policy = { zdr, denyTraining, ...planTermsOf(request) };
        const { content, stage, images } = await runner.runTool({ requestId, accountId, user: '', wishes: plugins.map(wishOf), messages: [], policy }, { name, arguments: text }, { byok, ownCredentials }, signal);
        return { content, stage: stageMessage(stage), images: images.map(({ mediaType, data }) => ({ mediaType, data })) };
      },
      Observe: async (request: ObserveRequest__Output, { signal }: CallInfo): Promise<ObserveResponse> => ({ stages: (await runner.observe(askedOf(request), signal)).map(stageMessage) }),
      ListMemory: async ({ accountId, user, namespace, limit, after }: MemoryRequest__Output): Promise<MemoryResponse> => {
        const length = Math.min(limit || FACTS_LISTED_MAX, FACTS_LISTED_MAX);
        const found = await facts.list({ accountId, user }, namespace === '' ? undefined : namespace, length + 1, after === '' ? undefined : after);
        if (found === undefined) return { afterUnknown: true };
        return { hasMore: found.length > length, facts: found.slice(0, length).map(({ createdAtMs, updatedAtMs, ...fact }) => ({ ...fact, createdAtMs: String(createdAtMs), updatedAtMs: String(updatedAtMs) })) };
      },
      DeleteMemory: async ({ accountId, user, namespace }: MemoryRequest__Output): Promise<DeletedResponse> => ({ deleted: await facts.clear({ accountId, user }, namespace === '' ? undefined : namespace) }),
      AddSource: async (request: AddSourceRequest__Output): Promise<AddSourceResponse> => {
        const made = sourceOf({ ...request, corpus: corpusOf(request.corpus) });
        if ('problem' in made) return made;
        await index.put(made);
        return { key: made.key, title: made.title, passages: made.passages.length };
      },
      ListSources: async ({ corpus }: ListSourcesRequest__Output): Promise<ListSourcesResponse> => ({ sources: (await index.list(corpusOf(corpus))).map((source) => ({ ...source })) }),
      RemoveSource: async ({ corpus, key }: RemoveSourceRequest__Output): Promise<DeletedResponse> => ({ deleted: await index.remove(corpusOf(corpus), key) }),
    },
  };
}
