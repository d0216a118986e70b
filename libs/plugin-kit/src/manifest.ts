/** What a plugin says of itself: read by edge, by clients at GET /api/plugins, and by people. */

/** One option of a plugin: its type, its bounds (inclusive) and what it is when the client says nothing. */
export type OptionSpec =
  | { readonly type: 'integer'; readonly description: string; readonly default: number; readonly min: number; readonly max: number }
  | { readonly type: 'boolean'; readonly description: string; readonly default: boolean }
  /** Empty by default unless stated; `choices` names all that is allowed. `minLength`: 0 unless stated; the default keeps to it. */
  | { readonly type: 'string'; readonly description: string; readonly default: string; readonly minLength?: number; readonly maxLength: number; readonly choices?: readonly string[] }
  /** Always empty by default. */
  | { readonly type: 'strings'; readonly description: string; readonly maxItems: number; readonly maxLength: number }
  | { readonly type: 'integers'; readonly description: string; readonly maxItems: number; readonly min: number; readonly max: number };

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** Values by option name, every option present. */
export type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]: Specs[Name]['type'] extends 'integer'
    ? number
    : Specs[Name]['type'] extends 'boolean'
      ? boolean
      : Specs[Name]['type'] extends 'string'
        ? string
        : Specs[Name]['type'] extends 'strings'
          ? readonly string[]
          : readonly number[];
};

/** A model that a plugin asks; ids as lists name them. */
export interface AskedModel {
  readonly id: string;
  readonly provider: string;
}

export interface PluginManifest<Specs extends OptionSpecs = OptionSpecs> {
  readonly id: string;
  readonly name: string;
  /** One sentence for people. */
  readonly description: string;
  /** Needs a paid account. */
  readonly isPaid: boolean;
  /** `retrieval` runs before the model and degrades; `tool` is called by the model, which is told of its failures. */
  readonly kind: 'retrieval' | 'tool';
  /** Longest a run may take, in milliseconds: then it has failed. */
  readonly timeoutMs: number;
  readonly options: Specs;
  /** Models that it asks by itself: lists of models and providers bind them. */
  readonly models?: readonly AskedModel[];
}

/** A manifest as edge and clients read it: JSON. `fee_nano_usd` is a decimal string. */
export interface ManifestRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly paid: boolean;
  readonly kind: 'retrieval' | 'tool';
  readonly fee_nano_usd: string;
  /** Whether it may be used together with `zdr: true` and `data_collection: deny` here. */
  readonly zdr: boolean;
  readonly data_collection_deny: boolean;
  readonly options: OptionSpecs;
  /** Absent = it asks none. */
  readonly models?: readonly AskedModel[];
}
