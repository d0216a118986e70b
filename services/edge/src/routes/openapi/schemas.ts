/** Schemas of the API's resources for /openapi.json. Tests compare them with real answers. */
import { z } from 'zod';

const time = (what: string) => z.int().min(0).meta({ description: `${what}, in Unix seconds.` });
const timeOrNull = (what: string) => z.int().min(0).nullable().meta({ description: `${what}, in Unix seconds; null if never.` });
export const dollars = (what: string) => z.number().meta({ description: `${what}, in US dollars with up to nine decimals.` });
const tokens = (what: string) => z.int().min(0).meta({ description: what });

export const ErrorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
      metadata: z.record(z.string(), z.unknown()).optional(),
    }),
    router_metadata: z.looseObject({}).optional().meta({ description: 'Only for chat completions, if the header `X-Router-Metadata: enabled` was sent.' }),
  })
  .meta({ id: 'Error' });

/** Pages, newest first. */
export const listOf = <Item extends z.ZodType>(item: Item) => z.object({ object: z.literal('list'), data: z.array(item), has_more: z.boolean(), first_id: z.string().nullable(), last_id: z.string().nullable() });

const Message = z
  .looseObject({
    role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
    content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
    name: z.string().nullish(),
    tool_calls: z.array(z.looseObject({ id: z.string(), type: z.literal('function'), function: z.object({ name: z.string(), arguments: z.string() }) })).nullish(),
    tool_call_id: z.string().nullish(),
  })
  .meta({ id: 'Message' });

const quantization = z.enum(['fp32', 'fp16', 'bf16', 'fp8', 'int8', 'int4']);

export const ChatCompletionRequest = z
  .looseObject({
    model: z.string().meta({ description: 'A model id, or `auto` to let the gateway choose.' }),
    messages: z.array(Message).min(1),
    temperature: z.number().min(0).max(2).nullish(),
    max_tokens: z.int().min(1).nullish().meta({ description: 'Most tokens of the answer. `max_completion_tokens` is the same.' }),
    max_completion_tokens: z.int().min(1).nullish().meta({ description: 'The newer name of `max_tokens`.' }),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    n: z.int().min(1).max(128).nullish().meta({ description: 'Number of choices to generate.' }),
    seed: z.number().nullish(),
    logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    reasoning_effort: z.string().nullish(),
    service_tier: z.string().nullish(),
    verbosity: z.string().nullish(),
    modalities: z.array(z.string()).max(8).nullish().meta({ description: 'Output types. `audio` is not supported.' }),
    metadata: z.record(z.string(), z.string()).nullish(),
    stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
    prompt_cache_key: z.string().max(1_024).nullish().meta({ description: 'Sent to hosts that use it to find a cached prompt.' }),
    cache_control: z.looseObject({}).nullish().meta({ description: 'Caches the prompt up to its end, where a host caches on request.' }),
    tools: z.array(z.looseObject({ type: z.literal('function') })).max(128).nullish(),
    tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({})]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.enum(['text', 'json_object', 'json_schema']) }).nullish().meta({ description: 'A `schema` given with `json_object` is treated as `json_schema`.' }),
    plugins: z.array(z.union([z.string(), z.looseObject({ id: z.string() })])).nullish().meta({ description: 'Plugin ids: `web-search`, `gutenberg` and `code-exec` are free; `image-gen`, `pdf-reader` and `memory` need a paid account.' }),
    plugin_options: z.record(z.string(), z.looseObject({})).nullish(),
    data_collection: z.enum(['allow', 'deny']).nullish().meta({ description: '`deny` excludes providers that may train on the data.' }),
    zdr: z.boolean().nullish().meta({ description: 'Use only providers that guarantee zero data retention.' }),
    preferred_max_latency: z.number().positive().nullish().meta({ description: '75th percentile of latency in milliseconds. Slower providers are tried last.' }),
    preferred_min_throughput: z.number().positive().nullish().meta({ description: 'Median tokens per second. Slower providers are tried last.' }),
    min_quantization: quantization.nullish(),
    max_quantization: quantization.nullish(),
    models: z.array(z.string()).max(16).nullish().meta({ description: 'Models to try, in order, if `model` fails.' }),
    provider: z
      .looseObject({
        order: z.array(z.string()).max(64).nullish(), only: z.array(z.string()).max(64).nullish(), ignore: z.array(z.string()).max(64).nullish(), allow_fallbacks: z.boolean().nullish(), require_parameters: z.boolean().nullish(),
        sort: z.enum(['price', 'throughput', 'latency']).nullish(), max_price: z.object({ prompt: z.number().nullish(), completion: z.number().nullish() }).nullish().meta({ description: 'Highest price, in US dollars per million tokens.' }),
        data_collection: z.enum(['allow', 'deny']).nullish(), zdr: z.boolean().nullish(),
      })
      .nullish()
      .meta({ description: 'Which providers may answer, and in which order they are tried.' }),
    session_id: z.string().max(256).nullish(),
    user: z.string().nullish(),
  })
  .meta({ id: 'ChatCompletionRequest' });

