/** Schemas of the API's resources for /openapi.json. Tests compare them with real answers. */
import { z } from 'zod';

const time = (what: string) => z.int().min(0).meta({ description: `${what}, Unix seconds.` });
const timeOrNull = (what: string) => z.int().min(0).nullable().meta({ description: `${what}, Unix seconds; null = never.` });
export const dollars = (what: string) => z.number().meta({ description: `${what}, US dollars with at most nine decimals.` });
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
    router_metadata: z.looseObject({}).optional().meta({ description: 'Of a completion, with the header `X-Router-Metadata: enabled`.' }),
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
    model: z.string().meta({ description: '`auto`, or the id of a model.' }),
    messages: z.array(Message).min(1),
    temperature: z.number().min(0).max(2).nullish(),
    max_tokens: z.int().min(1).nullish().meta({ description: 'Also as `max_completion_tokens`.' }),
    max_completion_tokens: z.int().min(1).nullish().meta({ description: 'The same under its newer name.' }),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    n: z.int().min(1).max(128).nullish().meta({ description: 'How many answers.' }),
    seed: z.number().nullish(),
    logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    reasoning_effort: z.string().nullish(),
    service_tier: z.string().nullish(),
    verbosity: z.string().nullish(),
    modalities: z.array(z.string()).max(8).nullish().meta({ description: 'Without `audio`: no answer is spoken.' }),
    metadata: z.record(z.string(), z.string()).nullish(),
    stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
    tools: z.array(z.looseObject({ type: z.literal('function') })).max(128).nullish(),
    tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({})]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.enum(['text', 'json_object', 'json_schema']) }).nullish().meta({ description: 'A `schema` beside `json_object` counts as one of `json_schema`.' }),
    plugins: z.array(z.union([z.string(), z.looseObject({ id: z.string() })])).nullish().meta({ description: 'Ids: web-search, gutenberg, code-exec (free), image-gen, pdf-reader, memory (paid).' }),
    plugin_options: z.record(z.string(), z.looseObject({})).nullish(),
    data_collection: z.enum(['allow', 'deny']).nullish().meta({ description: '`deny` leaves out providers that may train on the data.' }),
    zdr: z.boolean().nullish().meta({ description: 'Only providers with a guarantee of zero data retention.' }),
    preferred_max_latency: z.number().positive().nullish().meta({ description: 'P75 in milliseconds; slower providers come last.' }),
    preferred_min_throughput: z.number().positive().nullish().meta({ description: 'P50 in tokens per second; slower providers come last.' }),
    min_quantization: quantization.nullish(),
    max_quantization: quantization.nullish(),
    models: z.array(z.string()).max(16).nullish().meta({ description: 'Models to fall back to.' }),
    provider: z
      .looseObject({
        order: z.array(z.string()).max(64).nullish(), only: z.array(z.string()).max(64).nullish(), ignore: z.array(z.string()).max(64).nullish(), allow_fallbacks: z.boolean().nullish(), require_parameters: z.boolean().nullish(),
        sort: z.enum(['price', 'throughput', 'latency']).nullish(), max_price: z.object({ prompt: z.number().nullish(), completion: z.number().nullish() }).nullish().meta({ description: 'US dollars per million tokens.' }),
        data_collection: z.enum(['allow', 'deny']).nullish(), zdr: z.boolean().nullish(),
      })
      .nullish()
      .meta({ description: 'Which providers, and in which order.' }),
    session_id: z.string().max(256).nullish(),
    user: z.string().nullish(),
  })
  .meta({ id: 'ChatCompletionRequest' });

const Usage = z.looseObject({ prompt_tokens: tokens('Tokens read.'), completion_tokens: tokens('Tokens written.'), total_tokens: tokens('Both.'), prompt_tokens_details: z.looseObject({ cached_tokens: tokens('From the provider’s cache.') }).optional(), completion_tokens_details: z.looseObject({ reasoning_tokens: tokens('Not shown.') }).optional() }).meta({ id: 'Usage' });
const RouterFigures = z
  .object({ provider: z.string(), cost_usd: dollars('Cost of the request'), savings_usd: dollars('Saved against the baseline model'), routed_from: z.string().meta({ description: 'The model that was asked for.' }) })
  .meta({ id: 'RouterFigures' });

