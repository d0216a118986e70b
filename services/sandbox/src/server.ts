/** RPC handlers of sandbox: run a program and return how it ended. Nothing of a program is logged. */
import type { RunRequest__Output, RunResponse } from '@signalbox/contracts/sandbox';
import type { Clock } from '@signalbox/kernel/clock';
import type { CallInfo, Handlers } from '@signalbox/rpc/call';
import type { ProgramQueue } from './domain/queue.js';
import type { SandboxMetrics } from './metrics.js';

export function createHandlers({ queue, clock, metrics }: { readonly queue: ProgramQueue; readonly clock: Clock; readonly metrics: SandboxMetrics }): Handlers {
  return {
    unary: {
      Run: async ({ accountId, language, code, timeoutMs }: RunRequest__Output, call: CallInfo): Promise<RunResponse> => {
        const startedMs = clock.monotonicMs();
        const leaving: (() => void)[] = [];
        call.onAbort(() => {
          for (const listener of leaving) listener();
        });
        const { status, output, result, error } = await queue.submit({ accountId, language, code, timeoutMs, onAbort: (listener) => leaving.push(listener) });
        const wallMs = Math.round(clock.monotonicMs() - startedMs);
        metrics.ran(status.toLowerCase(), wallMs / 1_000);
        return { status, output, result, error };
      },
    },
  };
}