const Usage = z.looseObject({ prompt_tokens: tokens('Input tokens.'), completion_tokens: tokens('Output tokens, reasoning included.'), total_tokens: tokens('Input and output tokens.'), prompt_tokens_details: z.looseObject({ cached_tokens: tokens('Input tokens read from the provider’s cache.') }).optional(), completion_tokens_details: z.looseObject({ reasoning_tokens: tokens('Output tokens spent on reasoning.') }).optional() }).meta({ id: 'Usage' });
const RouterFigures = z
  .object({ provider: z.string(), cost_usd: dollars('Cost of the request'), savings_usd: dollars('Cost of the baseline model for the same tokens minus the cost; negative if this was dearer'), routed_from: z.string().meta({ description: 'The model that the request named.' }) })
  .meta({ id: 'RouterFigures' });

const toolCall = z.looseObject({ index: z.int().optional().meta({ description: 'Only in chunks: position of the call.' }), id: z.string().optional(), type: z.literal('function').optional(), function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional() });
const logprobs = z.looseObject({});
/** Fields of a model's message, whole or as a delta. */
const answered = {
  content: z.string().nullable(), refusal: z.string().nullish(), tool_calls: z.array(toolCall).optional(), reasoning_content: z.string().nullish(),
  annotations: z.array(z.looseObject({ type: z.string() })).optional().meta({ description: 'Sources and files added by plugins.' }), images: z.array(z.looseObject({ type: z.string() })).optional().meta({ description: 'Images generated by the plugin `image-gen`.' }),
};

export const ChatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: time('Time of creation'),
    model: z.string().meta({ description: 'The model that answered.' }),
    choices: z.array(z.looseObject({ index: z.int(), message: z.looseObject({ role: z.literal('assistant'), ...answered }), logprobs: logprobs.nullish(), finish_reason: z.string() })),
    usage: Usage,
    service_tier: z.string().optional(),
    system_fingerprint: z.string().optional(),
    x_router: RouterFigures.optional().meta({ description: 'Accounts of variant A only.' }),
    router_metadata: z.looseObject({}).optional().meta({ description: 'Present if the header `X-Router-Metadata: enabled` was sent, or if a cost cap ended the answer.' }),
  })
  .meta({ id: 'ChatCompletion' });
export const ChatCompletionChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion.chunk'),
    created: time('Time of creation'),
    model: z.string(),
    choices: z.array(z.looseObject({ index: z.int(), delta: z.looseObject({ role: z.string().optional(), ...answered, content: z.string().nullish() }), logprobs: logprobs.nullish(), finish_reason: z.string().nullable() })),
    usage: Usage.nullish().meta({ description: 'Only in the last chunk.' }),
    service_tier: z.string().optional(),
    system_fingerprint: z.string().optional(),
    error: ErrorBody.shape.error.optional().meta({ description: 'The answer broke off here. `finish_reason` is then `error`.' }),
    x_router: RouterFigures.optional().meta({ description: 'Accounts of variant A only, in the last chunk.' }),
    router_metadata: z.looseObject({}).optional(),
  })
  .meta({ id: 'ChatCompletionChunk' });

