import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog, type Log, type LogFields } from '@signalbox/runtime/log';
import { startDoor, type Door } from '../../testing/door.js';
import { events } from '../../testing/neighbours.js';
import { createAccessLog } from './access-log.js';

const lines: LogFields[] = [];
const log: Log = { ...silentLog, info: (_text, fields = {}) => void lines.push(fields) };

let door: Door;
const open = async (perMille: number): Promise<void> => {
  door = await startDoor({ accessLog: createAccessLog(log, perMille) });
  door.neighbours.scripts.set('a', (call) => call.play(events.head(), events.body('an answer'), events.end()));
};
const ask = async (body: object): Promise<Response> => {
  const response = await door.chat(body);
  await response.text();
  return response;
};
const hello = { model: 'auto', messages: [{ role: 'user', content: 'a prompt' }] };

beforeEach(() => void lines.splice(0));
afterEach(() => door.stop());

test('a request leaves a line without any of its text', async () => {
  await open(1_000);
  const answered = await ask(hello);
  const refused = await ask({ model: 'auto' });
  expect(lines).toEqual([
    expect.objectContaining({ request_id: answered.headers.get('x-request-id'), status: 200, result: 'answered', attempts: 1, provider: 'a', account_id: expect.stringMatching(/^acct_/) as unknown, duration_ms: expect.any(Number) as unknown }),
    expect.objectContaining({ request_id: refused.headers.get('x-request-id'), status: 400, result: undefined, provider: undefined }),
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/a prompt|an answer|sbx_/);
});

test.each([[250, 2], [1, 0], [0, 0]])('with %d in a thousand, eight requests leave %d lines', async (perMille, expected) => {
  await open(perMille);
  for (let i = 0; i < 8; i += 1) await ask(hello);
  expect(lines).toHaveLength(expected);
});
