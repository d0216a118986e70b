/** Settings of the migration job of a service: `node services/<name>/dist/main.js migrate`. */
import { z } from 'zod';
import { loadConfig, secretField, type Environment } from './config.js';

const schema = z.object({
  /** Connects as the role that owns the schema; never logged. */
  DATABASE_URL: secretField(),
  /** Role that the service runs as: it gets rights on rows but not on tables; absent = the service runs as the owner. */
  SERVICE_ROLE: z.string().regex(/^[a-z][a-z0-9_]{0,62}$/, 'must be the name of a role').optional(),
});

export type SchemaJobConfig = Readonly<z.infer<typeof schema>>;

/** Throws a ConfigError that names every wrong setting. */
export function loadSchemaJobConfig(environment: Environment): SchemaJobConfig {
  return loadConfig(schema, environment);
}
