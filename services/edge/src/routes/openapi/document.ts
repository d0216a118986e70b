/** The document at /openapi.json, generated from schemas. */
import { OpenAPIRegistry, OpenApiGeneratorV31 } from '@asteasolutions/zod-to-openapi';
import { z } from 'zod';
import {
  ApiKey, ApiKeyChange, ApiKeyDeleted, ApiKeyRequest, ApiKeyRotation, ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Decision, ErrorBody, FeedbackRequest, Limits, listOf, MemoryFact, MemoryForgotten, Model, PluginManifest, Policy, PolicyRequest, ProviderKey,
  ProviderKeyDeleted, ProviderKeyRequest, ProviderKeys, RequestDetail, RequestRow, Session, SessionDeleted, Statement, StatementRow, UsageRow,
} from './schemas.js';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

interface Operation {
  readonly method: Method;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** Undefined = no scope is needed. */
  readonly scope?: string;
  readonly isPublic?: boolean;
  /** A session is not accepted. */
  readonly needsKey?: boolean;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  readonly body?: z.ZodType;
  readonly isBodyOptional?: boolean;
  /** Absent = the answer has no body. */
  readonly answer?: z.ZodType;
  readonly status?: number;
  readonly errors?: readonly number[];
}

const ERRORS: Readonly<Record<number, string>> = {
  400: 'A parameter is missing or invalid. `param` names it.',
  401: 'The key is missing, wrong, expired or revoked.',
  402: 'A cost cap is reached or the trial credit is used up.',
  403: 'The key lacks the scope, the plugin needs a paid account, or a session’s CSRF token is missing.',
  404: 'It does not exist, or belongs to another account.',
  408: 'The request did not arrive completely in time. It was not run.',
  409: 'The idempotency key was used with another body, or its first request is still running.',
  413: 'The body is too large.',
  415: 'The body must be `application/json` and not compressed.',
  417: 'The only supported value of `Expect` is `100-continue`.',
  429: 'Too many requests, or a hard limit is reached. `Retry-After` says how long to wait.',
  431: 'The headers are too large.',
  500: 'Routing is unavailable. Nothing is charged.',
  503: 'Temporarily unavailable. Nothing is charged.',
};

/** Errors that any request may get before its route is known. */
const BEFORE_ALL = [408, 417, 431];
/** 400 on every route below /api/, for an unknown query parameter. */
const ofQuery = (path: string): readonly number[] => (path.startsWith('/api/') ? [400] : []);

const page = { limit: z.int().min(1).max(100).default(20).optional(), after: z.string().optional().meta({ description: 'Id of the last item of the previous page.' }) };
const span = { from: z.string().optional().meta({ description: 'Start: Unix seconds, or an ISO 8601 date or time (UTC if it has no offset).' }), to: z.string().optional().meta({ description: 'End, in the same formats, not before `from`. A date includes its whole day.' }) };
const ofRequests = { model: z.string().optional().meta({ description: 'The model that answered, by any of the names that requests may use for it.' }), provider: z.string().optional(), key: z.string().optional() };

const idempotencyKey = { 'Idempotency-Key': z.string().optional().meta({ description: 'Chosen by the client. A request that is repeated with the same key runs only once.' }) };
const memoryOf = { user: z.string().optional(), namespace: z.string().min(1).optional().meta({ description: 'If absent, all namespaces.' }) };