const toolCall = z.looseObject({ index: z.int().optional().meta({ description: 'In streams.' }), id: z.string().optional(), type: z.literal('function').optional(), function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional() });
const logprobs = z.looseObject({});
/** Fields of a model's message, whole or as a delta. */
const answered = {
  content: z.string().nullable(), refusal: z.string().nullish(), tool_calls: z.array(toolCall).optional(), reasoning_content: z.string().nullish(),
  annotations: z.array(z.looseObject({ type: z.string() })).optional().meta({ description: 'Of plugins: sources and files.' }), images: z.array(z.looseObject({ type: z.string() })).optional().meta({ description: 'Of image-gen.' }),
};

export const ChatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: time('When it was made'),
    model: z.string().meta({ description: 'The model that answered.' }),
    choices: z.array(z.looseObject({ index: z.int(), message: z.looseObject({ role: z.literal('assistant'), ...answered }), logprobs: logprobs.nullish(), finish_reason: z.string() })),
    usage: Usage,
    service_tier: z.string().optional(),
    system_fingerprint: z.string().optional(),
    x_router: RouterFigures.optional().meta({ description: 'Variant A.' }),
    router_metadata: z.looseObject({}).optional().meta({ description: 'With the header `X-Router-Metadata: enabled`, or where a cost cap ended the answer.' }),
  })
  .meta({ id: 'ChatCompletion' });
export const ChatCompletionChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion.chunk'),
    created: time('When it was made'),
    model: z.string(),
    choices: z.array(z.looseObject({ index: z.int(), delta: z.looseObject({ role: z.string().optional(), ...answered, content: z.string().nullish() }), logprobs: logprobs.nullish(), finish_reason: z.string().nullable() })),
    usage: Usage.nullish().meta({ description: 'In the last chunk.' }),
    service_tier: z.string().optional(),
    system_fingerprint: z.string().optional(),
    error: ErrorBody.shape.error.optional().meta({ description: 'The answer broke off here; `finish_reason` is `error`.' }),
    x_router: RouterFigures.optional().meta({ description: 'Variant A, in the last chunk.' }),
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
    permission: z.array(z.unknown()).optional().meta({ description: 'Variant B, like the next two.' }),
    root: z.string().optional(),
    parent: z.null().optional(),
    pricing: z.union([priced, unpriced]).nullish().meta({ description: 'With `detail=full`, as all below: of the cheapest endpoint, in US dollars. Numbers are for a million tokens; text, by the names that OpenRouter has, is exact: for one token, `request` for one request; -1, of the automatic model, depends on its choice.' }),
    context_window: z.int().nullable().optional(),
    context_length: z.int().nullable().optional().meta({ description: 'The same, by the name that OpenRouter has; of the automatic model the longest of those listed.' }),
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
          policy: z.looseObject({ trains_on_data: z.boolean().nullable().meta({ description: 'Null = not known.' }), zdr: z.boolean() }),
          live: z.object({ breaker: z.enum(['closed', 'open', 'half-open']), samples: z.int().min(0), latency_ms_p75: z.number().nullable(), throughput_tps_p50: z.number().nullable() }),
        }),
      )
      .optional(),
  })
  .meta({ id: 'Model' });

const capPeriod = z.enum(['day', 'week', 'month', 'total']);
const costCaps = z.array(z.strictObject({ cap_usd: z.number().min(0).max(9_000_000).meta({ description: 'US dollars with at most nine decimals.' }), period: capPeriod })).max(4);

