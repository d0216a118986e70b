/** Schema of the catalog's files. Fields that routing does not read are ignored. */
import { z } from 'zod';

/** Far above the price of any model: a higher price is a typing error, and its costs would exceed 64 bits. */
const PRICE_USD_MAX = 1_000_000;
/** USD per 1M tokens: finite and never negative. Null or absent = unknown. */
const price = z.number().nonnegative().max(PRICE_USD_MAX).nullish();
const flag = z.boolean().nullish();
const tokens = z.number().int().positive().nullish();
const date = z.iso.date().nullish();
const name = z.string().min(1).max(200);

const priceFields = { input: price, output: price, cached_input: price, cache_write: price, reasoning: price, audio_input: price };

/** Values of `reasoning_effort`; null = unknown. */
const efforts = z.array(name).nullish();

const endpointSchema = z.object({
  id: name,
  provider: name,
  variant: z.string().nullish(),
  provider_model_id: name,
  wire_protocol: z.enum(['openai-chat', 'anthropic-messages', 'google-generate-content', 'bedrock-converse', 'azure-openai', 'mistral', 'cohere-v2', 'ollama']),
  upstream_api: z.enum(['chat', 'responses']),
  max_tokens_param: name,
  temperature_supported: flag,
  reasoning_efforts: efforts,
  supports_tools: flag,
  supports_json_object: flag,
  supports_json_schema: flag,
  context_window: tokens,
  max_output_tokens: tokens,
  quantization: z.enum(['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'int4']).nullish(),
  pricing: z.object({
    ...priceFields,
    /** USD per request. */
    request: price,
    long_context_tiers: z.array(z.object({ ...priceFields, min_context_tokens: z.number().int().positive() })).nullish(),
  }),
  /** Sources disagree on the price. */
  pricing_disputed: flag,
  status: z.enum(['active', 'placeholder']),
  deprecation_date: date,
  priors: z.object({ ttft_ms_p50: z.number().positive().nullish(), ttft_ms_p75: z.number().positive().nullish(), throughput_tps_p50: z.number().positive().nullish() }).nullish(),
});

const score = z.object({ value: z.number() }).nullish();

const modelSchema = z.object({
  id: z.string().regex(/^[^/\s]+\/\S+$/).max(200),
  owned_by: name,
  display_name: z.string().nullish(),
  aliases: z.array(name),
  family: z.string().nullish(),
  deprecation_date: date,
  open_weights: z.boolean(),
  context_window: tokens,
  max_output_tokens: tokens,
  capabilities: z.object({
    streaming: flag, tools: flag, tool_choice: flag, parallel_tool_calls: flag, json_object: flag, json_schema: flag, vision: flag,
    file_input: flag, audio_input: flag, reasoning: flag, reasoning_mandatory: flag, temperature: flag, seed: flag, logprobs: flag, stop: flag, reasoning_efforts: efforts,
  }),
  /** Only for the simulator's models, in place of a real model's scores. */
  simulated_ability: z.number().min(0).max(1).nullish(),
  endpoints: z.array(endpointSchema).min(1),
  priors: z
    .object({
      quality: z
        .object({
          artificial_analysis: z.object({ intelligence_index: z.number().nullish() }).nullish(),
          lmarena_text_elo: score,
          aider_polyglot: score,
          design_arena_code_elo: score,
          academic_2025: z.object({ mmlu_pro: z.number().nullish(), gpqa: z.number().nullish() }).nullish(),
        })
        .nullish(),
    })
    .nullish(),
});

const providerSchema = z.object({
  id: name,
  display_name: z.string().nullish(),
  kind: z.enum(['first_party', 'cloud', 'inference', 'aggregator', 'self_hosted']),
  temperature_max: z.number().positive().nullish(),
  /** Tuning fields that the host refuses or ignores for every model. */
  unsupported_params: z.array(name).nullish(),
  data_policy: z.object({ trains_on_data: flag, zdr_default: flag, zdr_by_agreement: flag }),
});

export const modelsFileSchema = z.object({ schema_version: z.string(), models: z.array(modelSchema).min(1) });
export const providersFileSchema = z.object({ schema_version: z.string(), providers: z.array(providerSchema).min(1) });
export const simulatorFileSchema = z.object({ schema_version: z.string(), providers: z.array(providerSchema), models: z.array(modelSchema) });

export type ModelRow = z.infer<typeof modelSchema>;
export type EndpointRow = z.infer<typeof endpointSchema>;
export type ProviderRow = z.infer<typeof providerSchema>;

export interface CatalogRows {
  readonly schemaVersion: string;
  /** Identifies the bytes from which the rows were read. */
  readonly digest: string;
  readonly providers: readonly ProviderRow[];
  readonly models: readonly ModelRow[];
}