export const OPERATIONS: readonly Operation[] = [
  { method: 'post', path: '/v1/chat/completions', tag: 'Inference', summary: 'Create a chat completion', scope: 'inference', headers: { ...idempotencyKey, 'X-Router-Metadata': z.literal('enabled').optional().meta({ description: 'Adds `router_metadata` to the answer or to the error.' }), 'x-session-id': z.string().max(256).optional().meta({ description: 'The same as the field `session_id`, which takes precedence.' }) }, body: ChatCompletionRequest, answer: ChatCompletion, errors: [400, 402, 403, 404, 409, 500, 503] },
  { method: 'get', path: '/v1/models', tag: 'Inference', summary: 'List the models that the key may use', scope: 'inference or models:read', query: { detail: z.literal('full').optional() }, answer: z.object({ object: z.literal('list'), data: z.array(Model) }), errors: [400, 403, 500] },
  { method: 'get', path: '/v1/models/{model}', tag: 'Inference', summary: 'Show a model', scope: 'inference or models:read', query: { detail: z.literal('full').optional() }, answer: Model, errors: [400, 403, 404, 500] },
  { method: 'get', path: '/v1/decisions/{id}', tag: 'Decisions', summary: 'Show why a request was sent to its model and provider', scope: 'usage:read', answer: Decision, errors: [403, 404, 500] },
  { method: 'post', path: '/v1/feedback', tag: 'Decisions', summary: 'Rate an answer', scope: 'inference', body: FeedbackRequest, status: 204, errors: [400, 403, 404, 500] },
  { method: 'post', path: '/api/auth', tag: 'API keys', summary: 'Create an API key', scope: 'keys', headers: idempotencyKey, body: ApiKeyRequest, answer: ApiKey, status: 201, errors: [400, 403, 409, 500] },
  { method: 'get', path: '/api/auth', tag: 'API keys', summary: 'List API keys', scope: 'keys', query: { ...page, status: z.enum(['active', 'rotating', 'disabled', 'expired', 'revoked']).optional() }, answer: listOf(ApiKey), errors: [400, 403] },
  { method: 'get', path: '/api/auth/{key_id}', tag: 'API keys', summary: 'Show an API key', scope: 'keys', answer: ApiKey, errors: [403, 404] },
  { method: 'patch', path: '/api/auth/{key_id}', tag: 'API keys', summary: 'Change an API key', scope: 'keys', body: ApiKeyChange, answer: ApiKey, errors: [400, 403, 404, 500] },
  { method: 'delete', path: '/api/auth/{key_id}', tag: 'API keys', summary: 'Revoke an API key', scope: 'keys', answer: ApiKeyDeleted, errors: [403, 404] },
  { method: 'post', path: '/api/auth/{key_id}/rotate', tag: 'API keys', summary: 'Rotate the secret of an API key', scope: 'keys', body: ApiKeyRotation, isBodyOptional: true, answer: ApiKey, errors: [400, 403, 404] },
  { method: 'get', path: '/api/limits', tag: 'Usage', summary: 'Show cost caps and allotments with the amounts spent and reserved', scope: 'usage:read', answer: Limits, errors: [403] },
  {
    method: 'get', path: '/api/usage', tag: 'Usage', summary: 'Show usage totals and latency by day, model, provider or key', scope: 'usage:read',
    query: { ...span, ...page, group_by: z.enum(['day', 'model', 'provider', 'key']).default('day').optional(), order: z.literal('cost').optional(), ...ofRequests }, answer: listOf(UsageRow), errors: [400, 403, 500],
  },
  {
    method: 'get', path: '/api/requests', tag: 'Usage', summary: 'List requests', scope: 'usage:read',
    query: { ...span, ...page, ...ofRequests, status: z.enum(['completed', 'failed']).optional() }, answer: listOf(RequestRow), errors: [400, 403, 500],
  },
  { method: 'get', path: '/api/requests/{request_id}', tag: 'Usage', summary: 'Show a request with its attempts and charge', scope: 'usage:read', answer: RequestDetail, errors: [403, 404] },
  { method: 'get', path: '/api/statements', tag: 'Usage', summary: 'List statements', scope: 'usage:read', query: page, answer: listOf(StatementRow), errors: [400, 403] },
  { method: 'get', path: '/api/statements/{period}', tag: 'Usage', summary: 'Show a statement, as JSON or with `Accept: text/csv` as CSV', scope: 'usage:read', answer: Statement, errors: [403, 404] },
  { method: 'get', path: '/api/policy', tag: 'Policy', summary: 'Show the account’s policy', scope: 'usage:read', answer: Policy, errors: [403] },
  { method: 'put', path: '/api/policy', tag: 'Policy', summary: 'Set the account’s policy', scope: 'keys', body: PolicyRequest, answer: Policy, errors: [400, 403, 500] },
  { method: 'get', path: '/api/providers', tag: 'Own keys at providers', summary: 'List the account’s own credentials', scope: 'keys', answer: ProviderKeys, errors: [403] },
  { method: 'get', path: '/api/providers/{provider}', tag: 'Own keys at providers', summary: 'Show the account’s own credential at a provider', scope: 'keys', answer: ProviderKey, errors: [400, 403, 404] },
  { method: 'put', path: '/api/providers/{provider}', tag: 'Own keys at providers', summary: 'Store or replace the account’s own credential at a provider', scope: 'keys', body: ProviderKeyRequest, answer: ProviderKey, errors: [400, 403, 404] },
  { method: 'delete', path: '/api/providers/{provider}', tag: 'Own keys at providers', summary: 'Delete the account’s own credential at a provider', scope: 'keys', answer: ProviderKeyDeleted, errors: [400, 403, 404] },
  { method: 'get', path: '/api/plugins', tag: 'Plugins', summary: 'List plugins', scope: 'usage:read', answer: listOf(PluginManifest), errors: [403] },
  { method: 'get', path: '/api/memory', tag: 'Plugins', summary: 'List the facts that the plugin `memory` stores about a user', scope: 'usage:read', query: { ...page, limit: z.int().min(1).max(1_000).default(100).optional(), ...memoryOf }, answer: listOf(MemoryFact), errors: [400, 403] },
  { method: 'delete', path: '/api/memory', tag: 'Plugins', summary: 'Delete all stored facts about a user', scope: 'keys', query: memoryOf, answer: MemoryForgotten, errors: [400, 403] },
  { method: 'post', path: '/api/session', tag: 'Dashboard', summary: 'Sign in: exchange an API key for a session cookie', needsKey: true, answer: Session, status: 201 },
  { method: 'get', path: '/api/session', tag: 'Dashboard', summary: 'Show the account and key of the caller', answer: Session },
  { method: 'delete', path: '/api/session', tag: 'Dashboard', summary: 'Sign out', answer: SessionDeleted, errors: [403] },
  { method: 'get', path: '/openapi.json', tag: 'Dashboard', summary: 'This document', isPublic: true, answer: z.looseObject({}) },
];

