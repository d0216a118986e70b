/** Requests whose model calls plugins' tools, with workers that play its answer in each round. */
import type { PrepareRequest, PrepareResponse__Output, RunToolRequest, Tool__Output } from '@signalbox/contracts/plugins';
import type { ManifestRecord } from '@signalbox/plugin-kit/manifest';
import type { ChatRequest } from '../domain/chat-request.js';
import { conduct, type Neighbours } from '../domain/conduct.js';
import { withMessages } from '../routes/chat-completions/with-messages.js';
import { callerWith, plannedAt, planWith, requestWith } from './callers.js';
import { createFakeNeighbours, events, type FakeNeighbours, type PlayedCall } from './neighbours.js';
import { createRecordedAnswer } from './recorded-answer.js';

const CODE_EXEC: ManifestRecord = { id: 'code-exec', name: '', description: '', paid: false, kind: 'tool', fee_nano_usd: '0', zdr: true, data_collection_deny: true, options: {} };
const MESSAGES = '[{"role":"user","content":"compute"}]';
export const TOOL = '{"type":"function","function":{"name":"code_exec","parameters":{"type":"object"}}}';

export type Call = { readonly id: string; readonly name: string; readonly arguments: string };
export const ours = (id = 'call_1'): Call => ({ id, name: 'code_exec', arguments: '{"code":"6*7"}' });
export const theirs: Call = { id: 'call_9', name: 'get_weather', arguments: '{"city":"Oslo"}' };
export const wire = ({ id, name, arguments: text }: Call) => ({ id, type: 'function', function: { name, arguments: text } });

export const calling = (...calls: readonly Call[]) => [
  { event: 'body' as const, body: { choices: Buffer.from(JSON.stringify([{ index: 0, message: { role: 'assistant', content: null, refusal: null, tool_calls: calls.map(wire) }, logprobs: null, finish_reason: 'tool_calls' }])), systemFingerprint: '', serviceTier: '' } },
  events.end({ finishReason: 'tool_calls' }),
];
export const chunkOf = (delta: object, reason: string | null = null) => ({ event: 'chunk' as const, chunk: { choices: Buffer.from(JSON.stringify([{ index: 0, delta, logprobs: null, finish_reason: reason }])), content: reason === null, finish: reason !== null } });
export const streaming = (...calls: readonly Call[]) => [
  events.role(),
  ...calls.flatMap(({ id, name, arguments: text }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    chunkOf({ tool_calls: [{ index, function: { arguments: text } }] }),
  ]),
  chunkOf({}, 'tool_calls'),
  events.end({ finishReason: 'tool_calls' }),
];
export const saying = () => [events.body('It is 42.'), events.end()];

export interface Setting {
  readonly request?: Partial<ChatRequest>;
  readonly tools?: string;
  readonly roundsMax?: number;
  /** The model's answer in each round; the last one repeats. */
  readonly rounds: readonly ((call: PlayedCall) => void)[];
  readonly runTool?: (request: RunToolRequest, signal: AbortSignal) => Promise<unknown>;
  readonly providers?: readonly string[];
  /** Tools beside code_exec. */
  readonly offered?: readonly Tool__Output[];
}

/** Services whose plugins offer code_exec and `offered`; `ran` gets the calls that run. */
export function withTools(fake: FakeNeighbours, ran: RunToolRequest[], { roundsMax = 8, runTool, offered = [] }: Partial<Pick<Setting, 'roundsMax' | 'offered'>> & { readonly runTool?: Setting['runTool'] | undefined } = {}): Neighbours {
  const prepared: PrepareResponse__Output = { problem: null, messages: Buffer.alloc(0), stages: [], citations: [], files: [], observes: false, tools: [{ name: 'code_exec', definition: Buffer.from(TOOL), feeNanoUsdMax: '0', imagesMax: 0 }, ...offered], toolRoundsMax: roundsMax };
  return Object.assign(fake, {
    withMessages,
    plugins: {
      manifests: () => Promise.resolve(new Map([['code-exec', CODE_EXEC]])),
      prepare: (_asked: PrepareRequest) => Promise.resolve(prepared),
      runTool: (asked: RunToolRequest, signal: AbortSignal) => {
        ran.push(asked);
        return (runTool?.(asked, signal) ?? Promise.resolve({ content: '{"result":"42"}', stage: { name: 'code-exec', plugin: 'code-exec', status: 'completed', durationMs: 3, feeNanoUsd: '0', boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) }, images: [] })) as never;
      },
      observe: () => undefined,
    },
  });
}

export function story({ request = {}, tools, roundsMax = 8, rounds, runTool, providers = ['a'], offered = [] }: Setting) {
  const fake = createFakeNeighbours(planWith(providers.map((provider) => plannedAt(provider))));
  let played = 0;
  for (const provider of providers) fake.scripts.set(provider, (call) => rounds[Math.min(played++, rounds.length - 1)]?.(call));
  const ran: RunToolRequest[] = [];
  const neighbours = withTools(fake, ran, { roundsMax, runTool, offered });
  const answer = createRecordedAnswer();
  const fields = [{ name: 'messages', value: Buffer.from(MESSAGES) }, ...(tools === undefined ? [] : [{ name: 'tools', value: Buffer.from(tools) }]), ...(request.fields ?? [])];
  const turn = { requestId: 'chatcmpl-0123456789', caller: callerWith(), answer, request: requestWith({ pluginIds: ['code-exec'], promptBytes: 100, messageCount: 1, ...request, fields }) };
  const sent = (at: number, name: string): unknown => {
    const field = fake.calls[at]?.request.fields?.find((one) => one.name === name);
    return field === undefined ? undefined : (JSON.parse(Buffer.from(field.value as Uint8Array).toString('utf8')) as unknown);
  };
  return { fake, answer, ran, sent, turn, neighbours, run: () => conduct(neighbours, turn) };
}
