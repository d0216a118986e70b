import { expect, test } from '@jest/globals';
import { createMemoryBus } from '@signalbox/bus/memory';
import type { AttemptsObserved, AttemptsObserved__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import { silentLog } from '@signalbox/runtime/log';
import { createFakeClock } from '@signalbox/testkit/clock';
import { until } from '@signalbox/testkit/until';
import { createLiveStats } from '../domain/live-stats.js';
import { listenToAttempts } from './attempt-events.js';

test('answers of `auto` are heard by their decisions, whatever the endpoint; a message that cannot be read is skipped', async () => {
  const clock = createFakeClock();
  const bus = createMemoryBus({ clock });
  const heard: string[] = [];
  const subscription = await listenToAttempts(bus, { live: createLiveStats(clock, () => undefined), exploration: { hearAnswer: (id) => void heard.push(id) } }, silentLog);
  const codec = messageCodec<AttemptsObserved, AttemptsObserved__Output>('signalbox.events.v1.AttemptsObserved');
  bus.announce('attempts.v1.openai', Buffer.from([0xff]));
  bus.announce('attempts.v1.openai', codec.encode({ attempts: [{ endpointId: 'e1', ok: true, autoDecisionId: 'dec_1' }, { endpointId: 'e1', ok: true }, { endpointId: 'e2', ok: true, autoDecisionId: 'dec_2' }] }));
  await until(() => heard.length === 2);
  expect(heard).toEqual(['dec_1', 'dec_2']);
  await subscription.stop();
  await bus.close();
});