/** US dollars for one token, as OpenRouter writes prices. */
const perToken = z.string().regex(/^\d+(\.\d+)?$/);
const priced = z.looseObject({ unit: z.string(), input: z.number(), cached_input: z.number(), cache_write: z.number(), output: z.number(), prompt: perToken, completion: perToken, input_cache_read: perToken, input_cache_write: perToken, request: perToken });
const pricing = priced.nullable();
/** Prices of the automatic model, which depend on its choice. */
const unpriced = z.looseObject({ prompt: z.literal('-1'), completion: z.literal('-1') });
export const Model = z
  .looseObject({
    id: z.string(),
    object: z.literal('model'),
    owned_by: z.string(),
    permission: z.array(z.unknown()).optional().meta({ description: 'Accounts of variant B only, like `root` and `parent`.' }),
    root: z.string().optional(),
    parent: z.null().optional(),
    pricing: z.union([priced, unpriced]).nullish().meta({ description: 'Prices of the cheapest endpoint in US dollars. This and all fields below are present with `detail=full`. Numbers are per million tokens. Strings, under the names that OpenRouter uses, are exact: per token, and `request` per request. For `auto` they are "-1", since the price depends on the choice.' }),
    context_window: z.int().nullable().optional(),
    context_length: z.int().nullable().optional().meta({ description: 'The same as `context_window`, under the name that OpenRouter uses. For `auto`: the longest of the listed models.' }),
    max_output_tokens: z.int().nullable().optional(),
    capabilities: z.record(z.string(), z.boolean()).nullable().optional(),
    deprecation_date: z.string().nullable().optional(),
    endpoints: z
      .array(
        z.looseObject({
          id: z.string(),
          provider: z.string(),
          pricing,
          context_window: z.int().nullable(),
          max_output_tokens: z.int().nullable(),
          quantization_bits: z.number().nullable(),
          policy: z.looseObject({ trains_on_data: z.boolean().nullable().meta({ description: 'Null if unknown.' }), zdr: z.boolean() }),
          live: z.object({ breaker: z.enum(['closed', 'open', 'half-open']), samples: z.int().min(0), latency_ms_p75: z.number().nullable(), throughput_tps_p50: z.number().nullable() }),
        }),
      )
      .optional(),
  })
  .meta({ id: 'Model' });

const capPeriod = z.enum(['day', 'week', 'month', 'total']);
const costCaps = z.array(z.strictObject({ cap_usd: z.number().min(0).max(9_000_000).meta({ description: 'In US dollars with up to nine decimals.' }), period: capPeriod })).max(4);

const KeyLimits = z.looseObject({
  requests_per_minute: z.int().nullable(), cost_cap_usd: z.number().nullable(), cost_cap_period: capPeriod.nullable(),
  cost_caps: costCaps.optional().meta({ description: 'Present if there are several caps. `cost_cap_usd` and `cost_cap_period` show the first one.' }), allowed_models: z.array(z.string()).nullable(),
});
const KeyLimitsRequest = z
  .strictObject({ requests_per_minute: z.int().min(1).max(10_000_000).nullish(), cost_cap_usd: z.number().min(0).max(9_000_000).nullish(), cost_cap_period: capPeriod.nullish(), cost_caps: costCaps.nullish(), allowed_models: z.array(z.string().min(1).max(200)).min(1).max(200).nullish() })
  .meta({ id: 'ApiKeyLimits', description: 'A limit that is absent or null is not set. Give either `cost_cap_usd` with `cost_cap_period`, or several caps as `cost_caps`.' });
