/** What can run beside the model, what it costs and how it is asked for. */
import { Badge, Code, Group, Stack, Table, Text } from '@mantine/core';
import type { ReactElement } from 'react';
import { formatUsd } from '../lib/money.js';
import { useApi } from '../lib/use-api.js';
import type { Plugin, PluginOption } from '../lib/types.js';
import { Empty, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

function valuesOf({ type, min, max, choices }: PluginOption): string {
  if (choices !== undefined) return choices.map((choice) => (choice === '' ? 'none' : choice)).join(', ');
  if (type === 'integer' && min !== undefined && max !== undefined) return `${min} to ${max}`;
  return { strings: 'list of texts', integers: 'list of whole numbers', string: 'text', integer: 'whole number', boolean: 'true, false' }[type] ?? type;
}

const standardOf = ({ default: value }: PluginOption): string => (value === undefined || value === '' ? 'none' : String(value));

function One({ plugin }: { readonly plugin: Plugin }): ReactElement {
  const { id, name, description, paid, kind, fee_usd: fee, policies, options } = plugin;
  return (
    <Panel
      title={name}
      flush
      side={
        <Group gap={4}>
          <Badge variant="light" color={paid ? 'orange' : 'teal'}>
            {paid ? 'paid plans' : 'every plan'}
          </Badge>
          {policies.zdr ? <Badge variant="default">zero retention</Badge> : null}
        </Group>
      }
    >
      <Stack gap="xs" px="md" pb="sm">
        <Text size="sm">{description}</Text>
        <Text size="xs" c="dimmed">
          {kind === 'tool' ? 'A tool that the model may call' : 'Runs around every request that asks for it'}, {fee === 0 ? 'without a fee of its own' : `${formatUsd(fee)} a run`}. Ask for it with <Code>{`"plugins":["${id}"]`}</Code>
        </Text>
      </Stack>
      {Object.keys(options).length === 0 ? null : (
        <Rows>
          <Table verticalSpacing={6} horizontalSpacing="md">
            <Table.Thead>
              <Table.Tr>
                <Table.Th w="20%">Option</Table.Th>
                <Table.Th>What it does</Table.Th>
                <Table.Th w="20%">Values</Table.Th>
                <Table.Th w="15%">If absent</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {Object.entries(options).map(([option, each]) => (
                <Table.Tr key={option}>
                  <Table.Td ff="monospace">{option}</Table.Td>
                  <Table.Td>{each.description}</Table.Td>
                  <Table.Td>{valuesOf(each)}</Table.Td>
                  <Table.Td>{standardOf(each)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Rows>
      )}
    </Panel>
  );
}

export function Plugins(): ReactElement {
  const plugins = useApi<{ readonly data: readonly Plugin[] }>('/api/plugins');
  return (
    <>
      <PageHead title="Plugins" hint="What can run beside the model. Tokens it adds are charged as the model’s." />
      <Loaded query={plugins} height={480}>
        {({ data }) =>
          data.length === 0 ? (
            <Panel>
              <Empty title="No plugins">The operator has not installed any.</Empty>
            </Panel>
          ) : (
            <Stack gap="md">
              {data.map((plugin) => (
                <One key={plugin.id} plugin={plugin} />
              ))}
            </Stack>
          )
        }
      </Loaded>
    </>
  );
}
