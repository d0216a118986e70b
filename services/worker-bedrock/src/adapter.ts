/** Adapter of Bedrock: Converse, signed for AWS. */
import { AwsV4Signer } from 'aws4fetch';
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import type { Clock } from '@signalbox/kernel/clock';
import type { Secret } from '@signalbox/runtime/secret';
import { classifyConverseRefusal } from '@signalbox/wires/bedrock-converse/errors';
import { FETCHED_TYPES } from '@signalbox/wires/bedrock-converse/media';
import { bedrockModel } from '@signalbox/wires/bedrock-converse/models';
import { TOOL_NAMES } from '@signalbox/wires/bedrock-converse/names';
import { draftConverse } from '@signalbox/wires/bedrock-converse/request';
import { readConverseAnswer } from '@signalbox/wires/bedrock-converse/response';
import { createConverseTransducer, type ConverseReading } from '@signalbox/wires/bedrock-converse/stream';
import { mayUnwrap } from '@signalbox/wires/json-tool';
import type { MediaLoader } from '@signalbox/worker-kit/media-loader';
import type { Composed, ProviderAdapter } from '@signalbox/worker-kit/provider';
import { readCredential, type BedrockCredential } from './credential.js';

export interface BedrockAdapterOptions {
  /** With the path; `/model/<id>/converse` is appended. */
  readonly baseUrl: string;
  /** The region that requests are signed for. */
  readonly region: string;
  readonly clock: Clock;
  readonly media: MediaLoader;
}

type KeyPair = BedrockCredential & { readonly kind: 'key-pair' };

/** Most derived keys kept: one for each key pair, also those of accounts. */
const KEYS_MAX = 1_000;

/** `20261121T165627Z` */
function amzDate(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/[:-]|\.\d{3}/g, '');
}

export function createBedrockAdapter({ baseUrl, region, clock, media }: BedrockAdapterOptions): ProviderAdapter {
  const url = new URL(baseUrl);
  const root = url.pathname.replace(/\/+$/, '');
  // Cache of the signer for derived keys, which are valid for a day; yesterday's are dropped.
  let day = '';
  let keys = new Map<string, ArrayBuffer>();
  const keysOf = (datetime: string): Map<string, ArrayBuffer> => {
    if (!datetime.startsWith(day) || day === '' || keys.size >= KEYS_MAX) {
      day = datetime.slice(0, 8);
      keys = new Map();
    }
    return keys;
  };

  const sign = async (path: string, headers: Readonly<Record<string, string>>, body: Buffer, { accessKeyId, secretAccessKey, sessionToken }: KeyPair): Promise<readonly string[]> => {
    const datetime = amzDate(clock.nowMs());
    const signer = new AwsV4Signer({
      method: 'POST',
      url: `${url.origin}${path}`,
      headers,
      body,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 'bedrock',
      region,
      cache: keysOf(datetime),
      datetime,
    });
    const signed = await signer.sign();
    return [...signed.headers].filter(([name]) => name !== 'host').flat();
  };

  const send = async (request: DispatchRequest__Output, secret: Secret | undefined, body: Buffer): Promise<Composed> => {
    // Ids contain colons and slashes; the encoded path is both sent and signed.
    const path = `${root}/model/${encodeURIComponent(request.providerModelId)}/${request.stream ? 'converse-stream' : 'converse'}${url.search}`;
    const headers = { 'content-type': 'application/json', accept: request.stream ? 'application/vnd.amazon.eventstream' : 'application/json' };
    const credential = secret === undefined ? undefined : readCredential(secret.unwrap());
    if (credential?.kind === 'key-pair') return { path, headers: await sign(path, headers, body, credential), body };
    return { path, headers: [...Object.entries(headers).flat(), ...(credential === undefined ? [] : ['authorization', `Bearer ${credential.key}`])], body };
  };

  const readingOf = (request: DispatchRequest__Output): ConverseReading => {
    const { claude, isOpenAi } = bedrockModel(request.providerModelId, request.model);
    return { seed: request.requestId.slice(-16), isUnwrapped: mayUnwrap(request), isClaude: claude !== undefined, isOpenAi, names: TOOL_NAMES.clientNames(request.fields) };
  };
  return {
    provider: 'amazon-bedrock',
    origin: url.origin,
    compose: async (request, secret, caller) => {
      const body = await media.compose(request, () => draftConverse(request), FETCHED_TYPES, (bytes) => bytes, caller);
      return Buffer.isBuffer(body) ? send(request, secret, body) : body;
    },
    createTransducer: (request) => createConverseTransducer(readingOf(request)),
    readAnswer: (body, request) => readConverseAnswer(body, readingOf(request)),
    classifyRefusal: classifyConverseRefusal,
  };
}
