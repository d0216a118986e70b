import { expect, test } from '@jest/globals';
import { createAllowList } from '@signalbox/net-guard/allow-list';
import { createOwnAddressCheck } from './own-address.js';

const problemOf = createOwnAddressCheck(createAllowList(['llm.internal:8443', '127.0.0.1:9000', '10.1.0.0/16']));

test.each(['https://llm.example.com/v1', 'https://LLM.example.com:443/v1/', 'https://llm.internal:8443/v1', 'http://llm.internal:8443/v1', 'http://127.0.0.1:9000', 'https://10.1.2.3/v1'])('%s may be given', (url) => {
  expect(problemOf(url)).toBeUndefined();
});

test.each([
  ['another port', 'https://llm.example.com:8443/v1'],
  ['plain http', 'http://llm.example.com/v1'],
  ['a private address', 'https://192.168.1.20/v1'],
  ['an address of the cloud’s metadata', 'https://169.254.169.254/v1'],
  ['all three', 'http://192.168.1.20:8000/v1'],
  ['this machine', 'http://localhost:11434/v1'],
  ['plain http in an allowed range', 'http://10.1.2.3/v1'],
  ['another scheme', 'ftp://llm.example.com/'],
])('an address with %s is told all that one must be, and whom to ask for another', (_what, url) => {
  expect(problemOf(url)).toMatch(/^must lead to a public https:\/\/ address on the usual port, or to a host and port that the operator .* \(FETCH_ALLOW\)\.$/);
});

test.each([
  ['llm.example.com/v1', /plain absolute URL/],
  ['https://user:secret@llm.example.com/v1', /plain absolute URL/],
  ['https://llm.example.com/v1?key=secret', /no query and no fragment/],
  ['https://llm.example.com/v1#secret', /no query and no fragment/],
])('what is wrong with how %s is written is told apart, and nothing of it is repeated', (url, problem) => {
  expect(problemOf(url)).toMatch(problem);
  expect(problemOf(url)).not.toMatch(/secret|example/);
});
