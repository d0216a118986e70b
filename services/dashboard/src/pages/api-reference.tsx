/** /openapi.json for people: read from it, so it cannot say anything else. */
import { Accordion, Badge, Code, Group, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { call } from '../lib/api.js';
import { Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
}
interface Content {
  readonly [type: string]: { readonly schema?: Schema };
}
interface Operation {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema?: Schema; readonly description?: string }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}
interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

const COLORS: Readonly<Record<string, string>> = { get: 'var(--series-1)', post: 'var(--series-3)', put: 'var(--series-2)', patch: 'var(--series-2)', delete: 'var(--mantine-color-error)' };

function resolve(schema: Schema | undefined, document: Document): Schema {
  if (schema?.$ref === undefined) return schema ?? {};
  return document.components?.schemas?.[schema.$ref.split('/').at(-1) ?? ''] ?? {};
}

function typeOf(schema: Schema, document: Document): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? '';
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => String(value)).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one, document)).join(' or ');
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {}, document)}`;
  return typeof schema.type === 'string' ? schema.type : (schema.type?.join(' or ') ?? 'any');
}

/** The object that a field is, or each of a list of which it is one; undefined for plain values. */
function innerOf(schema: Schema, document: Document): Schema | undefined {
  const { properties, items, anyOf } = resolve(schema, document);
  if (properties !== undefined) return schema;
  if (items !== undefined) return innerOf(items, document);
  return anyOf?.map((one) => innerOf(one, document)).find((one) => one !== undefined);
}

const DEPTH_MAX = 3;

function Fields({ schema, document, depth = 0 }: { readonly schema: Schema; readonly document: Document; readonly depth?: number }): ReactElement | null {
  const { properties = {}, required = [] } = resolve(schema, document);
  const entries = Object.entries(properties);
  if (entries.length === 0) return null;
  const inner = entries.flatMap(([name, field]) => {
    const found = depth < DEPTH_MAX ? innerOf(field, document) : undefined;
    return found === undefined ? [] : [[name, found] as const];
  });
  return (
    <>
      <Rows>
        <Table verticalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Field</Table.Th>
              <Table.Th>Type</Table.Th>
              <Table.Th>Meaning</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {entries.map(([name, field]) => (
              <Table.Tr key={name}>
                <Table.Td>
                  <Code>{name}</Code>
                  {required.includes(name) ? null : (
                    <Text span size="xs" c="dimmed">
                      {' '}
                      optional
                    </Text>
                  )}
                </Table.Td>
                <Table.Td>
                  <Text size="xs">{typeOf(field, document)}</Text>
                </Table.Td>
                <Table.Td>
                  <Text size="xs">{field.description ?? ''}</Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Rows>
      {inner.map(([name, found]) => (
        <div key={name} className="inner">
          <Text size="xs" c="dimmed">
            of <Code>{name}</Code>
          </Text>
          <Fields schema={found} document={document} depth={depth + 1} />
        </div>
      ))}
    </>
  );
}

function OperationBody({ operation, document }: { readonly operation: Operation; readonly document: Document }): ReactElement {
  const body = operation.requestBody?.content['application/json']?.schema;
  const [success] = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
  const errors = Object.entries(operation.responses).filter(([status]) => !status.startsWith('2'));
  const answer = success?.[1].content?.['application/json']?.schema;
  return (
    <Stack gap="sm">
      {operation.description === undefined ? null : <Text size="sm">{operation.description}</Text>}
      {operation.parameters === undefined || operation.parameters.length === 0 ? null : (
        <div>
          <Text size="sm" fw={600}>
            Parameters
          </Text>
          {operation.parameters.map((parameter) => (
            <Text size="xs" key={parameter.name}>
              <Code>{parameter.name}</Code> in {parameter.in}, {typeOf(parameter.schema ?? {}, document)} {parameter.schema?.description ?? parameter.description ?? ''}
            </Text>
          ))}
        </div>
      )}
      {body === undefined ? null : (
        <div>
          <Text size="sm" fw={600}>
            Body
          </Text>
          <Fields schema={body} document={document} />
        </div>
      )}
      {success === undefined ? null : (
        <div>
          <Text size="sm" fw={600}>
            Answer {success[0]}
          </Text>
          <Text size="xs">{success[1].description}</Text>
          {answer === undefined ? null : <Fields schema={answer} document={document} />}
        </div>
      )}
      <div>
        <Text size="sm" fw={600}>
          Errors
        </Text>
        {errors.map(([status, { description }]) => (
          <Text size="xs" key={status}>
            <Code>{status}</Code> {description}
          </Text>
        ))}
      </div>
    </Stack>
  );
}

export function ApiReference(): ReactElement {
  const document = useQuery({ queryKey: ['openapi'], staleTime: Infinity, queryFn: () => call<Document>('/openapi.json') });
  const origin = window.location.origin;
  return (
    <>
      <PageHead title="API reference" hint="All that this dashboard shows is there for your programs too." />
      <Loaded query={document} height={600}>
        {(found) => {
          const tags = [...new Set(Object.values(found.paths).flatMap((methods) => Object.values(methods).flatMap(({ tags: names = [] }) => names)))];
          return (
            <Stack gap="md">
              <Panel title="Begin">
                <Stack gap="xs">
                  <Text size="sm">{found.info.description}</Text>
                  <Code block tabIndex={0} aria-label="Example">{`curl ${origin}/v1/chat/completions \\\n  -H "Authorization: Bearer $SIGNALBOX_API_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{"model":"auto","messages":[{"role":"user","content":"Hello!"}]}'`}</Code>
                  <Text size="sm">
                    The machine-readable document is at <a href="/openapi.json">/openapi.json</a>. Clients of the common format need only this base URL: <Code>{`${origin}/v1`}</Code>
                  </Text>
                </Stack>
              </Panel>
              {tags.map((tag) => (
                <Panel key={tag} title={tag} flush>
                  <Accordion variant="default" multiple>
                    {Object.entries(found.paths).flatMap(([path, methods]) =>
                      Object.entries(methods)
                        .filter(([, operation]) => operation.tags?.includes(tag) === true)
                        .map(([method, operation]) => (
                          <Accordion.Item key={`${method} ${path}`} value={operation.operationId}>
                            <Accordion.Control>
                              <Group gap="xs">
                                <span className="method" style={{ color: COLORS[method] }}>
                                  {method.toUpperCase()}
                                </span>
                                <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                                  {path}
                                </Text>
                                <Text size="sm" c="dimmed">
                                  {operation.summary}
                                </Text>
                              </Group>
                            </Accordion.Control>
                            <Accordion.Panel>
                              <OperationBody operation={operation} document={found} />
                            </Accordion.Panel>
                          </Accordion.Item>
                        )),
                    )}
                  </Accordion>
                </Panel>
              ))}
              <Badge variant="default">version {found.info.version}</Badge>
            </Stack>
          );
        }}
      </Loaded>
    </>
  );
}
