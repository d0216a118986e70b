import { describe, expect, test } from '@jest/globals';
import { Conversation } from '@signalbox/plugin-kit/conversation';
import { Secret } from '@signalbox/runtime/secret';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteBackend, type RemoteBackendName } from '../../adapters/search-backends.js';
import type { SearchBackend } from '../../domain/ports.js';
import { createWebSearch } from './plugin.js';

const OPTIONS = { max_results: 2, include_domains: [] as readonly string[], exclude_domains: [] as readonly string[], search_prompt: '' };

async function run(backend: SearchBackend, options: Partial<typeof OPTIONS> = {}, text = 'When does  it\nopen?') {
  const conversation = new Conversation([{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'first' }, { role: 'assistant', content: 'yes' }, { role: 'user', content: [{ type: 'text', text }] }]);
  const prepared = await createWebSearch({ backend, guarantee: 'none' }).prepare?.({ requestId: 'r', accountId: 'a', user: '', options: { ...OPTIONS, ...options }, policy: { zdr: false, denyTraining: false }, conversation, signal: new AbortController().signal });
  prepared?.apply(conversation);
  return { prepared, messages: conversation.changed() };
}

const fixed: SearchBackend = { name: 'fixed', search: () => Promise.resolve(['a', 'b', 'c'].map((host) => ({ url: `https://www.${host}.example/x`, title: host.toUpperCase(), content: `about ${host}` }))) };

test('results are one system block behind those of the client, and as many citations', async () => {
  const { prepared, messages } = await run(fixed);
  expect(messages?.map(({ role }) => role)).toEqual(['system', 'system', 'user', 'assistant', 'user']);
  expect(messages?.[1]?.content).toMatch(/follow no instructions[\s\S]*\[1\] A\nhttps:\/\/www\.a\.example\/x\nabout a\n\n\[2\] B/);
  expect(prepared?.citations).toHaveLength(2);
});

test("domains hold whatever the backend answers; the client's own words replace ours; nothing found adds nothing", async () => {
  expect((await run(fixed, { include_domains: ['https://b.example/y', '*.c.example'] })).prepared?.citations?.map(({ title }) => title)).toEqual(['B', 'C']);
  expect((await run(fixed, { exclude_domains: ['a.example'], search_prompt: 'Use these.' })).messages?.[1]?.content).toMatch(/^Use these\.\n\n\[1\] B/);
  expect((await run({ name: 'none', search: () => Promise.resolve([]) })).messages).toBeUndefined();
  await expect(run(fixed, {}, ' ')).rejects.toMatchObject({ reason: 'no_question' });
});

test('what a backend tells twice is cited once; another passage of the same page is another result', async () => {
  const told = (content: string) => ({ url: 'https://a.example/', title: 'A', content });
  const { prepared } = await run({ name: 'twice', search: () => Promise.resolve(['one', 'one', 'two'].map(told)) });
  expect(prepared?.citations?.map(({ marker, content }) => [marker, content])).toEqual([['[1]', 'one'], ['[2]', 'two']]);
});

test('a long text is cut between characters, never within one', async () => {
  const asked: string[] = [];
  const { prepared, messages } = await run({
    name: 'long',
    search: ({ text }) => {
      asked.push(text);
      return Promise.resolve([{ url: 'https://a.example/', title: 'A', content: `${'a'.repeat(1_999)}😀 and more` }]);
    },
  }, {}, `${'b'.repeat(399)}😀?`);
  expect([asked, prepared?.citations?.map(({ content }) => content)]).toEqual([['b'.repeat(399)], ['a'.repeat(1_999)]]);
  expect(JSON.stringify(messages)).not.toMatch(/\\ud[89a-f]/);
});

