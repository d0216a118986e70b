import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import type { ProgramRun } from '../../domain/ports.js';
import { createRegistry } from '../../domain/registry.js';
import { createRunner } from '../../domain/run.js';
import { createCodeExec } from './plugin.js';

const RUN: ProgramRun = { status: 'completed', output: '', result: '42', error: '' };

function setUp(answer: () => Promise<ProgramRun> = () => Promise.resolve(RUN)) {
  const programs: { code: string; timeoutMs: number }[] = [];
  const sandbox = { run: ({ code, timeoutMs }: { readonly code: string; readonly timeoutMs: number }) => (programs.push({ code, timeoutMs }), answer()) };
  const runner = createRunner({ registry: createRegistry([createCodeExec({ sandbox })], new Map([['code-exec', 700n]])), clock: createFakeClock(), onStage: () => undefined });
  const asked = (options: Readonly<Record<string, unknown>> = {}) => ({ requestId: 'r', accountId: 'a', user: '', wishes: [{ id: 'code-exec', options }], messages: [{ role: 'user', content: 'go' }], policy: { zdr: true, denyTraining: true } });
  const call = (text: string, options = {}) => runner.runTool(asked(options), { name: 'code_exec', arguments: text }, { byok: false, ownCredentials: [] }, new AbortController().signal);
  return { programs, runner, asked, call };
}

test('offers one function, changes no message, and bounds the rounds', async () => {
  const { runner, asked } = setUp();
  const prepared = await runner.prepare(asked({ max_rounds: 3 }), new AbortController().signal);
  expect(prepared).toMatchObject({ kind: 'prepared', messages: undefined, stages: [], tools: [{ name: 'code_exec' }], toolRoundsMax: 3 });
  expect(await runner.prepare(asked(), new AbortController().signal)).toMatchObject({ toolRoundsMax: 8 });
});

test.each([{ timeout_ms: 5_001 }, { timeout_ms: 0 }, { max_rounds: 9 }, { language: 'python' }, { unknown: 1 }])('refuses %j, naming it', async (options) => {
  const { runner, asked } = setUp();
  expect(await runner.prepare(asked(options), new AbortController().signal)).toMatchObject({ kind: 'problem', problem: { kind: 'invalid', param: `plugin_options.code-exec.${Object.keys(options)[0] ?? ''}` } });
});

test('runs a program within the time the client set; what it computed goes to the model, its fee into the stage', async () => {
  const { programs, call } = setUp();
  const { content, stage } = await call('{"code":"6*7"}', { timeout_ms: 900 });
  expect([JSON.parse(content), programs]).toEqual([{ status: 'completed', result: '42' }, [{ code: '6*7', timeoutMs: 900 }]]);
  expect(stage).toMatchObject({ name: 'code-exec', status: 'completed', feeNanoUsd: 700n, detail: { status: 'completed' } });
});

test('a program that was stopped is reported to the model, without a fee', async () => {
  const { call } = setUp(() => Promise.resolve({ status: 'timed_out', output: 'so far', result: '', error: 'The program was stopped.' }));
  const { content, stage } = await call('{"code":"while(1);"}');
  expect(JSON.parse(content)).toEqual({ status: 'timed_out', output: 'so far', error: 'The program was stopped.' });
  expect(stage).toMatchObject({ status: 'failed', feeNanoUsd: 0n, detail: { status: 'timed_out' } });
});

test.each([
  ['broken arguments', '{"code":', 'Error: the arguments are no JSON object.'],
  ['no program', '{}', "Error: the argument 'code' must be the text of a program."],
  ['a program that is no text', '{"code":["x"]}', "Error: the argument 'code' must be the text of a program."],
])('%s are reported to the model, and nothing runs', async (_what, text, expected) => {
  const { programs, call } = setUp();
  expect((await call(text)).content).toBe(expected);
  expect(programs).toEqual([]);
});

test('a sandbox that is away is reported to the model', async () => {
  const { call } = setUp(() => Promise.reject(new Error('away')));
  expect(await call('{"code":"1"}')).toMatchObject({ content: 'Error: the tool could not be run (internal).', stage: { status: 'failed', detail: { reason: 'internal' } } });
});
