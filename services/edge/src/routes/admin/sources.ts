/** Admin routes for the documents and books that plugins search. */
import type { AddSourceResponse__Output, DeletedResponse__Output, ListSourcesResponse__Output } from '@signalbox/contracts/plugins';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router, type Request } from 'express';
import { ANSWER_OPTIONS, bodyOf, refuse, send, text } from './answers.js';
import { sourceSchema } from './schema.js';

/** Indexing a long book takes the store a while. */
const ADD_DEADLINE_MS = 60_000;

const corpusOf = (request: Request): string => (text(request, 'corpus') === 'books' ? 'books' : 'web');

/** `plugins` undefined = no plugins are installed. */
export function createAdminSourcesRouter(plugins: RpcClient | undefined): Router {
  const router = Router();
  router.post('/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const added = await plugins.unary<object, AddSourceResponse__Output>('AddSource', bodyOf(request, sourceSchema), { deadlineMs: ADD_DEADLINE_MS });
    if (added.problem === '') send(response, { source: { key: added.key, title: added.title, passages: added.passages } }, 201);
    else refuse(response, 400, added.problem);
  });
  router.get('/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const { sources } = await plugins.unary<object, ListSourcesResponse__Output>('ListSources', { corpus: corpusOf(request) }, ANSWER_OPTIONS);
    send(response, { sources: sources.map(({ key, title, author, url, language, passages }) => ({ key, title, author, url, language, passages })) });
  });
  router.delete('/sources', async (request, response) => {
    if (plugins === undefined) return refuse(response, 404, 'The service plugins is not set up here.');
    const { deleted } = await plugins.unary<object, DeletedResponse__Output>('RemoveSource', { corpus: corpusOf(request), key: text(request, 'key') }, ANSWER_OPTIONS);
    if (deleted === 0) refuse(response, 404, 'No such source.');
    else send(response, { deleted: true, key: text(request, 'key') });
  });
  return router;
}
