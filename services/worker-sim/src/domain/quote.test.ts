import { expect, test } from '@jest/globals';
import { quoteOf } from './quote.js';

test('quotes the line that fits the question best, with the mark of its source', () => {
  const system = { role: 'system', content: '[1] Canteen\nhttps://x.example/\nThe canteen opens at noon.\n\n[2] Library\nThe library never opens.' };
  expect(quoteOf([system, { role: 'user', content: '[sim:quote] When does the canteen open, and which canteen opens?' }])).toBe('The canteen opens at noon. [1]');
});

test('reads the parts of a message, and never quotes the question', () => {
  const content = [{ type: 'text', text: 'What is the tower height? [sim:quote]' }, { type: 'image_url' }, { type: 'text', text: 'The height of the tower is 42 metres.' }];
  expect(quoteOf([{ role: 'user', content }])).toBe('The height of the tower is 42 metres.');
  expect(quoteOf([{ role: 'user', content: '[sim:quote] What is the tower height?' }])).toBe('');
});

test('of equally good lines it quotes the content of a source, not its title or the text around it', () => {
  const system = { role: 'system', content: 'Use what was found.\n\n[1] Handbook\nhttps://x.example/handbook\nTravel: book trains.\n\n[2] Menu\nhttps://x.example/menu\nTravel mugs are to be left outside.' };
  expect(quoteOf([system, { role: 'user', content: '[sim:quote] What does the handbook say of travel?' }])).toBe('Travel: book trains. [1]');
});
