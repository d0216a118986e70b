import { expect, jest, test } from '@jest/globals';
import { Conversation } from './conversation.js';

test('of a text of megabytes its beginning is looked up, and no more of it is read', () => {
  const replaced = jest.spyOn(String.prototype, 'replaceAll');
  const text = new Conversation([{ role: 'user', content: `${' '.repeat(100_000)}Who\0wrote it? ${'\0'.repeat(1_000_000)}` }]).lastUserText();
  expect(text.startsWith('Who wrote it?')).toBe(true);
  expect(text.length).toBe(32_768);
  expect(replaced.mock.contexts.map((context) => String(context).length)).toEqual([32_768]);
  replaced.mockRestore();
});
