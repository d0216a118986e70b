/** RPC client of sandbox. */
import type { RunRequest, RunResponse__Output } from '@signalbox/contracts/sandbox';
import type { RpcClient } from '@signalbox/rpc/call';
import type { Sandbox } from '../domain/ports.js';

export function createSandboxClient(client: RpcClient): Sandbox {
  return {
    run: async ({ requestId, accountId, language, code, timeoutMs }, signal) => {
      const { status, output, result, error } = await client.unary<RunRequest, RunResponse__Output>('Run', { requestId, accountId, language, code, timeoutMs }, { requestId, signal });
      return { status: status.toLowerCase(), output, result, error };
    },
  };
}
