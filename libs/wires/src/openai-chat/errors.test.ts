import { describe, expect, test } from '@jest/globals';
import type { FailureClass } from '../canonical.js';
import { classifyErrorFrame, classifyRefusal } from './errors.js';

const refusal = (status: number, body: unknown) => classifyRefusal({ status, headers: {}, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), nowMs: 0 });

/** OpenRouter's refusal in the words of the host that it asked. */
const relayed = (code: number, raw: unknown) => ({ error: { message: 'Provider returned error', code, metadata: { raw, provider_name: 'A host', is_byok: false } }, user_id: 'user_x' });

describe('refusals as hosts write them', () => {
  const table: readonly (readonly [string, number, unknown, FailureClass])[] = [
    ['openai: rate', 429, { error: { message: 'Rate limit reached for gpt-4o', type: 'requests', code: 'rate_limit_exceeded' } }, 'RATE_LIMITED'],
    ['openai: quota', 429, { error: { message: 'You exceeded your current quota, please check your plan', type: 'insufficient_quota', code: 'insufficient_quota' } }, 'CREDENTIAL'],
    ['openai: no prepaid credit is left', 429, { error: { message: 'Your organization has no prepaid credits remaining.', type: 'billing_error', param: null, code: 'credit_balance_exhausted' } }, 'CREDENTIAL'],
    ['openai: the limit of spending of an organization', 429, { error: { message: 'Your organization reached its enforced spend limit.', type: 'server_error', param: null, code: 'organization_spend_limit_exceeded' } }, 'CREDENTIAL'],
    ['openai: the limit of spending of a project', 429, { error: { message: 'Your project reached its enforced spend limit.', type: 'server_error', param: null, code: 'project_spend_limit_exceeded' } }, 'CREDENTIAL'],
    ['openai: the approved usage of an organization', 429, { error: { message: 'Your organization reached its usage limit.', type: 'server_error', param: null, code: 'organization_usage_limit_exceeded' } }, 'CREDENTIAL'],
    ['groq: the limit of spending', 400, { error: { message: 'Your organization has blocked API access due to a spend limit.', type: 'invalid_request_error', code: 'blocked_api_access' } }, 'CREDENTIAL'],
    ['groq: the limit of spending, by another code', 400, { error: { message: 'Your organization has blocked API access due to a spend limit.', type: 'invalid_request_error', code: 'spend_limit_reached' } }, 'CREDENTIAL'],
    ['openai: key', 401, { error: { message: 'Incorrect API key provided: sk-ab***', type: 'invalid_request_error', code: 'invalid_api_key' } }, 'CREDENTIAL'],
    ['openai: length', 400, { error: { message: "This model's maximum context length is 128000 tokens.", type: 'invalid_request_error', code: 'context_length_exceeded' } }, 'CONTEXT_LENGTH'],
    ['openai: no such model', 404, { error: { message: 'The model `x` does not exist', type: 'invalid_request_error', code: 'model_not_found' } }, 'NOT_FOUND'],
    ['openai: overload', 503, { error: { message: 'The engine is currently overloaded', type: 'server_error' } }, 'PROVIDER_ERROR'],
    ['mistral: validation', 422, { detail: [{ loc: ['body', 'top_p'], msg: 'Input should be less than 1', type: 'less_than' }] }, 'BAD_REQUEST'],
    ['mistral: bad call', 400, { object: 'error', message: 'Unexpected role', type: 'invalid_request_error', param: null, code: null }, 'BAD_REQUEST'],
    ['mistral: rate', 429, { object: 'error', message: 'Requests rate limit exceeded', type: 'rate_limited', param: null, code: '1300' }, 'RATE_LIMITED'],
    ['groq: capacity', 498, { error: { message: 'Flex tier capacity exceeded', type: 'flex_capacity_exceeded' } }, 'PROVIDER_ERROR'],
    ['groq: tokens per minute', 413, { error: { message: 'Request too large for model: Limit 6000 tokens per minute', type: 'tokens', code: 'rate_limit_exceeded' } }, 'RATE_LIMITED'],
    ['groq: more tokens than a minute has', 413, { error: { message: 'Request too large for model `x` in organization `org_01abcdefgh` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7890, please reduce your message size and try again.', type: 'tokens', code: 'rate_limit_exceeded' } }, 'CONTEXT_LENGTH'],
    ['openai: more tokens than a minute has', 429, { error: { message: 'Request too large for gpt-4.1 (for limit gpt-4.1-long-context) in organization org-abcdefgh on tokens per min (TPM): Limit 30000, Requested 37313. The input or output tokens must be reduced in order to run successfully.', type: 'tokens', param: null, code: 'rate_limit_exceeded' } }, 'CONTEXT_LENGTH'],
    ['openai: as many tokens as a minute has', 429, { error: { message: 'Request too large for gpt-4.1 in organization org-abcdefgh on tokens per min (TPM): Limit 30000, Requested 30000.', type: 'tokens', param: null, code: 'rate_limit_exceeded' } }, 'RATE_LIMITED'],
    ['openai: tokens that others used', 429, { error: { message: 'Rate limit reached for gpt-4.1 in organization org-abcdefgh on tokens per min (TPM): Limit 30000, Used 29000, Requested 37313.', type: 'tokens', param: null, code: 'rate_limit_exceeded' } }, 'RATE_LIMITED'],
    ['deepseek: no balance', 402, { error: { message: 'Insufficient Balance', type: 'unknown_error', code: 'invalid_request_error' } }, 'CREDENTIAL'],
    ['deepseek: busy', 503, { error: { message: 'Service is too busy' } }, 'PROVIDER_ERROR'],
    ['zai: no balance', 429, { error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' } }, 'CREDENTIAL'],
    ['zai: a locked account', 429, { error: { code: '1112', message: 'Your account has been locked, please contact customer service to unlock' } }, 'CREDENTIAL'],
    ['zai: a plan that has ended', 429, { error: { code: '1309', message: 'Your GLM Coding Plan package has expired and is temporarily unavailable' } }, 'CREDENTIAL'],
    ['zai: a limit of five hours', 429, { error: { code: '1308', message: 'Usage limit reached for 5 hour. Your limit will reset at 2026-11-29 20:00:00' } }, 'RATE_LIMITED'],
    ['zai: rate', 429, { error: { code: '1302', message: 'High concurrency usage of this API' } }, 'RATE_LIMITED'],
    ['zai: length', 400, { error: { code: '1261', message: 'Prompt exceeds max length' } }, 'CONTEXT_LENGTH'],
    ['zai: filter', 400, { error: { code: '1301', message: 'System detected potentially unsafe or sensitive content in input' } }, 'CONTENT_POLICY'],
    ['moonshot: suspended', 429, { error: { type: 'exceeded_current_quota_error', message: 'Your account is suspended, please check your plan and billing details' } }, 'CREDENTIAL'],
    ['moonshot: overload', 429, { error: { type: 'engine_overloaded_error', message: 'The engine is currently overloaded, please try again later' } }, 'RATE_LIMITED'],
    ['moonshot: filter', 400, { error: { type: 'content_filter', message: 'The request was rejected because it was considered high risk' } }, 'CONTENT_POLICY'],
    ['alibaba: filter', 400, { error: { code: 'data_inspection_failed', type: 'data_inspection_failed', message: 'Input data may contain inappropriate content.' } }, 'CONTENT_POLICY'],
    ['alibaba: account', 400, { error: { code: 'Arrearage', type: 'Arrearage', message: 'Access denied, please make sure your account is in good standing.' } }, 'CREDENTIAL'],
    ['alibaba: tokens per minute', 429, { error: { message: 'You exceeded your current quota, please check your plan and billing details. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } }, 'RATE_LIMITED'],
    ['alibaba: tokens per minute, in other words', 429, { error: { message: 'Allocated quota exceeded, please increase your quota limit.', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } }, 'RATE_LIMITED'],
    ['alibaba: no free tokens are left', 429, { error: { message: 'Free allocated quota exceeded.', type: 'insufficient_quota', param: null, code: 'insufficient_quota' } }, 'CREDENTIAL'],
    ['alibaba: length', 400, { error: { code: 'invalid_parameter_error', message: 'Range of input length should be [1, 129024]' } }, 'CONTEXT_LENGTH'],
    ['xai: key', 400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***. You can obtain one.' }, 'CREDENTIAL'],
    ['xai: safety', 403, { code: 'The caller does not have permission', error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_CSAM' }, 'CONTENT_POLICY'],
    ['cerebras: length', 400, { message: 'Please reduce the length of the messages or completion.', type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' }, 'CONTEXT_LENGTH'],
    ['cerebras: queue', 429, { message: 'Too many requests. Queue is full', type: 'too_many_requests_error', param: 'queue', code: 'queue_exceeded' }, 'RATE_LIMITED'],
    ['novita: balance', 403, { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'not enough balance', metadata: {} }, 'CREDENTIAL'],
    ['deepinfra: model', 404, { error: { message: 'The model `x` does not exist', type: 'invalid_request_error' } }, 'NOT_FOUND'],
    ['deepinfra: inner detail', 422, { detail: { error: 'max_tokens must be positive' } }, 'BAD_REQUEST'],
    ['fireworks: body', 400, { error: { object: 'error', type: 'invalid_request_error', code: 'invalid_request_error', message: 'Extra inputs are not permitted, field: foo' } }, 'BAD_REQUEST'],
    ['openrouter: credits', 402, { error: { code: 402, message: 'Insufficient credits' } }, 'CREDENTIAL'],
    ['openrouter: credits for less than was asked', 402, { error: { code: 402, message: 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 4032. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account' } }, 'NOT_FOUND'],
    ['openrouter: credits for nothing', 402, { error: { code: 402, message: 'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 0. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account' } }, 'CREDENTIAL'],
    ['openrouter: moderation', 403, { error: { code: 403, message: 'Your input was flagged by moderation', metadata: { reasons: ['violence'] } } }, 'CONTENT_POLICY'],
    ['openrouter: nobody who takes images', 404, { error: { message: 'No endpoints found that support image input', code: 404 } }, 'BAD_REQUEST'],
    ['openrouter: nobody who takes the parameters', 404, { error: { message: 'No endpoints found that can handle the requested parameters.', code: 404 } }, 'BAD_REQUEST'],
    ['openrouter: nobody by the operator’s data policy', 404, { error: { message: 'No endpoints found matching your data policy. Configure: https://openrouter.ai/settings/privacy', code: 404 } }, 'NOT_FOUND'],
    ['xai: fields that it does not know, in plain text', 422, 'Failed to deserialize the JSON body into the target type: messages[0]: data did not match any variant of untagged enum ChatCompletionRequestContent at line 1 column 1301180', 'BAD_REQUEST'],
    ['another plain text', 422, 'Unprocessable Entity', 'PROVIDER_ERROR'],
    ['openrouter: host down', 502, { error: { code: 502, message: 'Provider returned error' } }, 'PROVIDER_ERROR'],
    ['openrouter: length, told by Anthropic', 400, relayed(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 205000 tokens > 200000 maximum' } })), 'CONTEXT_LENGTH'],
    ['openrouter: length, told by vLLM', 400, relayed(400, { object: 'error', message: "This model's maximum context length is 4096 tokens", type: 'BadRequestError', param: null, code: 400 }), 'CONTEXT_LENGTH'],
    ['openrouter: length, told in plain text', 400, relayed(400, "This model's maximum context length is 4096 tokens"), 'CONTEXT_LENGTH'],
    ['openrouter: policy, told by Anthropic', 400, relayed(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' } })), 'CONTENT_POLICY'],
    ['openrouter: a mistake, told by a host', 400, relayed(400, JSON.stringify({ error: { message: "Model 'x' supports at most 1 image per prompt.", type: 'invalid_request_error' } })), 'BAD_REQUEST'],
    ['openrouter: a key that is not ours, told by Google', 400, relayed(400, JSON.stringify([{ error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } }])), 'PROVIDER_ERROR'],
    ['openrouter: credit that is not ours', 400, relayed(400, JSON.stringify({ error: { message: 'Stopped', type: 'invalid_request_error', code: 'insufficient_quota' } })), 'PROVIDER_ERROR'],
    ['openrouter: a rate behind it, whatever its words', 429, relayed(429, 'prompt is too long: insufficient_quota is near'), 'RATE_LIMITED'],
    ['openrouter: a host down, whatever its words', 502, relayed(502, 'prompt is too long'), 'PROVIDER_ERROR'],
    ['openrouter: nothing told', 400, relayed(400, ''), 'BAD_REQUEST'],
    ['openrouter: nothing readable told', 400, relayed(400, ['a', 7]), 'BAD_REQUEST'],
    ['openrouter: nothing beside it', 400, { error: { message: 'Provider returned error', code: 400 } }, 'BAD_REQUEST'],
    ['openrouter: its own words come first', 400, { error: { message: 'Bad temperature', code: 400, metadata: { raw: 'prompt is too long' } } }, 'BAD_REQUEST'],
    ['perplexity: a page', 401, '<html>401 Authorization Required</html>', 'CREDENTIAL'],
    ['xai: length', 400, { code: 'Client specified an invalid argument', error: "This model's maximum prompt length is 131072 but the request contains 136973 tokens." }, 'CONTEXT_LENGTH'],
    ['moonshot: length', 400, { error: { message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)', type: 'invalid_request_error' } }, 'CONTEXT_LENGTH'],
    ['together: length, of the tokens that may be generated too', 400, { error: { message: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 40960. Given: 38984 `inputs` tokens and 2048 `max_new_tokens`', type: 'invalid_request_error', param: 'max_tokens', code: null } }, 'CONTEXT_LENGTH'],
    ['llama.cpp: length', 400, { error: { code: 400, message: 'the request exceeds the available context size, try increasing it', type: 'exceed_context_size_error' } }, 'CONTEXT_LENGTH'],
    ['fireworks: suspended', 412, { error: { object: 'error', type: 'invalid_request_error', code: 'PRECONDITION_FAILED', message: 'Account acme-inc is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.' } }, 'CREDENTIAL'],
    ['vllm: length of a prompt with images', 400, { error: { message: 'The decoder prompt (length 2136) is longer than the maximum model length of 2048. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.', type: 'BadRequestError', param: null, code: 400 } }, 'CONTEXT_LENGTH'],
    ['sglang: length', 400, { object: 'error', message: 'Input length (57719 tokens) exceeds the maximum allowed length (55539 tokens). Use a shorter input or enable --allow-auto-truncate.', type: 'BadRequestError', param: null, code: 400 }, 'CONTEXT_LENGTH'],
    ['deepinfra: length, told by OpenRouter', 400, relayed(400, 'Requested input length 39818 exceeds maximum input length 32767'), 'CONTEXT_LENGTH'],
    ['google: length, told by OpenRouter', 400, relayed(400, JSON.stringify({ error: { code: 400, message: 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).', status: 'INVALID_ARGUMENT' } })), 'CONTEXT_LENGTH'],
    ['anthropic: length of prompt and answer, told by OpenRouter', 400, relayed(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or `max_tokens` and try again' } })), 'CONTEXT_LENGTH'],
    ['alibaba: length of all messages', 400, { error: { code: 'invalid_parameter_error', type: 'invalid_request_error', message: '<400> InternalError.Algo.InvalidParameter: Total message token length exceed model limit (10000000 tokens).' } }, 'CONTEXT_LENGTH'],
    ['moonshot: length of the prompt alone', 400, { error: { message: 'Invalid request: Input token length too long', type: 'invalid_request_error' } }, 'CONTEXT_LENGTH'],
    ['zai: length, in other words', 400, { error: { code: '1210', message: 'tokens in request more than max tokens allowed' } }, 'CONTEXT_LENGTH'],
    ['another field that is too long', 400, { error: { message: "Invalid 'tools[0].function.name': string too long. It exceeds the maximum allowed length of 64.", type: 'invalid_request_error', param: 'tools[0].function.name', code: 'string_above_max_length' } }, 'BAD_REQUEST'],
    ['vllm: length', 400, { object: 'error', message: "This model's maximum context length is 4096 tokens", type: 'BadRequestError', param: null, code: 400 }, 'CONTEXT_LENGTH'],
    ['google: key', 400, [{ error: { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } }], 'CREDENTIAL'],
    ['openai: hard limit', 400, { error: { message: 'Billing hard limit has been reached', type: 'invalid_request_error', param: null, code: 'billing_hard_limit_reached' } }, 'CREDENTIAL'],
    ['xai: key, whole', 400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai.' }, 'CREDENTIAL'],
    ['openai: region', 403, { error: { message: 'Country, region, or territory not supported', type: 'request_forbidden', param: null, code: 'unsupported_country_region_territory' } }, 'CREDENTIAL'],
    ['openai: scopes', 403, { error: { message: 'You have insufficient permissions for this operation. Missing scopes: model.request.', type: 'invalid_request_error', param: null, code: 'missing_scope' } }, 'CREDENTIAL'],
    ['openai: a key under 403', 403, { error: { message: 'No access to any model.', type: 'invalid_request_error', code: 'invalid_api_key' } }, 'CREDENTIAL'],
    ['openai: no access to the model', 403, { error: { message: 'Project `proj_x` does not have access to model `gpt-5`', type: 'invalid_request_error', param: null, code: 'model_not_found' } }, 'NOT_FOUND'],
    ['groq: model blocked', 403, { error: { message: 'The model `x` is blocked at the organization level. Please have a team admin enable it.', type: 'permissions_error', code: 'model_permission_blocked_org' } }, 'NOT_FOUND'],
    ['a host: model by code alone', 403, { error: { message: 'Forbidden', type: 'permission_denied', code: 'ModelNotAllowed' } }, 'NOT_FOUND'],
    ['xai: model', 403, { code: 'The caller does not have permission', error: 'Your team is not authorized to access this model.' }, 'NOT_FOUND'],
    ['together: length', 403, { error: { message: 'Input token count + max_tokens exceeds the context length of the model being queried', type: 'invalid_request_error' } }, 'CONTEXT_LENGTH'],
    ['a filter in front of a host', 403, '<!DOCTYPE html><title>Attention Required!</title>', 'PROVIDER_ERROR'],
    ['an empty 403', 403, '', 'CREDENTIAL'],
    ['a client that says bad key', 400, { error: { message: "Invalid value: 'invalid_api_key'. Supported values are: 'low', 'medium', and 'high'.", type: 'invalid_request_error', param: 'reasoning_effort', code: 'invalid_value' } }, 'BAD_REQUEST'],
    ['a client that says no credit', 422, { detail: [{ loc: ['body', 'stop'], msg: "Input should be shorter, got 'insufficient_quota'", type: 'string_too_long' }] }, 'BAD_REQUEST'],
    ['a client that says no credit at length', 413, { error: { message: 'Too large: insufficient balance', type: 'invalid_request_error' } }, 'CONTEXT_LENGTH'],
    ['a client that says a whole sentence', 400, { error: { message: "'API key not valid. Please pass a valid API key.' is not one of ['low', 'high'] - 'reasoning_effort'", type: 'invalid_request_error' } }, 'BAD_REQUEST'],
    ['a client whose sentence comes first', 400, { error: { message: 'API key not valid. Please pass a valid API key. is no effort', type: 'invalid_request_error' } }, 'BAD_REQUEST'],
    ['a client whose sentence is all, at a field', 400, { error: { message: 'API key not valid. Please pass a valid API key.', type: 'invalid_request_error', param: 'user' } }, 'BAD_REQUEST'],
    ['openai: streams wait for the operator', 400, { error: { message: 'Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.', type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } }, 'NOT_FOUND'],
    ['openai: a prompt that reasoning models refuse', 400, { error: { message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt.', type: 'invalid_request_error', param: null, code: 'invalid_prompt' } }, 'CONTENT_POLICY'],
    ['openai: a prompt that its classifiers stop', 400, { error: { message: 'This content was flagged for possible cybersecurity risk. If this seems wrong, try rephrasing your request.', type: 'invalid_request', param: null, code: 'cyber_policy' } }, 'CONTENT_POLICY'],
    ['groq: a restricted account', 400, { error: { message: 'Organization has been restricted. Please reach out to support if you believe this was in error.', type: 'invalid_request_error', code: 'organization_restricted' } }, 'CREDENTIAL'],
    ['groq: a model that is gone', 400, { error: { message: 'The model `x` has been decommissioned and is no longer supported.', type: 'invalid_request_error', code: 'model_decommissioned' } }, 'NOT_FOUND'],
    ['groq: a model whose terms the operator has not accepted', 400, { error: { message: 'The model `x` requires terms acceptance. Please have the org admin accept the terms.', type: 'invalid_request_error', code: 'model_terms_required' } }, 'NOT_FOUND'],
    ['xai: credits', 429, { code: 'Some resource has been exhausted', error: 'Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.' }, 'CREDENTIAL'],
    ['mistral: no such model', 400, { object: 'error', message: 'Invalid model: x', type: 'invalid_model', param: null, code: '1500' }, 'NOT_FOUND'],
    ['together: a model of dedicated endpoints', 400, { error: { message: 'Unable to access non-serverless model x. Please visit https://api.together.ai/models/x to create and start a new dedicated endpoint for the model.', type: 'invalid_request_error', param: null, code: 'model_not_available' } }, 'NOT_FOUND'],
    ['azure: a model of another API', 400, { error: { message: 'The chatCompletion operation does not work with the specified model, x. Please choose different model and try again.', code: 'OperationNotSupported' } }, 'NOT_FOUND'],
    ['openrouter: no such model', 400, { error: { message: 'foo/bar is not a valid model ID', code: 400 } }, 'NOT_FOUND'],
    ['openrouter: streams that wait for an operator, told by OpenAI', 400, relayed(400, JSON.stringify({ error: { message: 'Your organization must be verified to stream this model.', type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } })), 'NOT_FOUND'],
    ['ollama, as OpenAI: a body that broke off within it', 400, { error: { message: 'unexpected EOF', type: 'invalid_request_error', param: null, code: null } }, 'PROVIDER_ERROR'],
    ['a client that says so', 400, { error: { message: "Invalid value: 'unexpected EOF'.", type: 'invalid_request_error', code: 'invalid_value' } }, 'BAD_REQUEST'],
    ['a client that says no model', 400, { error: { message: "Invalid value: 'model_decommissioned'. Your organization must be verified to stream this model.", type: 'invalid_request_error', code: 'invalid_value' } }, 'BAD_REQUEST'],
    ['xiaomi: a mistake, as an event of the stream', 400, 'data:{"error":{"code":"400","message":"Param Incorrect","param":"temperature is out of range","type":""}}', 'BAD_REQUEST'],
    ['a rate limit as a named event', 429, 'event: error\r\ndata: {"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}\r\n\r\n', 'CREDENTIAL'],
    ['something in between', 400, '<html>Bad gateway</html>', 'PROVIDER_ERROR'],
    ['something in between that takes fewer bytes', 413, '<html><head><title>413 Request Entity Too Large</title></head></html>', 'CONTEXT_LENGTH'],
    ['cerebras: length, without a word', 413, '', 'CONTEXT_LENGTH'],
  ];
  test.each(table)('%s', (_name, status, body, expected) => {
    const failure = refusal(status, body);
    expect([failure.class, failure.status]).toEqual([expected, status]);
    if (!['BAD_REQUEST', 'CONTEXT_LENGTH', 'CONTENT_POLICY'].includes(expected)) expect(failure.publicMessage).toBe('');
  });

  test.each<[number, unknown, Readonly<Record<string, string>>, number]>([
    [429, '1795255230000', {}, 30_000],
    [429, 1795255230, {}, 30_000],
    [429, '1795305600000', {}, 600_000],
    // 2026-11-21T11:00:00Z, an hour ahead of the clock here.
    [429, '1795258830000', { date: 'Sat, 21 Nov 2026 11:00:00 GMT' }, 30_000],
    [429, '1795255199000', {}, 0],
    [429, '30', {}, 0],
    [429, 'soon', {}, 0],
    [429, { of: 1 }, {}, 0],
    [429, '1795255230000', { 'retry-after': '7' }, 7_000],
    [503, '1795255230000', {}, 0],
  ])('openrouter: a %d whose limit ends at %j, under %j, says to wait %d ms', (status, reset, headers, retryAfterMs) => {
    const body = { error: { message: 'Rate limit exceeded: free-models-per-min. ', code: status, metadata: { headers: { 'X-RateLimit-Limit': '20', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': reset } } }, user_id: 'user_x' };
    expect(classifyRefusal({ status, headers, body: Buffer.from(JSON.stringify(body)), nowMs: 1_795_255_200_000 }).retryAfterMs).toBe(retryAfterMs);
  });

  test.each<[string, unknown, boolean]>([
    ['groq: a call that the model wrote wrongly', { error: { message: 'tool call validation failed: parameters for tool f did not match schema', type: 'invalid_request_error', code: 'tool_use_failed', failed_generation: 'secret' } }, true],
    ['groq: no JSON', { error: { message: "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.", type: 'invalid_request_error', code: 'json_validate_failed' } }, true],
    ['openai: not with this model', { error: { message: "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", type: 'invalid_request_error', param: 'temperature', code: 'unsupported_value' } }, true],
    ['openai: tools beside an effort', { error: { message: "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", type: 'invalid_request_error', param: 'reasoning_effort', code: null } }, true],
    ['vllm: started without tools', { object: 'error', message: 'Tool choice "auto" is not supported by this server', type: 'BadRequestError', param: null, code: 400 }, true],
    ['fireworks: a field of other hosts', { error: { object: 'error', type: 'invalid_request_error', code: 'invalid_request_error', message: "Extra inputs are not permitted, field: 'messages[1].annotations', value: []" } }, true],
    ['groq: JSON beside tools', { error: { message: 'json mode cannot be combined with tool/function calling', type: 'invalid_request_error' } }, true],
    ['cerebras: strict tools beside others', { message: "Tools with mixed values for 'strict' are not allowed. Please set all tools to 'strict: true' or 'strict: false'", type: 'invalid_request_error', param: 'tools', code: 'wrong_api_format' }, true],
    ['vllm: started for fewer images', { object: 'error', message: 'At most 1 image(s) may be provided in one request.', type: 'BadRequestError', param: null, code: 400 }, true],
    ['vllm: started without eyes', { object: 'error', message: 'x is not a multimodal model', type: 'BadRequestError', param: null, code: 400 }, true],
    ['groq: an effort that the model has not', { error: { message: '`reasoning_effort` must be one of `none` or `default`', type: 'invalid_request_error' } }, true],
    ['deepseek: images', { error: { message: 'Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line 1 column 114708', type: 'invalid_request_error', param: null, code: 'invalid_request_error' } }, true],
    ['xai: fields that it does not know', 'Failed to deserialize the JSON body into the target type: input: data did not match any variant of untagged enum ModelInput at line 1 column 114032', true],
    ['zai: thinking that goes on', { error: { code: '1210', message: 'Thinking cannot be disabled for this model' } }, true],
    ['moonshot: the same in its words', { error: { message: 'invalid thinking: only type=enabled is allowed for this model', type: 'invalid_request_error' } }, true],
    ['openai: an effort of other models', { error: { message: "Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", type: 'invalid_request_error', param: 'reasoning_effort', code: 'invalid_value' } }, true],
    ['mistral: an effort, whose field stands beside the sentence', { object: 'error', message: { detail: [{ type: 'enum', loc: ['body', 'reasoning_effort'], msg: "Input should be 'none' or 'high'", input: 'medium' }] }, type: 'invalid_request_invalid_args', param: null, code: null }, true],
    ['vllm: an effort that no schema knows', { detail: [{ type: 'literal_error', loc: ['body', 'reasoning_effort'], msg: "Input should be 'low', 'medium' or 'high'", input: 'max' }] }, true],
    ['openrouter: a grammar that a host does not compile', relayed(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.' } })), true],
    ['openrouter: a schema that Google does not serve', relayed(400, JSON.stringify({ error: { code: 400, message: 'The specified schema produces a constraint that has too many states for serving.', status: 'INVALID_ARGUMENT' } })), true],
    ['openrouter: not with this host', relayed(400, JSON.stringify({ error: { message: "Unsupported parameter: 'temperature' is not supported with this model.", type: 'invalid_request_error', param: 'temperature', code: 'unsupported_parameter' } })), true],
    ['openrouter: what a host behind it refused without a word', relayed(400, ''), true],
    ['openrouter: the same, with nothing beside it', { error: { message: 'Provider returned error', code: 400 } }, true],
    ['openrouter: a mistake that a host found', relayed(400, JSON.stringify({ error: { message: 'Invalid schema for response_format', type: 'invalid_request_error' } })), false],
    ['another field of few values', { error: { message: "Invalid value: 'xml'. Supported values are: 'text' and 'json_object'.", type: 'invalid_request_error', param: 'response_format.type', code: 'invalid_value' } }, false],
    ['a mistake of the client\'s', { error: { message: 'Invalid schema for response_format', type: 'invalid_request_error', code: 'invalid_json_schema' } }, false],
    ['a client that says a code', { error: { message: "Invalid value: 'tool_use_failed'.", type: 'invalid_request_error', code: 'invalid_value' } }, false],
  ])('%s: elsewhere it may be taken', (_name, body, isRetryable) => {
    expect(refusal(400, body)).toMatchObject({ class: 'BAD_REQUEST', retryable: isRetryable });
  });

  test('openai: streams that it refuses to one organization say nothing against the endpoint', () => {
    const told = { error: { message: 'Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general', type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } };
    const others = { error: { ...told.error, message: 'Your organization must be verified to use this model.' } };
    for (const body of [told, relayed(400, JSON.stringify(told))]) expect(refusal(400, body)).toMatchObject({ class: 'NOT_FOUND', retryable: true, publicMessage: '', isEndpointWell: true, refusesStreams: true });
    expect(refusal(400, others)).toEqual(expect.not.objectContaining({ isEndpointWell: true }));
  });

  test('openai: a request too large for a minute tells the client no organization and no wait', () => {
    const message = 'Request too large for gpt-4.1 in organization org-abcdefgh on tokens per min (TPM): Limit 30000, Requested 37313.';
    const failure = classifyRefusal({ status: 429, headers: { 'retry-after': '30' }, body: Buffer.from(JSON.stringify({ error: { message, type: 'tokens', code: 'rate_limit_exceeded' } })), nowMs: 0 });
    expect(failure).toMatchObject({ class: 'CONTEXT_LENGTH', retryAfterMs: 0, retryable: true, publicMessage: message.replace('org-abcdefgh', '[redacted]') });
  });

  test('openrouter: what nobody there takes may be taken elsewhere, and the client reads what it was', () => {
    const message = 'No endpoints found that support image input';
    expect(refusal(404, { error: { message, code: 404 } })).toMatchObject({ class: 'BAD_REQUEST', status: 404, retryable: true, publicMessage: message });
  });

  test('openrouter: the client reads what the host behind it said', () => {
    const told = { error: { message: "Model 'x' supports at most 1 image per prompt.", type: 'invalid_request_error', param: 'messages' } };
    expect(refusal(400, relayed(400, JSON.stringify(told)))).toMatchObject({ publicMessage: told.error.message, publicParam: 'messages' });
    expect(refusal(400, relayed(400, { error: told.error }))).toMatchObject({ publicMessage: told.error.message });
  });

  test.each<[string, unknown, FailureClass]>([
    ['openrouter, of a host behind it', relayed(400, 'prompt is too long: 205000 tokens > 200000 maximum').error, 'CONTEXT_LENGTH'],
    ['openrouter, in mid-stream', { code: 502, message: 'Upstream idle timeout exceeded' }, 'PROVIDER_ERROR'],
    ['openai', { message: 'The server had an error while processing your request', type: 'server_error' }, 'PROVIDER_ERROR'],
    ['vllm', { object: 'error', message: 'maximum context length is 4096', code: 400 }, 'CONTEXT_LENGTH'],
    ['a client that says no credit', { message: "Bad value 'credit balance'", type: 'invalid_request_error' }, 'BAD_REQUEST'],
    ['alibaba, its tokens per minute', { message: 'Allocated quota exceeded, please increase your quota limit.', type: 'insufficient_quota', code: 'insufficient_quota' }, 'RATE_LIMITED'],
    ['a host without credit', { message: 'Stopped', type: 'insufficient_quota' }, 'CREDENTIAL'],
    ['groq, a failed call', { message: "Failed to call a function. Please adjust your prompt. See 'failed_generation'", type: 'invalid_request_error', code: 'tool_use_failed' }, 'BAD_REQUEST'],
  ])('%s inside a 200', (_name, frame, expected) => {
    expect(classifyErrorFrame(frame).class).toBe(expected);
  });
});