export const ApiKey = z
  .looseObject({
    id: z.string(),
    object: z.literal('api_key'),
    name: z.string(),
    key: z.string().optional().meta({ description: 'The secret. Returned only once, when the key is created or rotated.' }),
    prefix: z.string(),
    status: z.enum(['active', 'rotating', 'disabled', 'expired', 'revoked']),
    scopes: z.array(z.string()),
    created_at: time('Time of creation'),
    expires_at: timeOrNull('Expiry'),
    last_used_at: timeOrNull('Last use, accurate to a minute'),
    revoked_at: timeOrNull('Time of revocation'),
    limits: KeyLimits,
  })
  .meta({ id: 'ApiKey' });
export const ApiKeyRequest = z
  .strictObject({
    name: z.string().min(1).max(100),
    expires_in: z.int().min(1).max(315_360_000).nullish().meta({ description: 'Lifetime in seconds. If absent, the key never expires.' }),
    scopes: z.array(z.string()).min(1).max(20).nullish().meta({ description: 'Any of `inference`, `models:read`, `keys` and `usage:read`. If absent, the scopes of the key that makes this request.' }),
    limits: KeyLimitsRequest.nullish(),
  })
  .meta({ id: 'ApiKeyRequest' });
export const ApiKeyChange = z
  .strictObject({ name: z.string().min(1).max(100).nullish(), disabled: z.boolean().nullish(), limits: KeyLimitsRequest.nullish().meta({ description: 'Changes only the limits that are named: an absent limit stays, null removes it. All cost caps count as one limit. Null instead of an object removes all limits.' }) })
  .meta({ id: 'ApiKeyChange', description: 'Absent fields stay unchanged, and so do `name` and `disabled` if null.' });
export const ApiKeyRotation = z.strictObject({ grace_seconds: z.int().min(0).max(2_592_000).nullish().meta({ description: 'How long the old secret stays valid, in seconds. If absent, 0.' }) }).meta({ id: 'ApiKeyRotation' });
export const ApiKeyDeleted = z.object({ id: z.string(), object: z.literal('api_key'), deleted: z.literal(true), status: z.literal('revoked'), revoked_at: time('Time of revocation') }).meta({ id: 'ApiKeyDeleted' });

export const Session = z
  .object({
    object: z.literal('session'),
    account: z.object({ id: z.string(), name: z.string(), tier: z.string(), variant: z.enum(['A', 'B']) }),
    key: z.object({ id: z.string(), name: z.string(), prefix: z.string(), scopes: z.array(z.string()), expires_at: timeOrNull('Expiry of the key'), limited: z.boolean().meta({ description: 'The key has limits of its own. Such a key may not change the policy and the provider keys.' }) }),
    csrf_token: z.string().nullable().meta({ description: 'To be sent as `X-CSRF-Token` with every request that changes something. Null if no cookie is used.' }),
    expires_at: timeOrNull('End of the session, whether it is used or not'),
  })
  .meta({ id: 'Session' });

export const Limits = z
  .object({
    object: z.literal('limits'),
    requests_per_minute: z.int().nullable(),
    burst_per_second: z.int().nullable(),
    caps: z.array(
      z.object({
        scope: z.enum(['account', 'key']), key_id: z.string().nullable(), period: z.enum(['day', 'week', 'month', 'total']), limit_usd: dollars('The cap'), spent_usd: dollars('Amount spent in the period'), reserved_usd: dollars('Amount reserved for running requests'),
        resets_at: timeOrNull('Next reset'),
      }),
    ),
    tokens: z.object({ included: tokens('Size of the allotment.'), used: tokens('Used in this period.'), reserved: tokens('Reserved for running requests.'), hard_cap: z.boolean(), resets_at: timeOrNull('Next reset') }).nullable(),
    byok_tokens: z.object({ included: tokens('Size of the allotment for requests on own credentials.'), used: tokens('Used in this period.'), reserved: tokens('Reserved for running requests.'), resets_at: timeOrNull('Next reset') }).nullable(),
    trial_credit: z.object({ limit_usd: dollars('The credit'), spent_usd: dollars('Amount spent of it'), reserved_usd: dollars('Amount reserved for running requests') }).nullable(),
    spent_usd: dollars('Total amount spent'),
    reserved_usd: dollars('Total amount reserved for running requests'),
  })
  .meta({ id: 'Limits' });