const KeyLimits = z.looseObject({
  requests_per_minute: z.int().nullable(), cost_cap_usd: z.number().nullable(), cost_cap_period: capPeriod.nullable(),
  cost_caps: costCaps.optional().meta({ description: 'Where there are several; the first stands above too.' }), allowed_models: z.array(z.string()).nullable(),
});
const KeyLimitsRequest = z
  .strictObject({ requests_per_minute: z.int().min(1).max(10_000_000).nullish(), cost_cap_usd: z.number().min(0).max(9_000_000).nullish(), cost_cap_period: capPeriod.nullish(), cost_caps: costCaps.nullish(), allowed_models: z.array(z.string().min(1).max(200)).min(1).max(200).nullish() })
  .meta({ id: 'ApiKeyLimits', description: 'Absent or null = none of its own. `cost_cap_usd` and `cost_cap_period` go together, or `cost_caps` names several.' });
export const ApiKey = z
  .looseObject({
    id: z.string(),
    object: z.literal('api_key'),
    name: z.string(),
    key: z.string().optional().meta({ description: 'The secret: only in the answer that makes or rotates a key.' }),
    prefix: z.string(),
    status: z.enum(['active', 'rotating', 'disabled', 'expired', 'revoked']),
    scopes: z.array(z.string()),
    created_at: time('When it was made'),
    expires_at: timeOrNull('When it expires'),
    last_used_at: timeOrNull('When it was last used, within a minute'),
    revoked_at: timeOrNull('When it was revoked'),
    limits: KeyLimits,
  })
  .meta({ id: 'ApiKey' });
export const ApiKeyRequest = z
  .strictObject({
    name: z.string().min(1).max(100),
    expires_in: z.int().min(1).max(315_360_000).nullish().meta({ description: 'Seconds from now; absent = never.' }),
    scopes: z.array(z.string()).min(1).max(20).nullish().meta({ description: 'Of: inference, models:read, keys, usage:read; absent = those of the key that asks.' }),
    limits: KeyLimitsRequest.nullish(),
  })
  .meta({ id: 'ApiKeyRequest' });
export const ApiKeyChange = z
  .strictObject({ name: z.string().min(1).max(100).nullish(), disabled: z.boolean().nullish(), limits: KeyLimitsRequest.nullish().meta({ description: 'Only what is named changes: an absent limit stays, null takes it off. All caps are one limit. Null = none at all.' }) })
  .meta({ id: 'ApiKeyChange', description: 'What is absent stays as it is, and so do a name and a state that are null.' });
export const ApiKeyRotation = z.strictObject({ grace_seconds: z.int().min(0).max(2_592_000).nullish().meta({ description: 'For how long the old secret works beside the new one; absent = 0.' }) }).meta({ id: 'ApiKeyRotation' });
export const ApiKeyDeleted = z.object({ id: z.string(), object: z.literal('api_key'), deleted: z.literal(true), status: z.literal('revoked'), revoked_at: time('When it was revoked') }).meta({ id: 'ApiKeyDeleted' });

export const Session = z
  .object({
    object: z.literal('session'),
    account: z.object({ id: z.string(), name: z.string(), tier: z.string(), variant: z.enum(['A', 'B']) }),
    key: z.object({ id: z.string(), name: z.string(), prefix: z.string(), scopes: z.array(z.string()), expires_at: timeOrNull('When the key expires'), limited: z.boolean().meta({ description: 'It has limits of its own, and may not change policy and provider keys.' }) }),
    csrf_token: z.string().nullable().meta({ description: 'To be sent as X-CSRF-Token with every call that changes something; null without a cookie.' }),
    expires_at: timeOrNull('When the session ends, however it is used'),
  })
  .meta({ id: 'Session' });

