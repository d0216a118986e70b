/** Error messages for unknown addresses, with hints for clients that were made for other services. */
import { API_ERRORS } from './errors.js';

const MONEY = 'What the key and the account may still spend is at GET /api/limits.';
const SPENT = 'What was spent is at GET /api/usage, request by request at GET /api/requests.';
const DETAILS = 'Prices, limits and providers of models are at GET /v1/models?detail=full.';
const KEYS = `Keys are made, listed, changed and revoked at /api/auth. ${MONEY}`;
const CREDENTIALS = "An account's own credentials at providers are at /api/providers.";
const HEALTH = 'Health and metrics are on a port of their own (METRICS_PORT): GET /livez, /readyz and /metrics.';
const ACCOUNTS = 'Accounts are made by the operator, with `npm run -s admin -- account create`.';
const REFERENCE = 'The API is described at /openapi.json, and for people at /dashboard/api.';
const ASSISTANTS = 'Assistants are not offered.';

/** Hints by the first part of the path after `/v1`, as clients of OpenAI, Anthropic and other gateways use it. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['responses', 'The Responses interface is not offered: set the client to chat completions.'],
  ['messages', "Anthropic's Messages interface is not offered: its models answer at chat completions."],
  ['completions', 'Completions of a plain prompt are not offered: send it as a message to chat completions.'],
  ['embeddings', 'Embeddings are not offered.'],
  ['images', 'Images are not offered at an address of their own.'],
  ['audio', 'Speech and transcription are not offered.'],
  ['moderations', 'Moderations are not offered.'],
  ['rerank', 'Reranking is not offered.'],
  ['realtime', 'The Realtime interface is not offered.'],
  ['files', 'Files are not kept here: send their data in the message.'],
  ['batches', 'Batches are not offered.'],
  ['assistants', ASSISTANTS],
  ['threads', ASSISTANTS],
  // OpenRouter's.
  ['key', KEYS],
  ['keys', KEYS],
  ['auth', KEYS],
  ['credits', MONEY],
  ['generation', 'Cost and attempts of a request are at GET /api/requests/{id}.'],
  ['activity', SPENT],
  ['providers', DETAILS],
  // LiteLLM's, whose /key is above.
  ['model', DETAILS],
  ['model_group', DETAILS],
  ['spend', SPENT],
  ['global', SPENT],
  ['user', ACCOUNTS],
  ['team', ACCOUNTS],
  ['customer', ACCOUNTS],
  ['budget', 'Cost caps are part of a key (/api/auth) and of the policy of an account (/api/policy).'],
  ['ui', 'The dashboard is at /dashboard.'],
  ['docs', REFERENCE],
  ['redoc', REFERENCE],
  ['openapi.yaml', REFERENCE],
  ['swagger.json', REFERENCE],
  // Portkey's.
  ['api-keys', KEYS],
  ['virtual-keys', CREDENTIALS],
  ['integrations', CREDENTIALS],
  ['analytics', SPENT],
  ['logs', SPENT],
  ['configs', 'Configs are not kept here: name fallbacks and preferences in the request (`models`, `provider`).'],
  ['prompts', 'Prompts are not kept here: send the messages themselves.'],
  // What monitors ask for.
  ['health', HEALTH],
  ['healthz', HEALTH],
  ['livez', HEALTH],
  ['readyz', HEALTH],
  ['ping', HEALTH],
  ['metrics', HEALTH],
  ['admin', "The operator's interface is on a port of its own (ADMIN_PORT)."],
]);

/** The part of the path that is looked up in `INSTEAD`, without prefixes of other services. */
const PART = /^\/(?:(?:(?:api|openai|anthropic)\/)?v1\/)?([^/]*)/;
/** Paths of clients with a wrong base URL: without /v1 (`/chat/completions`), with a whole address (`…/chat/completions/chat/completions`), or with another service's prefix (`/api/v1/…`). */
const MISPLACED = /\/(?:chat\/completions|models)\/?$|^\/(?:api|openai|anthropic)\/v1\//;
const BASE_URL = "A client's base URL is this service's address with /v1 behind it, once and nothing more.";

/** The message; it repeats nothing of the path. */
export function unknownUrlMessage(path: string): string {
  const { message } = API_ERRORS.unknown_url;
  const instead = INSTEAD.get(PART.exec(path)?.[1] ?? '');
  const said = instead === undefined ? message : `${instead} ${message.slice(message.indexOf('Chat completions'))}`;
  return MISPLACED.test(path) ? `${said} ${BASE_URL}` : said;
}
