/** Validates answers against the published JSON schemas of the common format. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFileSync } from 'node:fs';

type Root = 'CreateChatCompletionResponse' | 'CreateChatCompletionStreamResponse' | 'ErrorResponse' | 'ListModelsResponse';

interface SchemaFile {
  readonly $defs: Record<string, { required?: string[] }>;
}

const file = JSON.parse(readFileSync(new URL('openai-chat-schemas.json', import.meta.url), 'utf8')) as SchemaFile;
// Model records here have no `created`, unlike OpenAI's: the only known deviation.
const model = file.$defs['Model'];
if (model?.required !== undefined) model.required = model.required.filter((name) => name !== 'created');
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema({ $id: 'chat', $defs: file.$defs });

/** Schema violations, one sentence each; empty if valid. */
export function problems(root: Root, value: unknown): readonly string[] {
  const validate = ajv.getSchema(`chat#/$defs/${root}`);
  if (validate === undefined) throw new Error(`No schema ${root}.`);
  return validate(value) === true ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ''}`);
}