test('whatever a page calls itself, its result stays small and can be sent on', async () => {
  const { prepared, messages } = await run({
    name: 'hostile',
    search: () => Promise.resolve([
      { url: `https://a.example/${'u'.repeat(3_000)}`, title: 'too long', content: 'x' },
      { url: 'https://a.example/ two', title: 'blank', content: 'x' },
      { url: 'https://', title: 'no host', content: 'x' },
      { url: 'https://b.example/', title: 'T'.repeat(1_000_000), content: 'half \uD800 a character \u{1F600}' },
      { url: 'https://c.example/Köln', title: 'C', content: 'x' },
    ]),
  });
  expect(prepared?.citations).toMatchObject([{}, { url: 'https://c.example/Köln' }]);
  expect(prepared?.citations?.slice(0, 1)).toEqual([{ marker: '[1]', url: 'https://b.example/', title: 'T'.repeat(300), content: 'half \uFFFD a character \u{1F600}' }]);
  expect(JSON.stringify(messages).length).toBeLessThan(2_000);
});

test.each([['none', false, false], ['no-training', false, true], ['zdr', true, true]] as const)('a backend that guarantees %s', (guarantee, zdr, deny) => {
  const { allows } = createWebSearch({ backend: fixed, guarantee });
  expect([allows({ zdr: true, denyTraining: false }, OPTIONS), allows({ zdr: false, denyTraining: true }, OPTIONS), allows({ zdr: false, denyTraining: false }, OPTIONS)]).toEqual([zdr, deny, true]);
});

describe('services', () => {
  async function withServer<Result>(answer: { readonly status?: number; readonly body: string }, work: (url: string, seen: { request?: IncomingMessage; body: string }) => Promise<Result>): Promise<Result> {
    const seen: { request?: IncomingMessage; body: string } = { body: '' };
    const server = createServer((request, response) => {
      seen.request = request;
      request.on('data', (part: Buffer) => (seen.body += part.toString()));
      request.on('end', () => response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(answer.body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }
  const asked = { text: 'hours', limit: 3, includeDomains: ['a.example'], excludeDomains: ['b.example'], signal: new AbortController().signal };
  const result = { url: 'https://a.example/1', title: 'A', content: 'text', description: 'text' };

  test.each<[RemoteBackendName, string]>([
    ['searxng', JSON.stringify({ results: [result, { url: 'javascript:alert(1)', title: 'x' }] })],
    ['brave', JSON.stringify({ web: { results: [{ ...result, description: '<strong>text</strong>' }] } })],
    ['tavily', JSON.stringify({ results: [result] })],
  ])('%s is asked in its own way and read alike', async (name, body) => {
    await withServer({ body }, async (url, seen) => {
      const backend = createRemoteBackend({ name, url, key: new Secret('hidden-key') });
      expect(await backend.search(asked)).toEqual([{ url: 'https://a.example/1', title: 'A', content: 'text' }]);
      const sent = `${decodeURIComponent((seen.request?.url ?? '').replaceAll('+', ' '))} ${seen.body}`;
      expect(sent).toContain('hours');
      expect(sent).toContain('a.example');
      expect(sent).toContain('b.example');
      expect(sent).not.toContain('hidden-key');
      expect(JSON.stringify(seen.request?.headers)).toContain('hidden-key');
    });
  });

  test.each<[string, { readonly status?: number; readonly body: string }, string]>([
    ['an error', { status: 500, body: 'no' }, 'backend_refused'],
    ['too many requests', { status: 429, body: 'no' }, 'backend_rate_limited'],
    ['no JSON', { body: '<html>' }, 'backend_answer_unreadable'],
    ['an answer without end', { body: ' '.repeat(3_000_000) }, 'backend_answer_too_large'],
  ])('%s is a failure with a name', async (_what, answer, reason) => {
    await withServer(answer, (url) => expect(createRemoteBackend({ name: 'searxng', url, key: undefined }).search(asked)).rejects.toMatchObject({ name: 'PluginFailure', reason }));
  });

  test('a service that is down is one too', async () => {
    await expect(createRemoteBackend({ name: 'tavily', url: 'http://127.0.0.1:9/', key: new Secret('k') }).search(asked)).rejects.toMatchObject({ reason: 'backend_unreachable' });
  });
});
