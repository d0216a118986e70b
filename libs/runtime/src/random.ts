/** The only real randomness. */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import type { RandomBytes } from '@signalbox/kernel/clock';

export const randomBytes: RandomBytes = (count) => systemRandomBytes(count);