export const Limits = z
  .object({
    object: z.literal('limits'),
    requests_per_minute: z.int().nullable(),
    burst_per_second: z.int().nullable(),
    caps: z.array(
      z.object({
        scope: z.enum(['account', 'key']), key_id: z.string().nullable(), period: z.enum(['day', 'week', 'month', 'total']), limit_usd: dollars('The cap'), spent_usd: dollars('Spent of it'), reserved_usd: dollars('Held for requests that run'),
        resets_at: timeOrNull('When it begins anew'),
      }),
    ),
    tokens: z.object({ included: tokens('Of the allotment.'), used: tokens('Of this period.'), reserved: tokens('Held for requests that run.'), hard_cap: z.boolean(), resets_at: timeOrNull('When it begins anew') }).nullable(),
    byok_tokens: z.object({ included: tokens('Of the allotment over own credentials.'), used: tokens('Of this period.'), reserved: tokens('Held for requests that run.'), resets_at: timeOrNull('When it begins anew') }).nullable(),
    trial_credit: z.object({ limit_usd: dollars('The credit'), spent_usd: dollars('Spent of it'), reserved_usd: dollars('Held for requests that run') }).nullable(),
    spent_usd: dollars('Spent in all'),
    reserved_usd: dollars('Held in all'),
  })
  .meta({ id: 'Limits' });

const duration = (what: string) => z.int().min(1).nullable().meta({ description: `${what}, milliseconds, within 8 %; null = none has told.` });

export const UsageRow = z
  .looseObject({
    day: z.string().optional().meta({ description: 'UTC, `2026-11-21`.' }), model: z.string().optional(), provider: z.string().optional(), key: z.string().optional().meta({ description: 'Id of the key.' }),
    requests: z.int(), prompt_tokens: tokens('Tokens read.'), completion_tokens: tokens('Tokens written.'), cost_usd: dollars('Cost'), charge_usd: dollars('Charged to the account'), savings_usd: dollars('Saved, signed'),
    latency_ms_p50: duration('Median duration of the attempts that gave the answers'), latency_ms_p95: duration('95th percentile of that'),
    time_to_first_token_ms_p50: duration('Median time to the first token of such an attempt'), time_to_first_token_ms_p95: duration('95th percentile of that'),
  })
  .meta({ id: 'UsageRow', description: 'With one of day, model, provider and key: as `group_by` says.' });

const requestFields = {
  id: z.string(), object: z.literal('request'), created: timeOrNull('When its first attempt began'), ended_at: timeOrNull('When it had ended, by which lists are ordered and their spans go'), key_id: z.string().nullable(), model: z.string().nullable(), provider: z.string().nullable(), status: z.string().meta({ description: '`completed`: something of it counts in the charge, be it a stream that broke off later (`finish_reason` is `error` then). `failed`: nothing does.' }), byok: z.boolean(),
  prompt_tokens: tokens('Tokens read.'), completion_tokens: tokens('Tokens written.'), cost_usd: dollars('Cost'), charge_usd: dollars('Charged to the account'), savings_usd: dollars('Saved, signed'), latency_ms: z.number().meta({ description: 'How long the attempt took whose answer it was, or the last one; without those before it, and rounds for tools of plugins.' }),
  time_to_first_token_ms: z.number().nullable(), finish_reason: z.string().nullable(), routed_from: z.string().nullable(), decision_id: z.string().nullable(),
};
export const RequestRow = z.looseObject(requestFields).meta({ id: 'Request' });
const tokenBuckets = z.object({ input_uncached: tokens('Read.'), cache_read: tokens('Read from the provider’s cache.'), cache_write: tokens('Written to it.'), output_text: tokens('Written.'), output_reasoning: tokens('Reasoning.'), audio: tokens('Audio.'), image: tokens('Images.') });
export const RequestDetail = z
  .looseObject({
    ...requestFields,
    attempts: z.array(
      z.looseObject({
        attempt: z.int().min(1), provider: z.string(), model: z.string().nullable(), endpoint_id: z.string().nullable(), status: z.int().nullable().meta({ description: 'What the provider answered.' }), failure: z.string().nullable(), charged: z.boolean(), byok: z.boolean(),
        source: z.string().meta({ description: 'Who counted the tokens.' }), flags: z.array(z.string()), tokens: tokenBuckets, cost_usd: dollars('Cost'), plugins_usd: dollars('Fees of plugins in that cost'), savings_usd: dollars('Saved, signed'), price_card_id: z.string().nullable(), latency_ms: z.number(),
        time_to_first_token_ms: z.number().nullable(), finish_reason: z.string().nullable(), started_at: timeOrNull('When it was sent'), ended_at: timeOrNull('When it had ended'),
      }),
    ),
    charge: z.looseObject({
      amount_usd: dollars('Charged, corrections included'), period: z.string(), source: z.string().nullable(), attempts: z.array(z.int()).meta({ description: 'Those that are charged.' }),
      adjustments: z.array(z.looseObject({ amount_usd: dollars('Added or taken off'), period: z.string(), at: timeOrNull('When') })),
    }),
  })
  .meta({ id: 'RequestDetail', description: 'Never content.' });

