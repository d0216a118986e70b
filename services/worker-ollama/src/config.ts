/** Settings of worker-ollama: OLLAMA_BASE_URL, OLLAMA_NUM_CTX, OLLAMA_KEEP_ALIVE and those of every worker; there is no credential. */
import { loadConfig, wholeNumberField, type Environment } from '@signalbox/runtime/config';
import { loadWorkerConfig, type WorkerConfig } from '@signalbox/worker-kit/config';
import { z } from 'zod';

const schema = z.object({
  /** Minimum context length requested, in tokens; a longer request asks for more. */
  OLLAMA_NUM_CTX: wholeNumberField(512, 4_194_304, 8_192),
  /** How long a model stays in memory after an answer: `10m`, `1h`, `0`, `-1`; empty = the server's setting. */
  OLLAMA_KEEP_ALIVE: z.string().regex(/^-?\d+(?:\.\d+)?(?:ms|s|m|h)?$/, 'must be a duration such as 10m').optional(),
});

export type WorkerOllamaConfig = WorkerConfig & Readonly<z.infer<typeof schema>>;

/** Throws ConfigError. */
export function loadWorkerOllamaConfig(environment: Environment): WorkerOllamaConfig {
  return Object.freeze({ ...loadWorkerConfig(environment, { credentials: [], baseUrl: 'OLLAMA_BASE_URL', defaultBaseUrl: 'http://localhost:11434' }), ...loadConfig(schema, environment) });
}
