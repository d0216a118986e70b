/** What a request becomes on the wire, in a test. */
import type { JsonObject } from '../../canonical.js';
import type { FetchedMedia } from '../../media.js';
import { ANTHROPIC, draftMessages, type MessagesQuirks } from '../request.js';

export const OLDER = 'claude-3-5-haiku-20241022';
export const BUDGET = 'claude-sonnet-4-5-20250929';
export const ADAPTIVE = 'claude-opus-4-7';
export const NEWEST = 'claude-sonnet-5';
export const HELLO = [{ role: 'user', content: 'Hi' }];
export const TOOL = { type: 'function', function: { name: 'f', description: 'Does f.', parameters: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } } };
export const call = (id: string, name: string, args: string): object => ({ id, type: 'function', function: { name, arguments: args } });

export interface Sent {
  readonly model?: string;
  readonly stream?: boolean;
  readonly maxTokens?: number;
  readonly promptTokens?: number;
  readonly contextWindow?: number;
  readonly quirks?: MessagesQuirks;
  readonly fetched?: FetchedMedia;
}

export function body(fields: Readonly<Record<string, unknown>>, { model = OLDER, stream = false, maxTokens, promptTokens = 0, contextWindow = 0, quirks = ANTHROPIC, fetched = new Map() }: Sent = {}): JsonObject {
  const input = { providerModelId: model, stream, maxTokens, promptTokens, contextWindow, maxOutputTokens: 64_000, temperatureMax: 1, fields: Object.entries({ messages: HELLO, ...fields }).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })) };
  return JSON.parse(draftMessages(input, quirks).body(fetched).toString()) as JsonObject;
}
