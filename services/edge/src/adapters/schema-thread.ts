/** The thread in which schemas are checked: a question in, a verdict out. */
import { parentPort } from 'node:worker_threads';
import { createSchemaValidator } from './schema-validator.js';

interface Question {
  readonly id: number;
  readonly schema: string;
  readonly text: string;
}

const validate = createSchemaValidator();
parentPort?.on('message', ({ id, schema, text }: Question) => parentPort?.postMessage({ id, verdict: validate(schema, text) }));
