/** Compares answers with the gateway's own /openapi.json. */
import { Ajv2020 } from 'ajv/dist/2020.js';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

interface Media {
  readonly schema?: Schema;
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>;
}

interface DocumentBody {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** One call: the operation as the document names it, and what was sent and received. */
export interface Exchange {
  readonly method: string;
  /** The path as in the document, with braces. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  /** Parsed JSON; undefined = none was sent. */
  readonly sent?: unknown;
  readonly got?: unknown;
}

export interface ApiDocument {
  /** `get /v1/models` and so on. */
  readonly operations: readonly string[];
  /** Differences between this call and the document, one sentence each; empty if there are none. */
  problems(exchange: Exchange): readonly string[];
}

const typesOf = ({ type }: Schema): readonly string[] | undefined => (type === undefined ? undefined : typeof type === 'string' ? [type] : type);
const typeOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

export function readDocument(text: string): ApiDocument {
  const { paths, components } = JSON.parse(text) as DocumentBody;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema({ $id: 'document', components });

  const resolved = (schema: Schema): Schema => (schema.$ref === undefined ? schema : (components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}));

  /** Fields of an answer that its schema does not name. A schema without any names allows all. */
  const unnamed = (schema: Schema, value: unknown, at: string): readonly string[] => {
    if (typeof value !== 'object' || value === null) return [];
    const { anyOf, allOf, items, properties, additionalProperties } = resolved(schema);
    if (anyOf !== undefined) {
      const fitting = anyOf.filter((one) => typesOf(resolved(one))?.includes(typeOf(value)) !== false).map((one) => unnamed(one, value, at));
      return fitting.sort((one, other) => one.length - other.length)[0] ?? [];
    }
    if (allOf !== undefined) return allOf.map((one) => unnamed(one, value, at)).sort((one, other) => other.length - one.length)[0] ?? [];
    if (Array.isArray(value)) return value.flatMap((item, index) => unnamed(items ?? {}, item, `${at}/${index}`));
    const others = typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0 ? additionalProperties : undefined;
    if (Object.keys(properties ?? {}).length === 0 && others === undefined) return [];
    return Object.entries(value).flatMap(([name, inner]) => {
      const known = properties?.[name] ?? others;
      return known === undefined ? [`${at}/${name} is not in the document.`] : unnamed(known, inner, `${at}/${name}`);
    });
  };

  const wrong = (schema: Schema, value: unknown, whose: string): readonly string[] => {
    // References are relative to the document.
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')) as object);
    return validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${whose}${instancePath} ${message ?? 'is wrong'}`);
  };

  return {
    operations: Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`)),
    problems: ({ method, path, status, contentType, sent, got }) => {
      const operation = paths[path]?.[method];
      if (operation === undefined) return [`${method} ${path} is not in the document.`];
      const asked = operation.requestBody?.content['application/json']?.schema;
      const ofRequest = sent === undefined ? [] : asked === undefined ? ['It takes no body.'] : wrong(asked, sent, 'request');
      const answer = operation.responses[String(status)];
      if (answer === undefined) return [...ofRequest, `The status ${status} is not in the document.`];
      if (got === undefined) return answer.content === undefined ? ofRequest : [...ofRequest, 'There is no body.'];
      const schema = answer.content?.[contentType]?.schema;
      if (schema === undefined) return [...ofRequest, `A body of ${contentType} is not in the document.`];
      return [...ofRequest, ...wrong(schema, got, 'answer'), ...unnamed(schema, got, 'answer')];
    },
  };
}
