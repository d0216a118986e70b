/** All suites, for one gateway of a mode and a variant. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { GatewayMode } from '../harness/gateway.js';
import { missingStores } from '../harness/stores.js';
import { describeClientObjects } from './client-objects-suite.js';
import { describeClients } from './clients-suite.js';
import { describeCompletions } from './completions-suite.js';
import { describeDecisions } from './decisions-suite.js';
import { describeDocument } from './document-suite.js';
import { describeErrors } from './errors-suite.js';
import { describeFaults } from './faults-suite.js';
import { describeHealing } from './healing-suite.js';
import { describeKilledEdge } from './killed-edge-suite.js';
import { describeKeys } from './keys-suite.js';
import { describeLimits } from './limits-suite.js';
import { describeMoney } from './money-suite.js';
import { describeNeighbours } from './neighbours-suite.js';
import { describeOperator } from './operator-suite.js';
import { describeOwnCredentials } from './own-credentials-suite.js';
import { describePriced } from './priced-suite.js';
import { describeRepeats } from './repeats-suite.js';
import { describeStreams } from './streams-suite.js';
import { startWorld, type World } from './world.js';

const START_MS = 60_000;
/** Heartbeats, and a provider's time for its first byte, are 10 s each. */
export const TEST_MS = 30_000;

/** Starts one gateway for all suites; call it at the top of a test file. */
export function describeContract(mode: GatewayMode, variant: 'A' | 'B'): void {
  const missing = mode === 'split' ? missingStores() : [];
  if (missing.length > 0) {
    test(`NOT COVERED: the split processes need ${missing.join(' and ')}`, () => {
      expect(process.env['REQUIRE_REAL_STORES']).not.toBe('1');
    });
    return;
  }
  describe(`${mode}, variant ${variant}`, () => {
    let running: World | undefined;
    const world = (): World => {
      if (running === undefined) throw new Error('The gateway has not started.');
      return running;
    };
    beforeAll(async () => {
      running = await startWorld(mode, variant);
    }, START_MS);
    afterAll(async () => running?.stop(), START_MS);

    const describeAfterKill = mode === 'split' ? describeKilledEdge(world) : undefined;
    describeFaults(world);
    describeCompletions(world);
    describeStreams(world);
    describeHealing(world);
    describeErrors(world);
    describeLimits(world);
    describeMoney(world);
    describeKeys(world);
    describeOwnCredentials(world);
    describePriced(world);
    describeRepeats(world);
    describeOperator(world);
    describeDecisions(world);
    describeDocument(world);
    describeClients(world);
    describeClientObjects(world);
    if (mode === 'split') describeNeighbours(world);
    describeAfterKill?.();
  });
}
