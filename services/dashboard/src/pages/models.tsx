/** What may be asked for, at what price, under which policy, and how its providers do right now. */
import { Badge, Group, SegmentedControl, Stack, Table, Text, TextInput } from '@mantine/core';
import { useMemo, useState, type ReactElement } from 'react';
import { formatCount, formatCounted, formatMs, formatPrice, formatShort } from '../lib/format.js';
import { useApi } from '../lib/use-api.js';
import type { ModelEndpoint, ModelRecord } from '../lib/types.js';
import { OnlySimulator } from '../parts/only-simulator.tsx';
import { Empty, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

const CAPABILITIES: Readonly<Record<string, string>> = { tools: 'tools', vision: 'vision', json_schema: 'JSON schema', file_input: 'files', audio_input: 'audio', reasoning: 'reasoning' };
const SHOWN_MAX = 60;

function Health({ live }: { readonly live: ModelEndpoint['live'] }): ReactElement {
  const state = live?.breaker ?? 'closed';
  return (
    <Badge variant="light" color={state === 'closed' ? 'teal' : state === 'open' ? 'red' : 'orange'}>
      {state === 'closed' ? 'healthy' : state === 'open' ? 'down' : 'recovering'}
    </Badge>
  );
}

function Retention({ policy }: { readonly policy: ModelEndpoint['policy'] }): ReactElement {
  const trains = policy.trains_on_data === true || policy.trains_on_data === 'yes' ? 'trains on data' : policy.trains_on_data === false || policy.trains_on_data === 'no' ? 'does not train' : 'training unknown';
  const keeps = policy.zdr === true || policy.zdr === 'yes' || policy.zdr === 'default' ? 'keeps nothing' : 'may keep data';
  return (
    <Text size="xs">
      {trains}, {keeps}
    </Text>
  );
}

const endpointRow = (endpoint: ModelEndpoint, model: string | undefined): ReactElement => (
  <Table.Tr key={endpoint.id}>
    <Table.Td>
      <Text size="sm">{model ?? endpoint.provider}</Text>
    </Table.Td>
    <Table.Td>
      <Health live={endpoint.live} />
    </Table.Td>
    <Table.Td className="number">{formatPrice(endpoint.pricing?.input)}</Table.Td>
    <Table.Td className="number">{formatPrice(endpoint.pricing?.output)}</Table.Td>
    <Table.Td className="number">{endpoint.context_window === null ? '–' : formatShort(endpoint.context_window)}</Table.Td>
    <Table.Td>
      <Retention policy={endpoint.policy} />
    </Table.Td>
    <Table.Td className="number">{formatMs(endpoint.live?.latency_ms_p75)}</Table.Td>
    <Table.Td className="number">{endpoint.live?.throughput_tps_p50 === null || endpoint.live === undefined ? '–' : `${formatCount(Math.round(endpoint.live.throughput_tps_p50))} tok/s`}</Table.Td>
  </Table.Tr>
);

function Endpoints({ first, rows }: { readonly first: string; readonly rows: readonly (readonly [ModelEndpoint, string?])[] }): ReactElement {
  return (
    <Rows>
      <Table verticalSpacing={6} horizontalSpacing="md">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{first}</Table.Th>
            <Table.Th>Health</Table.Th>
            <Table.Th className="number">Input, 1M</Table.Th>
            <Table.Th className="number">Output, 1M</Table.Th>
            <Table.Th className="number">Context</Table.Th>
            <Table.Th>Data</Table.Th>
            <Table.Th className="number">P75 first token</Table.Th>
            <Table.Th className="number">P50 speed</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{rows.map(([endpoint, model]) => endpointRow(endpoint, model))}</Table.Tbody>
      </Table>
    </Rows>
  );
}

export function Models(): ReactElement {
  const models = useApi<{ readonly data: readonly ModelRecord[] }>('/v1/models?detail=full', { everyMs: 15_000 });
  const [search, setSearch] = useState('');
  const [view, setView] = useState('models');
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter((word) => word !== '');
    return (models.data?.data ?? []).filter((model) => (model.endpoints?.length ?? 0) > 0 && words.every((word) => model.id.toLowerCase().includes(word) || (model.endpoints ?? []).some(({ provider }) => provider.includes(word))));
  }, [models.data, search]);
  const providers = useMemo(() => {
    const found = new Map<string, [ModelEndpoint, string][]>();
    for (const model of shown) for (const endpoint of model.endpoints ?? []) found.set(endpoint.provider, [...(found.get(endpoint.provider) ?? []), [endpoint, model.id]]);
    return [...found];
  }, [shown]);

  return (
    <>
      <PageHead title="Models and providers" hint="Prices per million tokens; latency and speed of the latest minutes.">
        <Group gap="xs">
          <TextInput aria-label="Search" placeholder="Search" value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
          <SegmentedControl value={view} onChange={setView} data={[{ value: 'models', label: 'Models' }, { value: 'providers', label: 'Providers' }]} aria-label="Grouped by" />
        </Group>
      </PageHead>
      <OnlySimulator />
      <Loaded query={models} height={480}>
        {() =>
          shown.length === 0 ? (
            <Panel>
              <Empty title={search === '' ? 'No models' : 'Nothing matches'}>{search === '' ? 'No provider is configured, or your key allows none.' : 'Try another word.'}</Empty>
            </Panel>
          ) : (
            <Stack gap="md">
              {view === 'models'
                ? shown.slice(0, SHOWN_MAX).map((model) => (
                    <Panel
                      key={model.id}
                      title={model.id}
                      flush
                      side={
                        <Group gap={4}>
                          {Object.entries(CAPABILITIES).map(([name, label]) => (model.capabilities?.[name] === true ? <Badge key={name} variant="default" size="sm">{label}</Badge> : null))}
                          {model.deprecation_date === null || model.deprecation_date === undefined ? null : <Badge color="orange">ends {model.deprecation_date}</Badge>}
                        </Group>
                      }
                    >
                      <Endpoints first="Provider" rows={(model.endpoints ?? []).map((endpoint) => [endpoint] as const)} />
                    </Panel>
                  ))
                : providers.map(([provider, rows]) => (
                    <Panel key={provider} title={provider} flush side={<Text size="xs" c="dimmed">{formatCounted(rows.length, 'model')}</Text>}>
                      <Endpoints first="Model" rows={rows.slice(0, SHOWN_MAX)} />
                    </Panel>
                  ))}
              {view === 'models' && shown.length > SHOWN_MAX ? (
                <Text c="dimmed" size="sm" ta="center">
                  {shown.length - SHOWN_MAX} more: search to narrow the list.
                </Text>
              ) : null}
            </Stack>
          )
        }
      </Loaded>
    </>
  );
}
