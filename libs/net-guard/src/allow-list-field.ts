/** The allow list as a setting. */
import { z } from 'zod';
import { createAllowList, type AllowList } from './allow-list.js';

/** Entries of an allow list, separated by commas; empty by default. */
export const allowListField = () =>
  z
    .string()
    .default('')
    .transform((text, context): AllowList => {
      try {
        return createAllowList(text.split(',').filter((entry) => entry.trim() !== ''));
      } catch (error) {
        context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is no list of hosts' });
        return z.NEVER;
      }
    });