const statementFields = { id: z.string(), object: z.literal('statement'), period: z.string(), status: z.enum(['open', 'closed']), starts_at: time('First instant'), ends_at: time('First instant after it'), closed_at: timeOrNull('When it was closed'), model_spend_usd: dollars('Spent on models') };
export const StatementRow = z.looseObject({ ...statementFields, charge_usd: dollars('Charged for models, plugins and corrections') }).meta({ id: 'StatementSummary' });
export const Statement = z
  .looseObject({
    ...statementFields, account_id: z.string(), currency: z.literal('USD'), tier: z.string(), total_usd: dollars('To be paid'), subscription_usd: dollars('Fixed').nullable(),
    included_tokens: z.int().nullable().meta({ description: 'Of the plan; null = it includes none.' }), used_tokens: tokens('Used.'), overage_tokens: tokens('Used beyond those.'), overage_usd_per_million: dollars('Price of a million of them').nullable(), overage_usd: dollars('Tokens beyond the allotment'),
    plugins_usd: dollars('Plugins'), adjustments_usd: dollars('Corrections'), trial_credit_usd: dollars('Paid by the trial credit'),
    lines: z.array(
      z.looseObject({ kind: z.string(), description: z.string(), model: z.string().nullable(), provider: z.string().nullable(), request_id: z.string().nullable(), tokens: tokens('Tokens.'), requests: z.int().min(0), amount_usd: dollars('Amount') }),
    ),
  })
  .meta({ id: 'Statement' });

export const Decision = z
  .looseObject({
    id: z.string(), object: z.literal('decision'), request_id: z.string(), created_at: time('When it was made'), why: z.string().meta({ description: 'In one sentence.' }),
    asked: z.object({ model: z.string(), models: z.array(z.string()), prompt_tokens: tokens('Estimated.'), mode: z.string().nullable(), lambda: z.number().nullable() }),
    snapshot_id: z.string().meta({ description: 'The catalog that was in force.' }), artefact_id: z.string().nullable().meta({ description: 'The artefact that `auto` predicted by; null where the client named its model.' }),
    cluster: z.string().nullable(), difficulty: z.number().nullable(), familiarity: z.number().nullable(), excluded: z.record(z.string(), z.int()).meta({ description: 'Endpoints left out, counted by reason.' }), quality_floor: z.number().nullable(),
    candidates: z.array(
      z.object({
        model: z.string(), endpoint: z.string(), quality: z.number(), expected_cost_usd: z.number().meta({ description: 'A forecast that orders candidates; never billed.' }), latency_ms_p75: z.number().nullable(), p_ok: z.number(), tier: z.int(),
        utility: z.number().nullable(), propensity: z.number(),
      }),
    ),
    reason: z.string().nullable(), attempts: z.array(z.string()), reference_model: z.string().nullable().meta({ description: 'What savings are measured against.' }), score: z.number().nullable().meta({ description: 'What a client said of the answer.' }),
  })
  .meta({ id: 'Decision', description: 'Why a request went where it went. Never content.' });
export const FeedbackRequest = z.object({ request_id: z.string().max(200), score: z.number().min(0).max(1).meta({ description: '0 = useless, 1 = as good as can be.' }) }).meta({ id: 'FeedbackRequest' });

