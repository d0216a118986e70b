import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { describeDrawnImages, describeHanging, describeLeaving, describeNothingSaid, describeWire } from './wires-suite.js';
import { startWiresWorld, type WiresWorld } from './wires-world.js';
import { WIRES } from './wires.js';

const START_MS = 60_000;
/** Reasoning models, and the operator's own servers, have 60 s for their first byte. */
jest.setTimeout(90_000);

describe('every provider wire', () => {
  let running: WiresWorld | undefined;
  const world = (): WiresWorld => {
    if (running === undefined) throw new Error('The gateway has not started.');
    return running;
  };
  beforeAll(async () => {
    running = await startWiresWorld();
  }, START_MS);
  afterAll(async () => running?.stop(), START_MS);

  describeHanging(WIRES, world, () => {
    // Before the faults: a provider without credentials is not asked for half a minute after a 401, which concerns all its models.
    describeLeaving(WIRES, world);
    for (const wire of WIRES) describeWire(wire, world);
    describeDrawnImages(world);
    describeNothingSaid(world);
  });
});
