import { expect, test } from '@jest/globals';
import { createFakeClock } from '@signalbox/testkit/clock';
import { callerWith, requestWith } from '../testing/callers.js';
import { createRecordedAnswer } from '../testing/recorded-answer.js';
import { answersWith, fails } from '../testing/scripts.js';
import { story } from '../testing/story.js';
import type { ChatRequest } from './chat-request.js';
import { conduct } from './conduct.js';
import { createMovedConversations } from './moved-conversations.js';

/** Turns of conversations with a plan of `a`, which fails at first, and then `b`: the home endpoint sent for each. */
function world() {
  const clock = createFakeClock();
  const { neighbours } = story({ a: fails('PROVIDER_ERROR'), b: answersWith('x') });
  const withMemory = { ...neighbours, moved: createMovedConversations(clock) };
  const turn = async (request: Partial<ChatRequest> = {}, account = 'acct_1'): Promise<string> => {
    const asked = neighbours.decided.length;
    const result = await conduct(withMemory, { requestId: 'chatcmpl-0123456789', caller: callerWith({ account: { id: account } }), request: requestWith({ promptText: 'Hi', ...request }), answer: createRecordedAnswer() });
    expect(result.result).toBe('answered');
    return neighbours.decided[asked]?.homeEndpointId ?? '';
  };
  return { clock, neighbours, turn };
}

test('a conversation belongs to the endpoint that answered its last turn, not to the one it was sent to', async () => {
  const { clock, neighbours, turn } = world();
  expect(await turn()).toBe('');
  expect(await turn()).toBe('b/m');
  clock.advance(300_000);
  expect(await turn()).toBe('b/m');
  neighbours.scripts.set('a', answersWith('y'));
  expect(await turn()).toBe('b/m');
  // The endpoint planned first answered that turn.
  expect(await turn()).toBe('');
});

test('nothing is known of another account, another conversation, or one whose cache has expired', async () => {
  const { clock, turn } = world();
  await turn({ session: 's' });
  expect(await turn({ session: 's' }, 'acct_2')).toBe('');
  expect(await turn({ session: 't' })).toBe('');
  expect(await turn({ session: 's' })).toBe('b/m');
  clock.advance(300_001);
  expect(await turn({ session: 's' })).toBe('');
});

test.each<[string, Partial<ChatRequest>]>([
  ['must not be kept', { zdr: true }],
  ['must not be collected', { dataCollection: 'deny' }],
  ['names its model', { promptText: '' }],
])('the endpoint of a conversation that %s is not remembered', async (_what, request) => {
  const { turn } = world();
  await turn(request);
  expect(await turn(request)).toBe('');
  expect(await turn()).toBe('');
});
