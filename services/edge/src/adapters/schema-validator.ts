/** Checks JSON against schemas of clients. Runs in a thread of its own, which is ended when it takes too long: a schema's patterns may be hostile. */
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';

const SCHEMA_CHARS_MAX = 131_072;
const SCHEMAS_KEPT_MAX = 200;
const STANDARD = /^https?:\/\/json-schema\.org\//;
/** `ownProperties`: inherited members of JavaScript objects, such as `toString`, are not properties of the JSON. */
const OPTIONS = { strict: false, ownProperties: true, allErrors: false, validateFormats: false, logger: false, addUsedSchema: false, meta: true } as const;
const DRAFTS = { '2020-12': Ajv2020, '2019-09': Ajv2019, '07': Ajv } as const;

/** The usual values of `$schema`; '' = none. */
const USUAL = new Set(['', 'https://json-schema.org/draft/2020-12/schema', 'https://json-schema.org/draft/2019-09/schema', 'http://json-schema.org/draft-07/schema', 'http://json-schema.org/draft-07/schema#']);

export type SchemaValidator = (schema: string, text: string) => boolean | undefined;

/** True or false = whether `text`, which is JSON, fits; undefined = the schema is invalid or longer than 131,072 characters. Compiled schemas are kept. */
export function createSchemaValidator(): SchemaValidator {
  const kept = new LRUCache<string, { readonly validate: ValidateFunction | undefined }>({ max: SCHEMAS_KEPT_MAX });
  /** Validators of schemas by draft. Compiling a draft's meta-schema takes fifty times as long as a client's schema. Only usual drafts are kept, since clients choose the name. */
  const judges = new Map<string, Ajv>(); // kept: by draft.
  const judgeOf = (draft: string, Version: (typeof DRAFTS)[keyof typeof DRAFTS]): Ajv => {
    const judge = judges.get(draft) ?? new Version(OPTIONS);
    if (USUAL.has(draft)) judges.set(draft, judge);
    return judge;
  };
  const compile = (schema: string): ValidateFunction | undefined => {
    if (schema.length > SCHEMA_CHARS_MAX) return undefined;
    try {
      // `$async` is no keyword of JSON Schema, but makes Ajv return a promise: it is removed.
      const parsed = JSON.parse(schema, (name, value: unknown) => (name === '$async' && typeof value !== 'object' ? undefined : value)) as Record<string, unknown>;
      const draft = typeof parsed['$schema'] === 'string' ? parsed['$schema'] : '';
      const Version = DRAFTS[draft.includes('2020-12') || draft === '' ? '2020-12' : draft.includes('2019-09') ? '2019-09' : '07'];
      const judge = judgeOf(draft, Version);
      // Ajv does not know the names of drafts 04 and 06, or of an address with `https`. They are read as draft 07: the keywords it accepts mean the same.
      const { $schema: _, ...unnamed } = parsed;
      const isUnnamed = STANDARD.test(draft) && judge.getSchema(draft) === undefined;
      const schemaOf = isUnnamed ? unnamed : parsed;
      // Throws if it is not a valid schema.
      void judge.validateSchema(schemaOf, true);
      // A new compiler for each schema, since it keeps the names a schema defines. References work only within the schema: there is no loader.
      const validate = new Version({ ...OPTIONS, validateSchema: false }).compile(schemaOf);
      return '$async' in validate ? undefined : validate;
    } catch {
      return undefined;
    }
  };
  return (schema, text) => {
    let entry = kept.get(schema);
    if (entry === undefined) kept.set(schema, (entry = { validate: compile(schema) }));
    try {
      return entry.validate === undefined ? undefined : entry.validate(JSON.parse(text));
    } catch {
      return undefined;
    }
  };
}
