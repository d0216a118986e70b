import { expect, test } from '@jest/globals';
import { whyRefused } from './refused.js';

const error = (message: string, code: string | null = null): string => JSON.stringify({ error: { message, code } });

test.each([
  ['a sentence of the door', 400, error('name is required.'), 'name is required.'],
  ['problems of a catalog', 409, JSON.stringify({ problems: ['one', 'two'] }), 'one\ntwo'],
  ['a wrong token', 401, error('The admin token is missing or wrong.'), 'The admin token is missing or wrong. At http://h:1 it is the ADMIN_TOKEN that the server was started with, else the one in its DATA_DIR: set the same here.'],
  ['the address of clients', 404, error('There is nothing at this address. Chat completions are at …', 'unknown_url'), 'What answers at http://h:1 is the address of clients, not the operator’s door: name its port in ADMIN_PORT or its address in ADMIN_URL.'],
  ['no JSON', 502, '<html>', 'The server answered 502.'],
])('why a call was refused: %s', (_what, status, text, why) => {
  expect(whyRefused(status, text, 'http://h:1')).toBe(why);
});
