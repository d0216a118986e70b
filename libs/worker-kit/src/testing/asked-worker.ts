/** Test helper: starts a composed worker with a journal that stores nothing, and calls it over its real listener. */
import type { Bus } from '@signalbox/bus/bus';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { DispatchEvent__Output, DispatchRequest } from '@signalbox/contracts/worker';
import { createRpcClient } from '@signalbox/rpc/client';
import type { Clock } from '@signalbox/kernel/clock';
import { systemClock } from '@signalbox/runtime/clock';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { silentLog } from '@signalbox/runtime/log';
import { randomBytes } from '@signalbox/runtime/random';
import type { Journal } from '../journal.js';

export interface AskedWorker {
  /** Dispatches a request with the client's `fields` and resolves with all events. Streamed unless `over` says otherwise. */
  ask(fields: Readonly<Record<string, unknown>>, over?: DispatchRequest): Promise<readonly DispatchEvent__Output[]>;
  stop(): Promise<void>;
}

export interface WorkerSurroundings {
  readonly surroundings: Surroundings;
  readonly options: { readonly bus: Bus; readonly journal: Journal };
}

export const FORGETFUL: Journal = {
  start: () => Promise.resolve(),
  checkpoint: () => undefined,
  end: () => Promise.resolve(),
  outcome: () => undefined,
  tend: () => undefined,
  state: () => ({ writer: 'wrt_1', lastSeq: 0, shippedSeq: 0, ledgerSeq: 0 }),
};

/** Settings with addresses at which nobody answers. */
export const NO_NEIGHBOURS = { WAL_DIR: '/nonexistent', QUOTA_ADDRS: '127.0.0.1:1', BILLING_ADDRS: '127.0.0.1:1' } as const;

/** `shared`: a bus that several replicas share, or a fake clock. */
export async function startAskedWorker(compose: (around: WorkerSurroundings) => Service, shared: { readonly bus?: Bus; readonly clock?: Clock } = {}): Promise<AskedWorker> {
  const { clock = systemClock, bus = createMemoryBus({ clock }) } = shared;
  const service = compose({ surroundings: { clock, randomBytes, log: silentLog, withProcessMetrics: false }, options: { bus, journal: FORGETFUL } });
  await service.start();
  const client = createRpcClient({ area: 'worker', addresses: [`127.0.0.1:${String(service.ports()['grpc'])}`], door: 'link', clock: systemClock, randomBytes, defaultDeadlineMs: 60_000 });
  let asked = 0;
  return {
    ask: (fields, over = {}) => {
      asked += 1;
      // A new endpoint each time, so that failures that a test provokes open no breaker for the next dispatch.
      const request: DispatchRequest = {
        requestId: `chatcmpl-asked-worker-${String(asked)}`, attempt: 1, accountId: 'acct_1', keyId: 'key_1', endpointId: `endpoint-${String(asked)}`, model: 'm', provider: 'p', providerModelId: 'm',
        card: { id: 'c', inputUncached: '1000000', cacheRead: '500000', outputText: '2000000', outputReasoning: '2000000' }, periods: { day: '2026-01-01' }, heldNanoUsd: '0',
        stream: true, clientStream: true, promptTokens: 20, maxOutputTokens: 4_096, firstByteTimeoutMs: 60_000,
        fields: Object.entries(fields).map(([name, value]) => ({ name, value: Buffer.from(JSON.stringify(value)) })),
        ...over,
      };
      return new Promise((resolve, reject) => {
        const events: DispatchEvent__Output[] = [];
        client.stream<DispatchRequest, DispatchEvent__Output>('Dispatch', request, { onMessage: (event) => events.push(event), onEnd: (fault) => (fault === undefined ? resolve(events) : reject(fault)) });
      });
    },
    stop: async () => {
      await client.close();
      await service.stop();
    },
  };
}

/** Concatenated content of all chunks. */
export function contentOf(events: readonly DispatchEvent__Output[]): string {
  const choices = events.flatMap((event) => (event.chunk ? (JSON.parse(event.chunk.choices.toString()) as { delta: { content?: string | null } }[]) : []));
  return choices.map((choice) => choice.delta.content ?? '').join('');
}

export interface GatheredAnswer {
  content: string;
  reasoning_content: string;
  reasoning_details: unknown[];
  tool_calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
  finish_reason: string;
}

interface CanonicalMessage {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly unknown[];
  readonly tool_calls?: readonly { readonly index?: number; readonly id?: string; readonly function?: { readonly name?: string; readonly arguments?: string } }[];
}

/** The answer as a client would assemble it, streamed or whole; one choice. */
export function answerOf(events: readonly DispatchEvent__Output[]): GatheredAnswer {
  const answer: GatheredAnswer = { content: '', reasoning_content: '', reasoning_details: [], tool_calls: [], finish_reason: '' };
  const choices = events.flatMap((event) => JSON.parse(String(event.chunk?.choices ?? event.body?.choices ?? '[]')) as { delta?: CanonicalMessage; message?: CanonicalMessage; finish_reason: string | null }[]);
  for (const { delta, message, finish_reason: reason } of choices) {
    const told = delta ?? message ?? {};
    answer.content += told.content ?? '';
    answer.reasoning_content += told.reasoning_content ?? '';
    answer.reasoning_details.push(...(told.reasoning_details ?? []));
    (told.tool_calls ?? []).forEach((call, position) => {
      const known = (answer.tool_calls[call.index ?? position] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
      known.id ||= call.id ?? '';
      known.function.name ||= call.function?.name ?? '';
      known.function.arguments += call.function?.arguments ?? '';
    });
    answer.finish_reason = reason ?? answer.finish_reason;
  }
  return answer;
}
