/** The operator's door to the catalog in force. */
import type { CatalogCheckResponse__Output, CatalogReloadResponse__Output, CatalogShowResponse__Output } from '@signalbox/contracts/routing';
import type { RpcClient } from '@signalbox/rpc/call';
import { Router } from 'express';
import { ANSWER_OPTIONS, send } from './answers.js';

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
  router.post('/catalog/reload', async (_request, response) => {
    const { loaded, snapshotId, problems } = await routing.unary<object, CatalogReloadResponse__Output>('CatalogReload', {}, ANSWER_OPTIONS);
    send(response, { loaded, snapshot_id: snapshotId, problems }, loaded ? 200 : 400);
  });
  return router;
}
