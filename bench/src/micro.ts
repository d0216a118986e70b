/** Microbenchmarks in this process: the routing decision and one call over the Link. */
import type { AdmitRequest, AdmitResponse, AdmitResponse__Output } from '@signalbox/contracts/quota';
import { asNanoUsd, asPrice } from '@signalbox/kernel/money';
import { indexNames, namedCard, type Endpoint, type Model, type Snapshot } from '@signalbox/router-core/catalog';
import { decide } from '@signalbox/router-core/decide';
import { createQualityPredictor } from '@signalbox/router-core/quality';
import { parseArtefact, type QualityArtefact } from '@signalbox/router-core/quality-artefact';
import { TEXT_MAX } from '@signalbox/router-core/features';
import { plainRequest } from '@signalbox/router-core/request';
import { createRpcClient } from '@signalbox/rpc/client';
import { createRpcServer } from '@signalbox/rpc/server';
import { systemClock } from '@signalbox/runtime/clock';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { percentile } from './statistics.js';

const PROVIDERS = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'] as const;
const MODELS = 40;
const ARTEFACT = fileURLToPath(new URL('../../services/routing/quality/quality.bin', import.meta.url));
const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url));
/** Words that by themselves make another kind of task of a prompt: one that nothing was measured for. */
const OTHER_KINDS = /json|yaml|xml/gi;
const ANSWERS = '\nA. The first\nB. The second\nC. The third\nD. None of them\n';

/** The artefact that ships. Throws when the file is not one. */
function shippedArtefact(): QualityArtefact {
  const parsed = parseArtefact(readFileSync(ARTEFACT));
  if (parsed.kind === 'refused') throw new Error(parsed.problem);
  return parsed.artefact;
}

/** Texts of 8 KB that people wrote, each once as a question with lettered answers: the kind of task with the most to compute. */
function longPrompts(): string[] {
  const text = readdirSync(DOCS).filter((name) => name.endsWith('.md')).sort().map((name) => readFileSync(`${DOCS}${name}`, 'utf8')).join('\n').replaceAll(OTHER_KINDS, 'text');
  const whole = Array.from({ length: Math.floor(text.length / TEXT_MAX) }, (_, index) => text.slice(index * TEXT_MAX, (index + 1) * TEXT_MAX));
  return whole.flatMap((prompt) => [prompt, prompt.slice(0, TEXT_MAX - ANSWERS.length) + ANSWERS]);
}

/** Forty models at five providers each, all able and all observed; as many of them measured as the artefact knows. */
function snapshot(): Snapshot {
  const endpoints: Endpoint[] = [];
  const models: Model[] = [];
  for (let modelIndex = 0; modelIndex < MODELS; modelIndex += 1) {
    const model = `maker/m${String(modelIndex)}`;
    const own = PROVIDERS.map((provider, offset): Endpoint => {
      const id = `${provider}:${model}`;
      const price = asPrice(BigInt(100 + modelIndex * 50 + offset * 10) * 1_000_000n);
      const card = namedCard(id, { inputUncached: price, cacheRead: price, cacheWrite: price, outputText: price, outputReasoning: price, audio: price, image: price, requestNanoUsd: asNanoUsd(0n) });
      return {
        index: endpoints.length + offset, modelIndex, id, provider, model, providerModelId: model, wireProtocol: 'openai-chat', prices: [{ fromPromptTokens: 0, card }],
        maxTokensParam: 'max_tokens', contextWindow: 128_000, maxOutputTokens: 16_000,
        capabilities: { streaming: true, tools: true, forcedToolChoice: true, parallelToolCalls: true, jsonObject: true, jsonSchema: true, vision: true, fileInput: true, audioInput: true, logprobs: true, choices: true },
        unsupportedParams: new Set(), reasoningEfforts: [], hiddenReasoning: false, trainsOnData: false, zdrByDefault: true, zdr: true, quantizationBits: 16, temperatureMax: 2,
        firstByteTimeoutMs: 10_000, isServable: true, hasManagedCredential: true, takesByok: true, priorLatencyMsP75: 400, priorThroughputTpsP50: 60, sunsetDate: null,
      };
    });
    endpoints.push(...own);
    models.push({ index: modelIndex, id: model, ownedBy: 'maker', aliases: [], family: null, deprecationDate: null, isRetired: false, ability: 0.3 + modelIndex / 80, isSimulated: false, listPrices: [], endpoints: own });
  }
  const live = new Map(
    endpoints.map(({ id }, index) => [id, { samples: 50, latencyMsP75: 300 + index, totalMsP75: 900 + index, totalSamples: 50, throughputTpsP50: 60, throughputSamples: 50, successShare: 0.98, breaker: 'closed' as const }]),
  );
  const artefact = shippedArtefact();
  const predict = createQualityPredictor(artefact, models.map(({ ability }, index) => ({ measured: artefact.header.models[index]?.name, ability })));
  return { catalog: { id: 'cat_bench', models, endpoints, names: indexNames(models) }, live, quality: { id: artefact.id, predict } };
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

/** Microseconds of one decision over 200 endpoints with a prompt of 8 KB (about 2,000 tokens), from the text to the plan. */
export function timeDecision(model: string, rounds: number): Spread {
  const world = snapshot();
  const requests = longPrompts().map((promptText) => ({ ...plainRequest(model), promptTokens: 2_000, maxTokens: 500, promptText }));
  const samples: number[] = [];
  const warmUp = Math.floor(rounds / 4);
  for (let round = -warmUp; round < rounds; round += 1) {
    const request = requests[(round + warmUp) % requests.length] ?? plainRequest(model);
    const started = systemClock.monotonicMs();
    const result = decide(request, world, round + warmUp);
    const took = (systemClock.monotonicMs() - started) * 1_000;
    if (result.kind !== 'plan') throw new Error(`The bench's own catalog refused: ${result.kind}.`);
    if (round >= 0) samples.push(took);
  }
  return { p50: percentile(samples, 50), p99: percentile(samples, 99) };
}

export interface LinkFigures {
  /** µs of CPU per call, caller and server together, 64 calls in flight. */
  readonly cpuUsPerCall: number;
  /** Milliseconds of one call alone. */
  readonly alone: Spread;
}

/** One `Admit` with an empty answer, over loopback, both ends in this process. */
export async function timeLink(calls: number): Promise<LinkFigures> {
  const answer: AdmitResponse = { limitSource: 'bench' };
  const server = createRpcServer({ area: 'quota', handlers: { unary: { Admit: () => answer } }, host: '127.0.0.1', port: 0, clock: systemClock, log: silentLog });
  const port = await server.start();
  const client = createRpcClient({ area: 'quota', addresses: [`127.0.0.1:${String(port)}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 10_000 });
  const request: AdmitRequest = { requestId: 'req_0123456789abcdef', accountId: 'acct_0123456789abcdef', keyId: 'key_0123456789abcdef' };
  const call = (): Promise<AdmitResponse__Output> => client.unary<AdmitRequest, AdmitResponse__Output>('Admit', request);
  try {
    const alone: number[] = [];
    for (let round = -200; round < 1_000; round += 1) {
      const started = systemClock.monotonicMs();
      await call();
      if (round >= 0) alone.push(systemClock.monotonicMs() - started);
    }
    const before = process.cpuUsage();
    let left = calls;
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        while (left > 0) {
          left -= 1;
          await call();
        }
      }),
    );
    const { user, system } = process.cpuUsage(before);
    return { cpuUsPerCall: (user + system) / calls, alone: { p50: percentile(alone, 50), p99: percentile(alone, 99) } };
  } finally {
    await client.close();
    await server.stop(0);
  }
}
