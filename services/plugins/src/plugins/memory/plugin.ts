/** memory: adds facts from a user's earlier conversations as a system block, and stores new ones after the answer. */
import type { Clock } from '@signalbox/kernel/clock';
import type { Plugin } from '@signalbox/plugin-kit/plugin';
import type { FactStore } from '../../domain/ports.js';
import { factsOf } from './facts.js';
import { MANIFEST, type MemoryOptions } from './manifest.js';

const INSTRUCTION = 'The user said the following of themselves in earlier conversations, latest first where two disagree. Use it where it helps; do not mention this list.';

export interface MemoryNeeds {
  readonly facts: FactStore;
  readonly clock: Clock;
  /** The operator states that the store meets zero data retention. */
  readonly isZdr: boolean;
  /** Most facts stored per user and namespace. */
  readonly keepMax: number;
}

export function createMemory({ facts, clock, isZdr, keepMax }: MemoryNeeds): Plugin<MemoryOptions> {
  return {
    manifest: MANIFEST,
    // The store belongs to the gateway, so nobody trains on it.
    allows: ({ zdr }) => !zdr || isZdr,
    prepare: async ({ accountId, user, options, conversation }) => {
      const found = await facts.recall({ accountId, user }, options.namespace, conversation.lastUserText(), options.max_facts, clock.nowMs());
      return {
        apply: (changed) => {
          if (found.length > 0) changed.addSystemBlock([INSTRUCTION, ...found.map(({ text }) => `- ${text}`)].join('\n'));
        },
        detail: { facts: found.length },
      };
    },
    observes: ({ write }) => write,
    observe: async ({ accountId, user, options, conversation }) => {
      const found = factsOf(conversation.lastUserText());
      if (found.length > 0) await facts.put({ accountId, user }, options.namespace, found, clock.nowMs(), keepMax);
      return { facts: found.length };
    },
  };
}
