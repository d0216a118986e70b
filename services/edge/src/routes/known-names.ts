/** Checks names in settings before they are saved, since a misspelt restriction would have no effect without anyone noticing. */
import type { KeyAnswer__Output, KeyRef } from '@signalbox/contracts/accounts';
import type { SettingNames, SettingNames__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { createModelNames, listName, type ModelNames } from '@signalbox/kernel/model-lists';
import type { RpcClient } from '@signalbox/rpc/call';
import { readManifests } from './plugins/manifests.js';

export interface NamedField {
  /** The client's name of the field, such as `limits.allowed_models`. */
  readonly field: string;
  readonly names: readonly string[] | null | undefined;
  /** Names that the setting already has: they are accepted, even if the catalog no longer has them. */
  readonly kept?: readonly string[] | undefined;
}

/** At most one field of each kind. `models`: single models, named as in a request. */
export type NamedFields = Readonly<Partial<Record<keyof SettingNames__Output, NamedField>>>;

export interface UnknownName {
  readonly field: string;
  readonly message: string;
}

/** The first unknown name, if any. Rejects with a Fault, such as `routing_unavailable`, if names cannot be checked. */
export type NameCheck = (named: NamedFields, requestId?: string) => Promise<UnknownName | undefined>;

const DEADLINE_MS = 5_000;
const HINTS: Readonly<Record<keyof SettingNames__Output, string>> = {
  allowModels: 'is the name of no single model; in full it is `maker/model`, and `maker/*` is all of one maker',
  denyModels: 'is the name of no model; in full it is `maker/model`, and `maker/*` is all of one maker',
  allowProviders: 'is the name of no provider',
  denyProviders: 'is the name of no provider',
  models: 'is the name of no model',
};

function newNames({ names, kept = [] }: NamedField): string[] {
  const known = new Set(kept.map(listName));
  return (names ?? []).filter((name) => !known.has(listName(name)));
}

/** `plugins`: absent = no plugins are installed. */
export function createNameCheck(routing: RpcClient, plugins?: RpcClient): NameCheck {
  const ask = async (names: SettingNames, requestId: string | undefined): Promise<SettingNames__Output> => {
    try {
      return await routing.unary<SettingNames, SettingNames__Output>('UnknownNames', names, { deadlineMs: DEADLINE_MS, ...(requestId === undefined ? {} : { requestId }) });
    } catch (error) {
      throw error instanceof Fault && error.code === 'internal_error' ? error : new Fault('routing_unavailable', 'routing did not answer', { cause: error });
    }
  };
  /** Models that only plugins use, such as those that make images, are not in routing's catalog. */
  const modelsOfPlugins = async (): Promise<ModelNames> => createModelNames(plugins === undefined ? [] : (await readManifests(plugins)).flatMap(({ models = [] }) => models));
  const withPlugins = async (unknown: SettingNames__Output): Promise<SettingNames__Output> => {
    const { allowModels = [], denyModels = [] } = unknown;
    if (allowModels.length === 0 && denyModels.length === 0) return unknown;
    const names = await modelsOfPlugins();
    return { ...unknown, allowModels: names.unknown(allowModels, 'allow'), denyModels: names.unknown(denyModels, 'deny') };
  };
  return async (named, requestId) => {
    const fields = Object.entries(named) as [keyof SettingNames__Output, NamedField][];
    const asked = fields.map(([kind, field]) => [kind, newNames(field)] as const).filter(([, names]) => names.length > 0);
    if (asked.length === 0) return undefined;
    const unknown = await withPlugins(await ask(Object.fromEntries(asked), requestId));
    for (const [kind, { field }] of fields) {
      const [name] = unknown[kind];
      if (name !== undefined) return { field, message: `${field}: ${JSON.stringify(name)} ${HINTS[kind]}.` };
    }
    return undefined;
  };
}

/**
 * For a query of usage that found nothing: the error if its provider does not exist. Names with rows are not checked, since
 * the catalog may no longer have them. Undefined while routing is away, so that the empty list is sent.
 */
export async function unknownProvider(check: NameCheck, provider: string, requestId?: string): Promise<UnknownName | undefined> {
  if (provider === '') return undefined;
  try {
    return await check({ allowProviders: { field: 'provider', names: [provider] } }, requestId);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** For a query of usage that found nothing: true if the account (empty = any account) has no such key. False while accounts is away, so that the empty list is sent. */
export async function isUnknownKey(accounts: RpcClient, ref: { readonly accountId: string; readonly keyId: string }, requestId?: string): Promise<boolean> {
  if (ref.keyId === '') return false;
  try {
    const { found } = await accounts.unary<KeyRef, KeyAnswer__Output>('GetKey', ref, { deadlineMs: DEADLINE_MS, ...(requestId === undefined ? {} : { requestId }) });
    return !found;
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

/** Does not repeat the given value, which may be a key's secret. */
export const UNKNOWN_KEY = 'key must be the id of a key (key_…), not its name or its secret.';