/** Formats of answers beside JSON. For a stream the schema is that of each event's data. */
const OTHER_FORMATS: Readonly<Record<string, Readonly<Record<string, { readonly schema: z.ZodType }>>>> = { '/v1/chat/completions': { 'text/event-stream': { schema: ChatCompletionChunk } }, '/api/statements/{period}': { 'text/csv': { schema: z.string() } } };

const json = (schema: z.ZodType) => ({ 'application/json': { schema } });

/** The OpenAPI 3.1 document as an object. */
export function openApiDocument(): object {
  const registry = new OpenAPIRegistry();
  registry.registerComponent('securitySchemes', 'apiKey', { type: 'http', scheme: 'bearer', description: 'An API key: `Authorization: Bearer sbx_live_…`.' });
  registry.registerComponent('securitySchemes', 'session', { type: 'apiKey', in: 'cookie', name: '__Host-signalbox', description: 'A dashboard session (on loopback the cookie is named `signalbox`). Requests that change something also need `X-CSRF-Token`.' });
  for (const { method, path, tag, summary, scope, isPublic = false, needsKey = false, headers, query, body, isBodyOptional = false, answer, status = 200, errors = [] } of OPERATIONS) {
    const other = OTHER_FORMATS[path];
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const params = Object.fromEntries(names.map((name) => [name, z.string()]));
    const shown = isPublic ? [...BEFORE_ALL, ...errors] : [...new Set([...BEFORE_ALL, ...ofQuery(path), 401, ...errors, ...(body === undefined ? [] : [413, 415]), 429, 503])];
    registry.registerPath({
      method,
      path,
      tags: [tag],
      summary,
      ...(scope === undefined ? {} : { description: `Scope: ${scope}.` }),
      operationId: `${method}${path.replace(/[^a-z]+(\w)/gi, (_match, letter: string) => letter.toUpperCase()).replace(/\W/g, '')}`,
      security: isPublic ? [] : needsKey ? [{ apiKey: [] }] : [{ apiKey: [] }, { session: [] }],
      request: {
        ...(names.length === 0 ? {} : { params: z.object(params) }),
        ...(query === undefined ? {} : { query: z.object(query) }),
        ...(headers === undefined ? {} : { headers: z.object(headers) }),
        ...(body === undefined ? {} : { body: { content: json(body), required: !isBodyOptional } }),
      },
      responses: {
        [status]: {
          description: path === '/v1/chat/completions' ? 'The completion. With `stream: true`, server-sent events of chunks followed by `[DONE]`.' : 'OK',
          ...(answer === undefined ? {} : { content: { ...json(answer), ...other } }),
        },
        ...Object.fromEntries(shown.sort((one, other) => one - other).map((code) => [code, { description: ERRORS[code] ?? 'Error', content: json(ErrorBody) }])),
      },
    });
  }
  return new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: '3.1.0',
    info: { title: 'Signalbox', version: '1', description: 'A gateway for chat completions that chooses a model and a provider and reports exact costs. Compatible with the common chat-completions format.' },
    servers: [{ url: '/' }],
  });
}
