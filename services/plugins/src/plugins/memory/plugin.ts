/** memory: facts that a user told in earlier conversations as a system block; new ones are kept once the answer has been given. */
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
  /** Facts kept for one user in one namespace. */
  readonly keepMax: number;
}

export function createMemory({ facts, clock, isZdr, keepMax }: MemoryNeeds): Plugin<MemoryOptions> {
  return {
    manifest: MANIFEST,
    // The store is this house's own: nobody trains on it.
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
