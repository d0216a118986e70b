/** What every bus guarantees; run against each transport by its own test file. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { until } from '@signalbox/testkit/until';
import type { Bus, BusMessage, Subscription, Verdict } from './bus.js';

const text = (message: BusMessage): string => Buffer.from(message.payload).toString('utf8');
const bytes = (value: string): Uint8Array => Buffer.from(value, 'utf8');

let unique = 0;
function fresh(name: string): { subject: string; durable: string } {
  unique += 1;
  const token = `${name}-${process.pid}-${unique}`;
  return { subject: `usage.v1.${token}`, durable: token };
}

export function busSuite(name: string, open: () => Promise<Bus>): void {
  describe(`${name} bus`, () => {
    let bus: Bus;
    const subscriptions: Subscription[] = [];
    beforeAll(async () => {
      bus = await open();
    }, 30_000);
    afterEach(async () => {
      await Promise.all(subscriptions.splice(0).map((subscription) => subscription.stop()));
    });
    afterAll(() => bus.close());

    const consume = async (at: { subject: string; durable: string }, handler: (messages: readonly BusMessage[]) => Promise<readonly Verdict[]>, batchMessagesMax = 100): Promise<Subscription> => {
      const subscription = await bus.consume({ ...at, batchMessagesMax, batchWaitMs: 5 }, handler);
      subscriptions.push(subscription);
      return subscription;
    };

    test('delivers what was published before the consumer came, in order', async () => {
      const at = fresh('early');
      for (const value of ['a', 'b', 'c']) await bus.publish(at.subject, bytes(value));
      const seen: string[] = [];
      await consume(at, (messages) => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      });
      await until(() => seen.length >= 3);
      expect(seen).toEqual(['a', 'b', 'c']);
    });

    test('says how many messages wait, those in work included', async () => {
      const at = fresh('lag');
      let release: (() => void) | undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      let isInWork = false;
      const subscription = await consume(at, async (messages) => {
        isInWork = true;
        await held;
        return messages.map(() => 'done');
      }, 1);
      for (const value of ['a', 'b', 'c']) await bus.publish(at.subject, bytes(value));
      await until(() => isInWork);
      expect(await subscription.lag?.()).toBe(3);
      release?.();
      let left = await subscription.lag?.();
      while (left !== 0) left = await subscription.lag?.();
      expect(left).toBe(0);
    });

    test('delivers a message again until it is done, counting deliveries', async () => {
      const at = fresh('again');
      const deliveries: number[] = [];
      await consume(at, (messages) => {
        deliveries.push(...messages.map((message) => message.deliveries));
        return Promise.resolve(messages.map(() => (deliveries.length < 3 ? 'again' : 'done')));
      });
      await bus.publish(at.subject, bytes('x'));
      await until(() => deliveries.length >= 3);
      expect(deliveries).toHaveLength(3);
      // A server may tell 1 of one that comes again: BusMessage.
      for (const [index, count] of deliveries.entries()) expect([1, index + 1]).toContain(count);
    });

    test('takes a rejected handler as again for the whole batch', async () => {
      const at = fresh('rejects');
      const done: string[] = [];
      let isFirst = true;
      await consume(at, (messages) => {
        if (isFirst) {
          isFirst = false;
          return Promise.reject(new Error('not now'));
        }
        done.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      });
      await bus.publish(at.subject, bytes('a'));
      await until(() => done.length >= 1);
      expect(done).toEqual(['a']);
    });

    test('moves poison to the dead-letter subject and goes on', async () => {
      const at = fresh('poison');
      const seen: string[] = [];
      const dead: string[] = [];
      await consume(at, (messages) => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map((message) => (text(message) === 'bad' ? 'poison' : 'done')));
      });
      await consume({ subject: `dlq.v1.${at.subject}`, durable: `${at.durable}-dlq` }, (messages) => {
        dead.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      });
      await bus.publish(at.subject, bytes('bad'));
      await bus.publish(at.subject, bytes('good'));
      await until(() => dead.length >= 1 && seen.includes('good'));
      expect(dead).toEqual(['bad']);
      expect(seen.filter((value) => value === 'bad')).toHaveLength(1);
    });

    test('hands no more than the batch limit at once and one batch at a time', async () => {
      const at = fresh('batches');
      for (let index = 0; index < 25; index += 1) await bus.publish(at.subject, bytes(String(index)));
      let inWork = 0;
      let count = 0;
      const sizes: number[] = [];
      await consume(
        at,
        async (messages) => {
          inWork += 1;
          expect(inWork).toBe(1);
          sizes.push(messages.length);
          await new Promise<void>((resolve) => setImmediate(resolve));
          count += messages.length;
          inWork -= 1;
          return messages.map(() => 'done' as const);
        },
        10,
      );
      await until(() => count >= 25);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(10);
      expect(count).toBe(25);
    });

    test('hands a lone message out without waiting for others', async () => {
      const at = fresh('lone');
      const seen: string[] = [];
      // A wait that ends after the test's own time-out.
      subscriptions.push(await bus.consume({ ...at, batchMessagesMax: 100, batchWaitMs: 600_000 }, (messages) => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      }));
      await bus.publish(at.subject, bytes('lone'));
      await until(() => seen.length > 0);
      expect(seen).toEqual(['lone']);
    });

    test('hands out full batches without waiting, so that what lies behind many messages waits for none of them', async () => {
      const at = fresh('full');
      for (let index = 0; index < 25; index += 1) await bus.publish(at.subject, bytes(String(index)));
      const sizes: number[] = [];
      // A wait that ends after the test's own time-out.
      subscriptions.push(await bus.consume({ ...at, batchMessagesMax: 8, batchWaitMs: 600_000 }, (messages) => {
        sizes.push(messages.length);
        return Promise.resolve(messages.map(() => 'done'));
      }));
      await until(() => sizes.length >= 3);
      expect(sizes).toEqual([8, 8, 8]);
    });

    test('hands out full batches without waiting also of what comes again', async () => {
      const at = fresh('full-again');
      for (let index = 0; index < 96; index += 1) await bus.publish(at.subject, bytes(String(index)));
      let settled = 0;
      // Twelve such waits end after the test's own time-out.
      subscriptions.push(await bus.consume({ ...at, batchMessagesMax: 8, batchWaitMs: 3_000 }, (messages) => {
        settled += messages.filter(({ deliveries }) => deliveries > 2).length;
        return Promise.resolve(messages.map(({ deliveries }) => (deliveries > 2 ? 'done' : 'again')));
      }));
      await until(() => settled >= 72);
    });

    test('shares messages between consumers of one durable name', async () => {
      const at = fresh('shared');
      const seen: string[] = [];
      const handler = (messages: readonly BusMessage[]): Promise<readonly Verdict[]> => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      };
      await consume(at, handler, 5);
      await consume(at, handler, 5);
      for (let index = 0; index < 20; index += 1) await bus.publish(at.subject, bytes(String(index)));
      await until(() => seen.length >= 20);
      expect(new Set(seen).size).toBe(20);
    });

    test('keeps messages of a stopped consumer for the next of its name', async () => {
      const at = fresh('resumed');
      const first = await consume(at, (messages) => Promise.resolve(messages.map(() => 'done')));
      await first.stop();
      await first.stop();
      await bus.publish(at.subject, bytes('kept'));
      const seen: string[] = [];
      await consume(at, (messages) => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      });
      await until(() => seen.length >= 1);
      expect(seen).toEqual(['kept']);
    });

    test('drops a repeated message id', async () => {
      const at = fresh('ids');
      await bus.publish(at.subject, bytes('one'), { messageId: `${at.durable}/1` });
      await bus.publish(at.subject, bytes('one'), { messageId: `${at.durable}/1` });
      await bus.publish(at.subject, bytes('two'), { messageId: `${at.durable}/2` });
      const seen: string[] = [];
      await consume(at, (messages) => {
        seen.push(...messages.map(text));
        return Promise.resolve(messages.map(() => 'done'));
      });
      await until(() => seen.includes('two'));
      expect(seen).toEqual(['one', 'two']);
    });

    test('lets listeners hear announcements and publications that fit their pattern', async () => {
      const at = fresh('live');
      const heard: string[] = [];
      const subscription = await bus.listen('usage.v1.*', (message) => {
        if (message.subject === at.subject) heard.push(text(message));
      });
      subscriptions.push(subscription);
      bus.announce(`${at.subject}.deeper`, bytes('elsewhere'));
      await bus.publish(at.subject, bytes('stored'));
      const fleeting = await bus.listen('attempts.v1.>', (message) => heard.push(text(message)));
      subscriptions.push(fleeting);
      bus.announce(`attempts.v1.${at.durable}.x`, bytes('fleeting'));
      await until(() => heard.length >= 2);
      expect(heard).toEqual(['stored', 'fleeting']);
      await subscription.stop();
    });

    test('says that it is connected', () => {
      expect(bus.isConnected()).toBe(true);
    });
  });
}