const duration = (what: string) => z.int().min(1).nullable().meta({ description: `${what}, in milliseconds, accurate to 8 %; null if not known.` });

export const UsageRow = z
  .looseObject({
    day: z.string().optional().meta({ description: 'UTC day, as in `2026-11-21`.' }), model: z.string().optional(), provider: z.string().optional(), key: z.string().optional().meta({ description: 'Key id.' }),
    requests: z.int(), prompt_tokens: tokens('Input tokens.'), completion_tokens: tokens('Output tokens, reasoning included.'), cost_usd: dollars('Cost'), charge_usd: dollars('Amount charged to the account'), savings_usd: dollars('Savings; negative if the request was dearer than the baseline'),
    latency_ms_p50: duration('Median duration of the attempts that answered'), latency_ms_p95: duration('95th percentile of that duration'),
    time_to_first_token_ms_p50: duration('Median time to the first token'), time_to_first_token_ms_p95: duration('95th percentile of that time'),
  })
  .meta({ id: 'UsageRow', description: 'Has one of `day`, `model`, `provider` and `key`, depending on `group_by`.' });

const requestFields = {
  id: z.string(), object: z.literal('request'), created: timeOrNull('Start of the first attempt'), ended_at: timeOrNull('End of the request. Lists are sorted and filtered by it'), key_id: z.string().nullable(), model: z.string().nullable(), provider: z.string().nullable(), status: z.string().meta({ description: '`completed` if any attempt is charged, which includes a stream that broke off (its `finish_reason` is `error`); otherwise `failed`.' }), byok: z.boolean(),
  prompt_tokens: tokens('Input tokens.'), completion_tokens: tokens('Output tokens, reasoning included.'), cost_usd: dollars('Cost'), charge_usd: dollars('Amount charged to the account'), savings_usd: dollars('Savings; negative if the request was dearer than the baseline'), latency_ms: z.number().meta({ description: 'Duration in milliseconds of the attempt that answered, or of the last one. Earlier attempts and tool rounds of plugins are not included.' }),
  time_to_first_token_ms: z.number().nullable(), finish_reason: z.string().nullable(), routed_from: z.string().nullable(), decision_id: z.string().nullable(),
};
export const RequestRow = z.looseObject(requestFields).meta({ id: 'Request' });
const tokenBuckets = z.object({ input_uncached: tokens('Input tokens not read from a cache.'), cache_read: tokens('Input tokens read from the provider’s cache.'), cache_write: tokens('Input tokens written to the provider’s cache.'), output_text: tokens('Output tokens without reasoning.'), output_reasoning: tokens('Reasoning tokens.'), audio: tokens('Audio tokens.'), image: tokens('Image tokens.') });
export const RequestDetail = z
  .looseObject({
    ...requestFields,
    attempts: z.array(
      z.looseObject({
        attempt: z.int().min(1), provider: z.string(), model: z.string().nullable(), endpoint_id: z.string().nullable(), status: z.int().nullable().meta({ description: 'HTTP status of the provider’s answer.' }), failure: z.string().nullable(), charged: z.boolean(), byok: z.boolean(),
        source: z.string().meta({ description: 'Where the token counts come from: the provider or an estimate.' }), flags: z.array(z.string()), tokens: tokenBuckets, cost_usd: dollars('Cost'), plugins_usd: dollars('Plugin fees included in that cost'), savings_usd: dollars('Savings; negative if the request was dearer than the baseline'), price_card_id: z.string().nullable(), latency_ms: z.number(),
        time_to_first_token_ms: z.number().nullable(), finish_reason: z.string().nullable(), started_at: timeOrNull('Start of the attempt'), ended_at: timeOrNull('End of the attempt'),
      }),
    ),
    charge: z.looseObject({
      amount_usd: dollars('Amount charged, corrections included'), period: z.string(), source: z.string().nullable(), attempts: z.array(z.int()).meta({ description: 'Numbers of the attempts that are charged.' }),
      adjustments: z.array(z.looseObject({ amount_usd: dollars('Amount added; negative if taken off'), period: z.string(), at: timeOrNull('Time of the correction') })),
    }),
  })
  .meta({ id: 'RequestDetail', description: 'A request with its attempts and charge. It never contains prompts or answers.' });

