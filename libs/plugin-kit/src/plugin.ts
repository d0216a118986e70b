/** What a plugin is to the service that runs it. */
import type { Conversation } from './conversation.js';
import type { OptionSpecs, OptionValues, PluginManifest } from './manifest.js';
import type { OptionProblem } from './options.js';

/** Ids of the catalog. */
export interface ProviderBounds {
  /** A provider stands in each of these; none = any. */
  readonly allowed: readonly (readonly string[])[];
  readonly denied: readonly string[];
}

/** Names as accounts and keys write them; an empty list that allows is no bound. */
export interface ModelBounds {
  /** Of a model that the client names. */
  readonly allowedByName: readonly string[];
  /** Of one whose choice is left to us. */
  readonly allowedByChoice: readonly string[];
  readonly denied: readonly string[];
}

/** The account's own credential at a provider: a name for it, never the credential. */
export interface OwnCredential {
  readonly provider: string;
  readonly handle: string;
  /** With a zero-retention agreement of the account's. */
  readonly zdr: boolean;
  /** Used at an address of the account's: what is known of the provider's policy does not hold there. */
  readonly ownAddress: boolean;
}

/** The policy of a request: it binds plugins as it binds the choice of an endpoint. */
export interface DataPolicy {
  /** Nothing of the request may be kept. */
  readonly zdr: boolean;
  /** Nothing of it may reach who may train on it. */
  readonly denyTraining: boolean;
  /** Providers that the account and the request leave; absent = all. */
  readonly providers?: ProviderBounds;
  /** Models that the account and the key leave; absent = all. */
  readonly models?: ModelBounds | undefined;
  /** The account's own, which the request may come to run on: a policy belongs to the credential. Absent = none. */
  readonly ownCredentials?: readonly OwnCredential[];
}

export interface PluginRun<Specs extends OptionSpecs> {
  readonly requestId: string;
  readonly accountId: string;
  /** The client's own end user; empty when it named none. */
  readonly user: string;
  readonly options: OptionValues<Specs>;
  readonly policy: DataPolicy;
  readonly conversation: Conversation;
  /** Aborted when the run's time is over or its caller has left: stop, nobody reads the result. */
  readonly signal: AbortSignal;
}

/** A source that the model was given. */
export interface CitedSource {
  readonly url: string;
  readonly title: string;
  /** What of it the model was given. */
  readonly content: string;
  /** How the answer may refer to it, beside its URL: such as `[1]`. */
  readonly marker: string;
}

/** Counts and reasons for metadata; never content. */
export type StageDetail = Readonly<Record<string, number | string | boolean>>;

export interface Prepared {
  /** Applied once the run is known to be in time, in the order of the plugins. */
  readonly apply: (conversation: Conversation) => void;
  readonly citations?: readonly CitedSource[];
  readonly files?: readonly { readonly hash: string; readonly name: string }[];
  readonly detail?: StageDetail;
  /** There was nothing to do, or nothing that could be done with what there was: the stage is completed, without a fee. What looked and found nothing has done its work. */
  readonly isIdle?: boolean;
}

/** A function that the model may call. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Of a function that spends money outside: nano-USD that one call may cost at most, held before it runs. */
  readonly costNanoUsdMax?: bigint;
  /** Images that one call may give. Absent = none. */
  readonly imagesMax?: number;
}

/** One call of it. */
export interface ToolRun<Specs extends OptionSpecs> {
  readonly requestId: string;
  readonly accountId: string;
  readonly options: OptionValues<Specs>;
  readonly policy: DataPolicy;
  readonly name: string;
  /** As the model wrote them: a JSON object, not checked against anything. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The request runs on the account's own credentials and is charged nothing: neither may the call spend the operator's money. */
  readonly byok: boolean;
  readonly ownCredentials: readonly OwnCredential[];
  readonly signal: AbortSignal;
}

/** A picture for the client. */
export interface ToolImage {
  /** Such as `image/png`. */
  readonly mediaType: string;
  readonly data: Buffer;
}

export interface ToolResult {
  /** For the model. */
  readonly content: string;
  /** The call did not do what it was to do; `content` says why. */
  readonly isFailed: boolean;
  /** Of a call that did its work: what it cost outside, nano-USD. Part of its fee; at most the function's `costNanoUsdMax`. */
  readonly costNanoUsd?: bigint;
  /** On whose bill that is, where it is on the gateway's. */
  readonly costProvider?: string;
  readonly images?: readonly ToolImage[];
  readonly detail?: StageDetail;
}

export interface Plugin<Specs extends OptionSpecs = OptionSpecs> {
  readonly manifest: PluginManifest<Specs>;
  /** Options, each fine by itself, that do not go together. */
  optionProblem?(options: OptionValues<Specs>): OptionProblem | undefined;
  /** False: the plugin as it is set up here would break that policy, so the request is refused before anything runs. */
  allows(policy: DataPolicy, options: OptionValues<Specs>): boolean;
  /** Where it does not: which parts of the policy leave nothing, in the client's words. */
  leftOutBy?(policy: DataPolicy, options: OptionValues<Specs>): readonly string[];
  /** Before the model. Throw PluginRefusal when the client's input is at fault; anything else thrown is a stage that failed. */
  prepare?(run: PluginRun<Specs>): Promise<Prepared>;
  /** Functions that the model is offered; an option `max_rounds`, where there is one, bounds how often it is asked again. */
  tools?(options: OptionValues<Specs>, policy: DataPolicy): readonly ToolDefinition[];
  /** Runs one of them. What is thrown is told to the model as a failure. */
  runTool?(run: ToolRun<Specs>): Promise<ToolResult>;
  /** After the answer has been given. `conversation` is what the client sent. */
  observe?(run: PluginRun<Specs>): Promise<StageDetail>;
  /** True when `observe` has something to do under these options. */
  observes?(options: OptionValues<Specs>, policy: DataPolicy): boolean;
}

/** Specs erased, for tables of plugins of different options. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a table of plugins with different options has no better common type
export type AnyPlugin = Plugin<any>;

/** The client's input is at fault: the whole request is refused with 400. */
export class PluginRefusal extends Error {
  override readonly name = 'PluginRefusal';
  /** `param` names the value, such as `messages.[0].content.[1].file`; `message` is a sentence for the client. */
  constructor(
    readonly param: string,
    message: string,
  ) {
    super(message);
  }
}

/** The run failed for a reason worth naming in metadata: one short word such as `timeout`. */
export class PluginFailure extends Error {
  override readonly name = 'PluginFailure';
  constructor(readonly reason: string) {
    super(`A plugin failed: ${reason}.`);
  }
}
