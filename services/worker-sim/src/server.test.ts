import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { systemClock } from '@signalbox/runtime/clock';
import { simulate, type Simulated } from './domain/answer.js';
import { createSimulatorServer, piecesToldOf } from './server.js';

const STARTED = 'http.server.request.start';

test('a stream that waits for its reader repeatedly leaves no listeners behind', async () => {
  const served: ServerResponse[] = [];
  const onStarted = (message: unknown): void => void served.push((message as { response: ServerResponse }).response);
  subscribe(STARTED, onStarted);
  const simulator = createSimulatorServer(systemClock);
  const port = await simulator.start();
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST' }, resolve).on('error', reject).end(JSON.stringify({ model: 'sim-fast', stream: true, messages: [{ role: 'user', content: '[sim:tokens=200000]' }] }));
    });
    let waits = 0;
    let bytes = 0;
    let most = 0;
    for await (const part of answer as AsyncIterable<Buffer>) {
      bytes += part.length;
      for (const response of served) {
        if (response.listenerCount('drain') > 0) waits += 1;
        most = Math.max(most, response.listenerCount('close'));
      }
    }
    expect(bytes).toBeGreaterThan(8_000_000);
    expect(waits).toBeGreaterThan(0);
    expect(most).toBeLessThan(5);
  } finally {
    unsubscribe(STARTED, onStarted);
    await simulator.stop();
  }
});

test('log probabilities of a stream are computed as it is sent, not before it begins', () => {
  const plain = simulate({ messages: [{ role: 'user', content: '[sim:tokens=16000]' }], logprobs: true, top_logprobs: 20 });
  let workedOut = 0;
  const simulated: Simulated = {
    ...plain,
    get alternatives() {
      workedOut += 1;
      return plain.alternatives;
    },
  };
  const [choice] = plain.choices;
  if (choice === undefined) throw new Error('no choice');
  const [first] = piecesToldOf(choice, simulated);
  expect([first?.logprobs?.content.length, workedOut]).toEqual([4, 1]);
});
