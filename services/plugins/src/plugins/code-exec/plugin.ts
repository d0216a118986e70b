/** code-exec: a function with which the model runs programs in sandbox. */
import type { Plugin } from '@signalbox/plugin-kit/plugin';
import type { ProgramRun, Sandbox } from '../../domain/ports.js';
import { MANIFEST, type CodeExecOptions } from './manifest.js';

const TOOL = {
  name: 'code_exec',
  description:
    'Runs a JavaScript program and returns what it prints with console.log and the value of its last expression. The program has the language and nothing else: no network, files, modules, timers or Node.js. It keeps nothing between calls. It is stopped after 5 seconds, 128 MB or 64 KiB of output.',
  parameters: { type: 'object', properties: { code: { type: 'string', description: 'The program.' } }, required: ['code'], additionalProperties: false },
} as const;

/** The text about a run for the model. */
function report({ status, output, result, error }: ProgramRun): string {
  return JSON.stringify({ status, ...(output === '' ? {} : { output }), ...(result === '' ? {} : { result }), ...(error === '' ? {} : { error }) });
}

export function createCodeExec({ sandbox }: { readonly sandbox: Sandbox }): Plugin<CodeExecOptions> {
  return {
    manifest: MANIFEST,
    // Programs do not leave the gateway, and nothing of them is stored.
    allows: () => true,
    tools: () => [TOOL],
    runTool: async ({ requestId, accountId, options, arguments: given, signal }) => {
      const { code } = given;
      if (typeof code !== 'string' || code.trim() === '') return { content: "Error: the argument 'code' must be the text of a program.", isFailed: true, detail: { reason: 'bad_arguments' } };
      const run = await sandbox.run({ requestId, accountId, language: options.language, code, timeoutMs: options.timeout_ms }, signal);
      return { content: report(run), isFailed: run.status !== 'completed', detail: { status: run.status, output_chars: run.output.length + run.result.length } };
    },
  };
}
