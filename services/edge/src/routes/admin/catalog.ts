/** Admin routes for the catalog in force. */
import type { CatalogCheckResponse__Output, CatalogReloadRequest, CatalogReloadResponse__Output, CatalogShowResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { z } from 'zod';
import { ANSWER_OPTIONS, bodyOf, send } from './answers.js';
import { strictFields } from '../strict-fields.js';

const reloadSchema = strictFields({ take_prices: z.boolean().default(false) });
const ASKS_FOR_WORD = 'Nothing was loaded, since prices moved by more than a factor of two: `catalog reload --take-prices` takes them.';

export function createAdminCatalogRouter(routing: RpcClient): Router {
  const router = Router();
  router.get('/catalog', async (_request, response) => {
    const shown = await routing.unary<object, CatalogShowResponse__Output>('CatalogShow', {}, ANSWER_OPTIONS);
    send(response, {
      snapshot_id: shown.snapshotId, schema_version: shown.schemaVersion, models: shown.models, endpoints: shown.endpoints, available_endpoints: shown.availableEndpoints,
      available_providers: shown.availableProviders, loaded_from: shown.loadedFrom,
    });
  });
  router.post('/catalog/check', async (_request, response) => {
    const { problems, warnings, notices } = await routing.unary<object, CatalogCheckResponse__Output>('CatalogCheck', {}, ANSWER_OPTIONS);
    send(response, { problems, warnings, notices });
  });
  router.post('/catalog/reload', async (request, response) => {
    const { take_prices: takesPrices } = bodyOf(request, reloadSchema);
    const { loaded, snapshotId, problems, warnings } = await routing.unary<CatalogReloadRequest, CatalogReloadResponse__Output>('CatalogReload', { takesPrices }, ANSWER_OPTIONS);
    const isWaiting = !loaded && problems.length === 0;
    send(response, { loaded, snapshot_id: snapshotId, problems: isWaiting ? [ASKS_FOR_WORD, ...warnings] : problems, warnings }, loaded ? 200 : 400);
  });
  return router;
}
