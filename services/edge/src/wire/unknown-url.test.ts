import { expect, test } from '@jest/globals';
import { unknownUrlMessage } from './unknown-url.js';

const WHERE = ' Chat completions are at POST /v1/chat/completions, models at GET /v1/models; GET /openapi.json lists all.';

test.each([
  ['/v1/responses', 'The Responses interface is not offered: set the client to chat completions.'],
  ['/responses', 'The Responses interface is not offered: set the client to chat completions.'],
  ['/v1/responses/resp_1/cancel', 'The Responses interface is not offered: set the client to chat completions.'],
  ['/v1/embeddings', 'Embeddings are not offered.'],
  ['/v1/audio/speech', 'Speech and transcription are not offered.'],
  ['/v1/key', 'Keys are made, listed, changed and revoked at /api/auth. What the key and the account may still spend is at GET /api/limits.'],
  ['/key/generate', 'Keys are made, listed, changed and revoked at /api/auth. What the key and the account may still spend is at GET /api/limits.'],
  ['/key/update', 'Keys are made, listed, changed and revoked at /api/auth. What the key and the account may still spend is at GET /api/limits.'],
  ['/v1/api-keys', 'Keys are made, listed, changed and revoked at /api/auth. What the key and the account may still spend is at GET /api/limits.'],
  ['/v1/virtual-keys/one', "An account's own credentials at providers are at /api/providers."],
  ['/v1/integrations', "An account's own credentials at providers are at /api/providers."],
  ['/v1/analytics/graphs/cost', 'What was spent is at GET /api/usage, request by request at GET /api/requests.'],
  ['/v1/logs/exports', 'What was spent is at GET /api/usage, request by request at GET /api/requests.'],
  ['/v1/configs', 'Configs are not kept here: name fallbacks and preferences in the request (`models`, `provider`).'],
  ['/v1/prompts/p_1/completions', 'Prompts are not kept here: send the messages themselves.'],
  ['/v1/generation', 'Cost and attempts of a request are at GET /api/requests/{id}.'],
  ['/model/info', 'Prices, limits and providers of models are at GET /v1/models?detail=full.'],
  ['/global/spend/report', 'What was spent is at GET /api/usage, request by request at GET /api/requests.'],
  ['/health/liveliness', 'Health and metrics are on a port of their own (METRICS_PORT): GET /livez, /readyz and /metrics.'],
  ['/docs', 'The API is described at /openapi.json, and for people at /dashboard/api.'],
  ['/redoc/', 'The API is described at /openapi.json, and for people at /dashboard/api.'],
  ['/admin/accounts', "The operator's interface is on a port of its own (ADMIN_PORT)."],
  ['/v1', 'There is nothing at this address.'],
  ['/', 'There is nothing at this address.'],
  ['/api/responses', 'There is nothing at this address.'],
  ['/v1/sk-secret', 'There is nothing at this address.'],
  ['/constructor', 'There is nothing at this address.'],
])('at %s the message says what is not offered, if known, and where to go', (path, words) => {
  expect(unknownUrlMessage(path)).toBe(words + WHERE);
});

test.each([
  ['/api/v1/credits', 'What the key and the account may still spend is at GET /api/limits.'],
  ['/api/v1/responses', 'The Responses interface is not offered: set the client to chat completions.'],
  ['/anthropic/v1/messages', "Anthropic's Messages interface is not offered: its models answer at chat completions."],
  ['/api/v1/endpoints/zdr', 'There is nothing at this address.'],
])('at %s, below the base URL of another service, the message says both', (path, words) => {
  expect(unknownUrlMessage(path)).toBe(`${words}${WHERE} A client's base URL is this service's address with /v1 behind it, once and nothing more.`);
});

test.each(['/chat/completions', '/models', '/v1/v1/chat/completions', '/v1/chat/completions/chat/completions', '//v1/chat/completions', '/api/v1/models', '/openai/v1/chat/completions/', '/openai/deployments/x/chat/completions'])('at %s the message says which base URL the client needs', (path) => {
  expect(unknownUrlMessage(path)).toBe(`There is nothing at this address.${WHERE} A client's base URL is this service's address with /v1 behind it, once and nothing more.`);
});
