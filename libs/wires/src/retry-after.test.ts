import { describe, expect, test } from '@jest/globals';
import { classifyMessagesRefusal } from './anthropic-messages/errors.js';
import { classifyConverseRefusal } from './bedrock-converse/errors.js';
import { RETRY_AFTER_MS_MAX, type Failure } from './canonical.js';
import { classifyCohereRefusal } from './cohere-v2/errors.js';
import { classifyGoogleRefusal } from './google-generate-content/errors.js';
import { classifyOllamaRefusal } from './ollama/errors.js';
import { classifyRefusal, type Refusal } from './openai-chat/errors.js';

const WIRES: readonly (readonly [string, (refusal: Refusal) => Failure])[] = [
  ['openai-chat', classifyRefusal],
  ['anthropic-messages', classifyMessagesRefusal],
  ['google-generate-content', classifyGoogleRefusal],
  ['bedrock-converse', classifyConverseRefusal],
  ['cohere-v2', classifyCohereRefusal],
  ['ollama', classifyOllamaRefusal],
];
/** Sunday, 22 November 2026, 10:00:00 GMT. */
const NOW_MS = Date.UTC(2026, 10, 22, 10);

const HINTS: readonly (readonly [Refusal['headers'], number])[] = [
  [{ 'retry-after': '7' }, 7_000],
  [{ 'retry-after': '0.25' }, 250],
  [{ 'retry-after': ' 7 ' }, 7_000],
  [{ 'retry-after': ['7', '9'] }, 7_000],
  [{ 'retry-after-ms': '1500.2' }, 1_501],
  [{ 'retry-after-ms': '1500', 'retry-after': '2' }, 1_500],
  [{ 'retry-after-ms': 'soon', 'retry-after': '2' }, 2_000],
  [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:30 GMT' }, 30_000],
  [{ 'retry-after': 'Sunday, 22-Nov-26 10:00:30 GMT' }, 30_000],
  // Over, and not yet believable.
  [{ 'retry-after': 'Sun, 22 Nov 2026 09:59:59 GMT' }, 0],
  [{ 'retry-after': 'Mon, 22 Nov 2027 10:00:00 GMT' }, RETRY_AFTER_MS_MAX],
  [{ 'retry-after': '601' }, RETRY_AFTER_MS_MAX],
  [{ 'retry-after': '99999999999999999999' }, RETRY_AFTER_MS_MAX],
  [{ 'retry-after-ms': '99999999999999999999' }, RETRY_AFTER_MS_MAX],
  [{ 'retry-after': '-5' }, 0],
  [{ 'retry-after': 'Infinity' }, 0],
  [{ 'retry-after': 'later' }, 0],
  [{ 'retry-after': '' }, 0],
  [{}, 0],
];

describe.each(WIRES)('%s', (_name, classify) => {
  test.each([429, 503])('reads what a %d says of when to come back: seconds, milliseconds or a date, ten minutes at most', (status) => {
    for (const [headers, retryAfterMs] of HINTS) {
      expect({ headers, ...classify({ status, headers, body: Buffer.from('{}'), nowMs: NOW_MS }) }).toMatchObject({ headers, class: status === 429 ? 'RATE_LIMITED' : 'PROVIDER_ERROR', retryable: true, retryAfterMs });
    }
  });
});