const statementFields = { id: z.string(), object: z.literal('statement'), period: z.string(), status: z.enum(['open', 'closed']), starts_at: time('Start of the period'), ends_at: time('End of the period, exclusive'), closed_at: timeOrNull('Time of closing'), model_spend_usd: dollars('Amount spent on models') };
export const StatementRow = z.looseObject({ ...statementFields, charge_usd: dollars('Amount charged for models, plugins and corrections') }).meta({ id: 'StatementSummary' });
export const Statement = z
  .looseObject({
    ...statementFields, account_id: z.string(), currency: z.literal('USD'), tier: z.string(), total_usd: dollars('Amount to pay'), subscription_usd: dollars('Fixed fee of the plan').nullable(),
    included_tokens: z.int().nullable().meta({ description: 'Tokens included in the plan; null if none.' }), used_tokens: tokens('Tokens used.'), overage_tokens: tokens('Tokens used beyond the included ones.'), overage_usd_per_million: dollars('Price per million of those').nullable(), overage_usd: dollars('Charge for those'),
    plugins_usd: dollars('Plugin fees'), adjustments_usd: dollars('Corrections'), trial_credit_usd: dollars('Amount paid from the trial credit'),
    lines: z.array(
      z.looseObject({ kind: z.string(), description: z.string(), model: z.string().nullable(), provider: z.string().nullable(), request_id: z.string().nullable(), tokens: tokens('Tokens of this line.'), requests: z.int().min(0), amount_usd: dollars('Amount of this line') }),
    ),
  })
  .meta({ id: 'Statement' });

export const Decision = z
  .looseObject({
    id: z.string(), object: z.literal('decision'), request_id: z.string(), created_at: time('Time of creation'), why: z.string().meta({ description: 'The reason in one sentence.' }),
    asked: z.object({ model: z.string(), models: z.array(z.string()), prompt_tokens: tokens('Estimated input tokens.'), mode: z.string().nullable(), lambda: z.number().nullable() }),
    snapshot_id: z.string().meta({ description: 'Version of the catalog that was used.' }), artefact_id: z.string().nullable().meta({ description: 'Version of the quality predictions that `auto` used; null if the client named a model.' }),
    cluster: z.string().nullable(), difficulty: z.number().nullable(), familiarity: z.number().nullable(), excluded: z.record(z.string(), z.int()).meta({ description: 'Number of excluded endpoints by reason.' }), quality_floor: z.number().nullable(),
    candidates: z.array(
      z.object({
        model: z.string(), endpoint: z.string(), quality: z.number(), expected_cost_usd: z.number().meta({ description: 'Forecast used to rank candidates. It is never billed.' }), latency_ms_p75: z.number().nullable(), p_ok: z.number(), tier: z.int(),
        utility: z.number().nullable(), propensity: z.number(),
      }),
    ),
    reason: z.string().nullable(), attempts: z.array(z.string()), reference_model: z.string().nullable().meta({ description: 'Model that savings are compared with.' }), score: z.number().nullable().meta({ description: 'Score that a client gave the answer.' }),
  })
  .meta({ id: 'Decision', description: 'Why a request was sent to its model and provider. It never contains prompts or answers.' });
export const FeedbackRequest = z.object({ request_id: z.string().max(200), score: z.number().min(0).max(1).meta({ description: 'From 0 (useless) to 1 (perfect).' }) }).meta({ id: 'FeedbackRequest' });

