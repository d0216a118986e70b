import { expect, test } from '@jest/globals';
import { parseCommand } from './commands.js';
import { withHint } from './hints.js';

test.each([
  ['No such account.', '`account list`'],
  ['--account names no account.', '`account list`'],
  ['No such key.', '`key list --account ID`'],
  ['No such source.', '`search list`'],
  ['No such writer.', '`watermarks`'],
  ['No such event.', '`dead list`'],
  ['--provider names no provider that this gateway serves.', '`providers`'],
])('%s comes with the command that lists what there is', (sentence, command) => {
  const told = withHint(sentence);
  expect(told.startsWith(`${sentence} ${command}`)).toBe(true);
  expect(told).not.toContain('\n');
  // The suggested command exists.
  expect(() => parseCommand(command.replaceAll('`', '').split(' '))).not.toThrow();
});

test('what is wrong in another way is said as it came', () => {
  expect(withHint('--rpm: Too small: expected number to be >=1.')).toBe('--rpm: Too small: expected number to be >=1.');
});
