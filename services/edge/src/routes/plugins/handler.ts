/** GET /api/plugins, GET and DELETE /api/memory (contract, section 15). */
import type { DeletedResponse__Output, ManifestsResponse__Output, MemoryRequest, MemoryResponse__Output } from '@signalbox/contracts/plugins';
import { asNanoUsd } from '@signalbox/kernel/money';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import type { RpcClient } from '@signalbox/rpc/call';
import { apiError } from '../../wire/errors.js';
import { renderJson, type JsonValue } from '../../wire/json-text.js';
import { ApiErrorException } from '../api-error-exception.js';

const DEADLINE_MS = 5_000;
const USER_CHARS_MAX = 512;
const NAMESPACE_CHARS_MAX = 64;
const FACTS_MAX = 1_000;
const FACTS_DEFAULT = 100;

type Query = Readonly<Record<string, unknown>>;

/** The installed plugins; none where the service is not set up. */
export async function answerPlugins(plugins: RpcClient | undefined): Promise<string> {
  if (plugins === undefined) return renderJson({ object: 'list', data: [] });
  const { manifests } = await plugins.unary<object, ManifestsResponse__Output>('Manifests', {}, { deadlineMs: DEADLINE_MS });
  const records = JSON.parse(Buffer.from(manifests).toString('utf8')) as readonly ManifestRecord[];
  const data = records.map(({ id, name, description, paid, kind, fee_nano_usd: fee, zdr, data_collection_deny: deny, options }): JsonValue => ({
    id, object: 'plugin', name, description, paid, kind, fee_usd: asNanoUsd(fee), policies: { zdr, data_collection_deny: deny },
    options: Object.fromEntries(Object.entries(options).map(([option, spec]): [string, JsonValue] => [option, { ...spec }])),
  }));
  return renderJson({ object: 'list', data });
}

function textOf(query: Query, name: string, charsMax: number): string {
  const value = query[name];
  if (value === undefined) return '';
  if (typeof value !== 'string' || value.length > charsMax) throw new ApiErrorException(apiError('invalid_value', { param: name, message: `Invalid value for '${name}': expected one text of at most ${charsMax} characters.` }));
  return value;
}

function installed(plugins: RpcClient | undefined): RpcClient {
  if (plugins === undefined) throw new ApiErrorException(apiError('plugin_unavailable', { message: "The plugin 'memory' is not installed here." }));
  return plugins;
}

const ownerOf = (accountId: string, query: Query) => ({ accountId, user: textOf(query, 'user', USER_CHARS_MAX), namespace: textOf(query, 'namespace', NAMESPACE_CHARS_MAX) });

/** Facts of `?user=` (absent: of the account itself), newest first; `?namespace=` and `?limit=` narrow them. */
export async function answerMemory(plugins: RpcClient | undefined, accountId: string, query: Query): Promise<string> {
  const limit = textOf(query, 'limit', 8);
  if (limit !== '' && !(/^\d+$/.test(limit) && Number(limit) >= 1 && Number(limit) <= FACTS_MAX)) throw new ApiErrorException(apiError('invalid_value', { param: 'limit', message: `Invalid value for 'limit': expected an integer from 1 to ${FACTS_MAX}.` }));
  const asked = { ...ownerOf(accountId, query), limit: limit === '' ? FACTS_DEFAULT : Number(limit) };
  const { facts } = await installed(plugins).unary<MemoryRequest, MemoryResponse__Output>('ListMemory', asked, { deadlineMs: DEADLINE_MS });
  const seconds = (ms: string): number => Math.floor(Number(ms) / 1_000);
  return renderJson({ object: 'list', data: facts.map(({ id, text, namespace, createdAtMs, updatedAtMs }) => ({ id, object: 'memory.fact', text, namespace, created_at: seconds(createdAtMs), updated_at: seconds(updatedAtMs) })) });
}

/** Deletes the facts of `?user=` (absent: of the account itself), of one `?namespace=` or of all. Safe to repeat. */
export async function forgetMemory(plugins: RpcClient | undefined, accountId: string, query: Query): Promise<string> {
  const owner = ownerOf(accountId, query);
  const { deleted } = await installed(plugins).unary<MemoryRequest, DeletedResponse__Output>('DeleteMemory', owner, { deadlineMs: DEADLINE_MS });
  return renderJson({ object: 'memory', user: owner.user, deleted: true, count: deleted });
}
