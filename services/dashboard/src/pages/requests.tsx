/** Every request: found by what is known of it. */
import { Badge, Button, Group, Select, SimpleGrid, Table, Text, TextInput } from '@mantine/core';
import { useState, type FormEvent, type ReactElement } from 'react';
import { queryText } from '../lib/api.js';
import { isFoundBy, keyChoices } from '../lib/key-choices.js';
import { formatCount, formatInstant, formatMs, startOfDay } from '../lib/format.js';
import { formatUsd } from '../lib/money.js';
import { hrefOf, navigate, useKept } from '../lib/route.js';
import { useApi, useKeyNames, useNameChoice, useUsedKeys } from '../lib/use-api.js';
import type { Page, RequestRow } from '../lib/types.js';
import { follow, Link } from '../parts/link.tsx';
import { Empty, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';
import { Pages } from './keys.tsx';

const NONE = { model: '', provider: '', key: '', status: '', from: '', to: '' };
type Filter = typeof NONE;
/** Ids after which the pages before this one began. */
const FIRST: readonly string[] = [];
/** Of a list to choose from; the rest is found by typing. */
const CHOICES_MAX = 100;

/** `completed` only says that there is something to charge: an answer that broke off, or whose client left, is not shown as a whole one. */
export function StatusBadge({ row: { status, finish_reason: reason } }: { readonly row: Pick<RequestRow, 'status' | 'finish_reason'> }): ReactElement {
  const isCut = status === 'completed' && reason === 'error';
  return (
    <Badge variant="light" color={isCut ? 'orange' : status === 'completed' ? 'teal' : status === 'failed' ? 'red' : 'gray'}>
      {isCut ? 'cut short' : status}
    </Badge>
  );
}

export function Requests(): ReactElement {
  const [filter, setFilter] = useKept<Filter>('filter', NONE);
  const [search, setSearch] = useState('');
  const [after, setAfter] = useKept('after', FIRST);
  const models = useNameChoice('model', filter.model);
  const providers = useNameChoice('provider', filter.provider);
  const keyNames = useKeyNames();
  const usedKeys = useUsedKeys();
  const [typedKey, setTypedKey] = useState('');
  // There may be more of them than were read.
  const keys = keyChoices(keyNames, usedKeys, filter.key, typedKey);
  // Days as the reader's clock has them, like the times of the rows.
  const span = { from: startOfDay(filter.from), to: startOfDay(filter.to, 1) };
  const requests = useApi<Page<RequestRow>>(`/api/requests${queryText({ ...filter, ...span, limit: 50, after: after.at(-1) })}`, after.length === 0 ? { everyMs: 10_000 } : {});
  const set = (change: Partial<Filter>): void => {
    setFilter({ ...filter, ...change });
    setAfter(FIRST);
  };
  const find = (event: FormEvent): void => {
    event.preventDefault();
    if (search.trim() !== '') navigate(`/requests/${encodeURIComponent(search.trim())}`);
  };
  const isFiltered = Object.values(filter).some((value) => value !== '');

  return (
    <>
      <PageHead title="Requests" hint="Figures and decisions, never content.">
        <form onSubmit={find} role="search">
          <Group gap="xs" wrap="nowrap">
            <TextInput placeholder="chatcmpl-…" aria-label="Request id" value={search} onChange={(event) => setSearch(event.currentTarget.value)} spellCheck={false} />
            <Button type="submit" variant="default">
              Open
            </Button>
          </Group>
        </form>
      </PageHead>
      <SimpleGrid cols={{ base: 2, sm: 3, md: 6 }} spacing="xs" mb="md">
        <Select aria-label="Model" placeholder="Any model" {...models} value={filter.model || null} onChange={(value) => set({ model: value ?? '' })} clearable searchable limit={CHOICES_MAX} />
        <Select aria-label="Provider" placeholder="Any provider" {...providers} value={filter.provider || null} onChange={(value) => set({ provider: value ?? '' })} clearable />
        <Select
          aria-label="Key"
          placeholder="Any key"
          data={[...keys]}
          value={filter.key || null}
          onChange={(value) => set({ key: value ?? '' })}
          onSearchChange={setTypedKey}
          filter={({ search: typed, limit }) => keys.filter((choice) => isFoundBy(typed, choice)).slice(0, limit)}
          nothingFoundMessage="Type a key’s name or whole id"
          clearable
          searchable
          limit={CHOICES_MAX}
        />
        <Select aria-label="State" placeholder="Any state" data={['completed', 'failed']} value={filter.status || null} onChange={(value) => set({ status: value ?? '' })} clearable />
        <TextInput aria-label="From" type="date" value={filter.from} onChange={(event) => set({ from: event.currentTarget.value })} />
        <TextInput aria-label="To" type="date" value={filter.to} onChange={(event) => set({ to: event.currentTarget.value })} />
      </SimpleGrid>
      <Panel flush>
        <Loaded query={requests} height={420}>
          {({ data, has_more: hasMore, last_id: last }) =>
            data.length === 0 ? (
              <Empty title={isFiltered ? 'Nothing matches' : 'No requests yet'}>
                {isFiltered ? (
                  <Button variant="subtle" size="xs" onClick={() => set(NONE)}>
                    Clear the filter
                  </Button>
                ) : (
                  <>
                    Send one with your key, or <Link to="/playground">try the playground</Link>.
                  </>
                )}
              </Empty>
            ) : (
              <>
                <Rows>
                  <Table verticalSpacing="xs" horizontalSpacing="md">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Time</Table.Th>
                        <Table.Th>Model</Table.Th>
                        <Table.Th>Provider</Table.Th>
                        <Table.Th>State</Table.Th>
                        <Table.Th className="number">Tokens</Table.Th>
                        <Table.Th className="number">Latency</Table.Th>
                        <Table.Th className="number">Cost</Table.Th>
                        <Table.Th className="number">Saved</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {data.map((row) => (
                        <Table.Tr key={row.id} data-link onClick={follow(`/requests/${row.id}`)}>
                          <Table.Td style={{ whiteSpace: 'nowrap' }}>
                            <a href={hrefOf(`/requests/${row.id}`)} onClick={follow(`/requests/${row.id}`)} style={{ color: 'inherit' }}>
                              {formatInstant(row.created)}
                            </a>
                          </Table.Td>
                          <Table.Td>
                            <Text size="sm">{row.model ?? '–'}</Text>
                            {row.routed_from !== null && row.routed_from !== row.model ? (
                              <Text size="xs" c="dimmed">
                                asked for {row.routed_from}
                              </Text>
                            ) : null}
                          </Table.Td>
                          <Table.Td>{row.provider ?? '–'}</Table.Td>
                          <Table.Td>
                            <StatusBadge row={row} />
                          </Table.Td>
                          <Table.Td className="number">{formatCount(row.prompt_tokens + row.completion_tokens)}</Table.Td>
                          <Table.Td className="number">{formatMs(row.latency_ms)}</Table.Td>
                          <Table.Td className="number">{formatUsd(row.cost_usd)}</Table.Td>
                          <Table.Td className="number">{formatUsd(row.savings_usd)}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </Rows>
                <Pages hasBefore={after.length > 0} hasMore={hasMore} onBefore={() => setAfter(after.slice(0, -1))} onMore={() => last !== null && setAfter([...after, last])} />
              </>
            )
          }
        </Loaded>
      </Panel>
    </>
  );
}
