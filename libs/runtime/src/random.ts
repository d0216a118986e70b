/** The only real randomness. */
import { randomBytes as systemRandomBytes, randomInt } from 'node:crypto';
import type { RandomBytes } from '@signalbox/kernel/clock';

export const randomBytes: RandomBytes = (count) => systemRandomBytes(count);

/** Uniform in [0, 1): for jitter and weighted draws, not for secrets. */
export function randomFraction(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}