const mode = z.enum(['quality', 'balanced', 'economy']);
const names = z.array(z.string().min(1).max(200)).max(200);
const effective = z.object({ baseline_model: z.string().nullable(), hard_cap: z.boolean(), store_answers: z.boolean() });
export const Policy = z
  .looseObject({
    mode: mode.nullable(), lambda: z.number().nullable(), baseline_model: z.string().nullable(), allow_models: names, deny_models: names, allow_providers: names, deny_providers: names,
    cost_caps: costCaps, hard_cap: z.boolean().meta({ description: 'The account’s own; the operator’s holds beside it.' }), store_answers: z.boolean().nullable().meta({ description: 'The account’s own word; null = the operator’s holds.' }),
    effective: effective.meta({ description: 'What holds, the operator’s included.' }),
  })
  .meta({ id: 'Policy' });
export const PolicyRequest = z
  .strictObject({
    mode: mode.nullish(), lambda: z.number().min(0).max(1_000_000).nullish(), baseline_model: z.string().min(1).max(200).nullish(), allow_models: names.nullish(), deny_models: names.nullish(), allow_providers: names.nullish(), deny_providers: names.nullish(),
    cost_caps: costCaps.nullish(), hard_cap: z.boolean().nullish(), store_answers: z.boolean().nullish(), effective: effective.optional().meta({ description: 'Ignored: what was read may be sent back.' }),
  })
  .meta({ id: 'PolicyRequest', description: 'Replaces all of it: what is absent or null goes back to its default.' });

export const ProviderKey = z
  .looseObject({ provider: z.string(), last4: z.string().nullable().meta({ description: 'Null where so short a credential would be told.' }), zdr: z.boolean(), created_at: time('When it was given'), base_url: z.string().optional() })
  .meta({ id: 'ProviderKey', description: 'A credential of the account at a provider. The secret is never answered.' });
export const ProviderKeys = listOf(ProviderKey).extend({ providers: z.array(z.string()).meta({ description: 'Ids of all that a credential may be given for here.' }) });
export const ProviderKeyRequest = z
  .strictObject({ secret: z.string().min(1).max(16_384), zdr: z.boolean().nullish().meta({ description: 'There is an agreement of zero data retention for it; with `base_url`: what is there keeps nothing, and trains on nothing.' }), base_url: z.string().min(1).max(2_048).nullish() })
  .meta({ id: 'ProviderKeyRequest' });
export const ProviderKeyDeleted = z.object({ provider: z.string(), deleted: z.literal(true) }).meta({ id: 'ProviderKeyDeleted' });
const pluginOption = z.looseObject({
  type: z.enum(['integer', 'boolean', 'string', 'strings', 'integers']), description: z.string(), default: z.union([z.string(), z.number(), z.boolean()]).optional().meta({ description: 'If it is absent; none = empty.' }), min: z.number().optional(), max: z.number().optional(),
  minLength: z.int().optional(), maxLength: z.int().optional(), maxItems: z.int().optional(), choices: z.array(z.string()).optional(),
});
export const PluginManifest = z
  .looseObject({
    id: z.string(), object: z.literal('plugin'), name: z.string(), description: z.string(), paid: z.boolean(), kind: z.enum(['retrieval', 'tool']), fee_usd: dollars('Of a run'),
    policies: z.object({ zdr: z.boolean(), data_collection_deny: z.boolean() }).meta({ description: 'Whether it runs in requests that ask for this.' }), models: z.array(z.string()).optional().meta({ description: 'Of a plugin that asks models by itself: those that the lists of the account and the key leave to it.' }), options: z.record(z.string(), pluginOption),
  })
  .meta({ id: 'Plugin' });
export const MemoryFact = z.looseObject({ id: z.string(), object: z.literal('memory.fact'), text: z.string(), namespace: z.string(), created_at: time('When it was learned'), updated_at: time('When it was last changed') }).meta({ id: 'MemoryFact' });
export const MemoryForgotten = z.object({ object: z.literal('memory'), user: z.string(), deleted: z.literal(true), count: z.int().min(0) }).meta({ id: 'MemoryForgotten' });
export const SessionDeleted = z.object({ object: z.literal('session'), deleted: z.boolean() }).meta({ id: 'SessionDeleted' });