const mode = z.enum(['quality', 'balanced', 'economy']);
const names = z.array(z.string().min(1).max(200)).max(200);
const effective = z.object({ baseline_model: z.string().nullable(), hard_cap: z.boolean(), store_answers: z.boolean() });
export const Policy = z
  .looseObject({
    mode: mode.nullable(), lambda: z.number().nullable(), baseline_model: z.string().nullable(), allow_models: names, deny_models: names, allow_providers: names, deny_providers: names,
    cost_caps: costCaps, hard_cap: z.boolean().meta({ description: 'The account’s setting. The operator’s setting applies as well.' }), store_answers: z.boolean().nullable().meta({ description: 'The account’s setting; null to use the operator’s.' }),
    effective: effective.meta({ description: 'The settings in effect, with the operator’s.' }),
  })
  .meta({ id: 'Policy' });
export const PolicyRequest = z
  .strictObject({
    mode: mode.nullish(), lambda: z.number().min(0).max(1_000_000).nullish(), baseline_model: z.string().min(1).max(200).nullish(), allow_models: names.nullish(), deny_models: names.nullish(), allow_providers: names.nullish(), deny_providers: names.nullish(),
    cost_caps: costCaps.nullish(), hard_cap: z.boolean().nullish(), store_answers: z.boolean().nullish(), effective: effective.optional().meta({ description: 'Ignored, so that a policy can be sent back as it was read.' }),
  })
  .meta({ id: 'PolicyRequest', description: 'Replaces the whole policy: fields that are absent or null return to their defaults.' });

export const ProviderKey = z
  .looseObject({ provider: z.string(), last4: z.string().nullable().meta({ description: 'Last four characters; null if the credential is too short to show them.' }), zdr: z.boolean(), created_at: time('Time it was stored'), base_url: z.string().optional() })
  .meta({ id: 'ProviderKey', description: 'A provider credential of the account. The secret is never returned.' });
export const ProviderKeys = listOf(ProviderKey).extend({ providers: z.array(z.string()).meta({ description: 'Ids of the providers that accept own credentials here.' }) });
export const ProviderKeyRequest = z
  .strictObject({ secret: z.string().min(1).max(16_384), zdr: z.boolean().nullish().meta({ description: 'The account has an agreement of zero data retention for this credential. With `base_url`: the server there neither stores nor trains on data.' }), base_url: z.string().min(1).max(2_048).nullish() })
  .meta({ id: 'ProviderKeyRequest' });
export const ProviderKeyDeleted = z.object({ provider: z.string(), deleted: z.literal(true) }).meta({ id: 'ProviderKeyDeleted' });
const pluginOption = z.looseObject({
  type: z.enum(['integer', 'boolean', 'string', 'strings', 'integers']), description: z.string(), default: z.union([z.string(), z.number(), z.boolean()]).optional().meta({ description: 'Default value. If there is none, the option is empty.' }), min: z.number().optional(), max: z.number().optional(),
  minLength: z.int().optional(), maxLength: z.int().optional(), maxItems: z.int().optional(), choices: z.array(z.string()).optional(),
});
export const PluginManifest = z
  .looseObject({
    id: z.string(), object: z.literal('plugin'), name: z.string(), description: z.string(), paid: z.boolean(), kind: z.enum(['retrieval', 'tool']), fee_usd: dollars('Fee per run'),
    policies: z.object({ zdr: z.boolean(), data_collection_deny: z.boolean() }).meta({ description: 'Whether the plugin runs in requests with this policy.' }), models: z.array(z.string()).optional().meta({ description: 'For a plugin that calls models: those that the account’s and the key’s lists allow it.' }), options: z.record(z.string(), pluginOption),
  })
  .meta({ id: 'Plugin' });
export const MemoryFact = z.looseObject({ id: z.string(), object: z.literal('memory.fact'), text: z.string(), namespace: z.string(), created_at: time('Time of creation'), updated_at: time('Time of the last change') }).meta({ id: 'MemoryFact' });
export const MemoryForgotten = z.object({ object: z.literal('memory'), user: z.string(), deleted: z.literal(true), count: z.int().min(0) }).meta({ id: 'MemoryForgotten' });
export const SessionDeleted = z.object({ object: z.literal('session'), deleted: z.boolean() }).meta({ id: 'SessionDeleted' });
