/** Calls a service chosen by the operator, which answers with one JSON object. */
import { isObject, type JsonObject } from '@signalbox/kernel/json-object';
import { PluginFailure } from '@signalbox/plugin-kit/plugin';
import { request } from '@signalbox/runtime/http-client';

const REFUSAL_BYTES_MAX = 16_384;

export interface JsonQuestion {
  /** Prefix of failure names. */
  readonly who: 'backend' | 'catalog';
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Longest time without data. */
  readonly timeoutMs: number;
  readonly bytesMax: number;
}

/** Rejects with a PluginFailure: `<who>_unreachable`, `_refused`, `_rate_limited`, `_answer_too_large` or `_answer_unreadable`. Follows no redirect. */
export async function askJson({ who, url, method = 'GET', headers, body: sent, signal, timeoutMs, bytesMax }: JsonQuestion): Promise<JsonObject> {
  const parts: Buffer[] = [];
  try {
    const { statusCode, body } = await request(url, {
      method, headers: { accept: 'application/json', 'user-agent': 'signalbox', ...headers }, ...(sent === undefined ? {} : { body: sent }), signal, headersTimeout: timeoutMs, bodyTimeout: timeoutMs,
    });
    if (statusCode !== 200) {
      await body.dump({ limit: REFUSAL_BYTES_MAX });
      throw new PluginFailure(statusCode === 429 ? `${who}_rate_limited` : `${who}_refused`);
    }
    let size = 0;
    for await (const part of body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > bytesMax) throw new PluginFailure(`${who}_answer_too_large`);
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof PluginFailure ? error : new PluginFailure(`${who}_unreachable`);
  }
  try {
    const parsed: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
    if (isObject(parsed)) return parsed;
  } catch {
    // Reported below.
  }
  throw new PluginFailure(`${who}_answer_unreadable`);
}
