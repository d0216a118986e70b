import { describe, expect, test } from '@jest/globals';
import { promptWindow } from './prompt-window.js';

describe('the window of a prompt', () => {
  test('begins with the last user turn, followed by the other turns, latest first', () => {
    const window = promptWindow([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'First' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'user', content: [{ type: 'text', text: 'Second' }, { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }, { type: 'text', text: 'and more' }] },
      { role: 'assistant', content: 'Answer' },
    ]);
    expect(window).toBe('Second\nand more\nAnswer\nFirst\nBe brief.');
  });

  test('has at most 8,192 characters, with both ends of a long turn', () => {
    const window = promptWindow([{ role: 'system', content: 'x'.repeat(9_000) }, { role: 'user', content: `A${'b'.repeat(20_000)}Z` }]);
    expect(window).toHaveLength(8_192);
    expect([window[0], window.at(-1)]).toEqual(['A', 'Z']);
    expect(promptWindow([...Array.from({ length: 40 }, () => ({ role: 'assistant', content: 'y'.repeat(1_000) })), { role: 'user', content: 'Q' }]).length).toBeLessThanOrEqual(1 + 2_048);
  });

  test('is empty if no message has text', () => {
    expect(promptWindow([{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }])).toBe('');
  });
});
