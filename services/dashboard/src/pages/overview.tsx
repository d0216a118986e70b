/** What was spent and saved, on what, and what is left. */
import { Box, Group, SegmentedControl, Select, SimpleGrid, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useMemo, type ReactElement } from 'react';
import { formatCount, formatCounted, formatMs, formatShort, utcDay, utcDays } from '../lib/format.js';
import { formatUsd, spentUsd, sumUsd } from '../lib/money.js';
import { useKept } from '../lib/route.js';
import { useApi, useKeyNames, useNameChoice } from '../lib/use-api.js';
import { queryText } from '../lib/api.js';
import type { Limits, Page, RequestRow, UsageRow } from '../lib/types.js';
import { Chart } from '../parts/chart.tsx';
import { Link } from '../parts/link.tsx';
import { Meter } from '../parts/meter.tsx';
import { OnlySimulator } from '../parts/only-simulator.tsx';
import { Empty, Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

const DAY_MS = 86_400_000;
const RANGES = { '7': 'Week', '30': '30 days', '90': '90 days' } as const;
type Range = keyof typeof RANGES;
/** Empty = any. */
interface Filter {
  readonly model: string;
  readonly provider: string;
}
const ANY: Filter = { model: '', provider: '' };
/** Seldom: these calls count to the account's own rate limit. */
const EVERY_MS = 30_000;
const LIMITS_EVERY_MS = 10_000;

/** Rows of a breakdown. */
const SHOWN_MAX = 8;

const usdAxis = (value: number): string => formatUsd(value);
const msAxis = (value: number): string => formatMs(value);
const PERIODS = { day: 'today', week: 'this week', month: 'this month', total: 'in all' } as const;

function quantile(values: readonly number[], share: number): number | undefined {
  const ordered = [...values].sort((one, other) => one - other);
  return ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * share))];
}

/** As high before its value is known as after. */
function Figure({ label, value, hint }: { readonly label: string; readonly value: string | undefined; readonly hint?: string | undefined }): ReactElement {
  return (
    <Box className="panel" p="md">
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      {value === undefined ? <Skeleton height={28} my={2} w="60%" aria-label="Loading" role="status" /> : <div className="figure">{value}</div>}
      <Text size="xs" c="dimmed" mih={18}>
        {value === undefined ? null : hint}
      </Text>
    </Box>
  );
}

interface BreakdownProps {
  readonly title: string;
  readonly group: 'model' | 'provider' | 'key';
  readonly from: string;
  readonly filter: Filter;
  /** False while more important figures are asked for: an account may begin few calls at once. */
  readonly isNext: boolean;
}

function Breakdown({ title, group, from, filter, isNext }: BreakdownProps): ReactElement {
  // In order of cost: of more than a few pages by name, the dearest may be on none that is read.
  const usage = useApi<Page<UsageRow>>(`/api/usage${queryText({ group_by: group, from, ...filter, order: 'cost', limit: 100 })}`, { everyMs: EVERY_MS, isEnabled: isNext });
  const keys = useKeyNames({ isEnabled: isNext && group === 'key' });
  const count = usage.data?.data.length ?? 0;
  return (
    <Panel title={title} flush side={count > SHOWN_MAX ? <Text size="xs" c="dimmed">{`the dearest ${SHOWN_MAX} of ${usage.data?.has_more === true ? 'more than ' : ''}${formatCount(count)}`}</Text> : undefined}>
      <Loaded query={usage} height={160}>
        {({ data }) => {
          const rows = data.slice(0, SHOWN_MAX);
          const most = Math.max(...rows.map(({ cost_usd: cost }) => cost), 0);
          return rows.length === 0 ? (
            <Empty title="Nothing yet" />
          ) : (
            <Rows>
              <Table verticalSpacing="xs" horizontalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{`${group.charAt(0).toUpperCase()}${group.slice(1)}`}</Table.Th>
                    <Table.Th className="number">Requests</Table.Th>
                    <Table.Th className="number">Tokens</Table.Th>
                    <Table.Th className="number">Median</Table.Th>
                    <Table.Th className="number">Cost</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rows.map((row) => {
                    const id = row[group] ?? '';
                    const name = (group === 'key' ? keys.find((key) => key.id === id)?.name : undefined) ?? id;
                    return (
                      <Table.Tr key={id}>
                        <Table.Td>
                          <Text size="sm" className="name">{name === '' ? 'none' : name}</Text>
                          <Box h={3} mt={4} w={`${most > 0 ? Math.max(1, (row.cost_usd / most) * 100) : 0}%`} bg="var(--series-1)" style={{ borderRadius: 2 }} />
                        </Table.Td>
                        <Table.Td className="number">{formatShort(row.requests)}</Table.Td>
                        <Table.Td className="number">{formatShort(row.prompt_tokens + row.completion_tokens)}</Table.Td>
                        <Table.Td className="number">{formatMs(row.latency_ms_p50)}</Table.Td>
                        <Table.Td className="number">{formatUsd(row.cost_usd)}</Table.Td>
                      </Table.Tr>
                    );
                  })}
                </Table.Tbody>
              </Table>
            </Rows>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function LimitBars(): ReactElement {
  const limits = useApi<Limits>('/api/limits', { everyMs: LIMITS_EVERY_MS });
  return (
    <Panel title="Caps and allotment" side={<Link to="/policy" size="sm">Change</Link>}>
      <Loaded query={limits} height={120}>
        {(found) => (
          <Stack gap="lg">
            {found.tokens === null ? null : (
              <Meter label={`Tokens of your plan${found.tokens.hard_cap ? '' : ', then overage'}`} spent={found.tokens.used} reserved={found.tokens.reserved} limit={found.tokens.included} format={formatShort} resetsAt={found.tokens.resets_at} />
            )}
            {found.byok_tokens === null ? null : <Meter label="Tokens over your own credentials" spent={found.byok_tokens.used} reserved={found.byok_tokens.reserved} limit={found.byok_tokens.included} format={formatShort} resetsAt={found.byok_tokens.resets_at} />}
            {found.trial_credit === null ? null : <Meter label="Trial credit" spent={found.trial_credit.spent_usd} reserved={found.trial_credit.reserved_usd} limit={found.trial_credit.limit_usd} format={formatUsd} />}
            {found.caps.map((cap, at) => (
              <Meter
                // The operator and the account's policy may both cap a period.
                key={`${cap.scope} ${cap.period} ${at}`}
                label={`${cap.scope === 'account' ? 'Account' : 'This key'}, ${PERIODS[cap.period]}`}
                spent={cap.spent_usd}
                reserved={cap.reserved_usd}
                limit={cap.limit_usd}
                format={formatUsd}
                resetsAt={cap.resets_at}
              />
            ))}
            {found.tokens === null && found.byok_tokens === null && found.trial_credit === null && found.caps.length === 0 ? (
              <Text size="sm" c="dimmed">
                No cap and no allotment: {formatUsd(found.spent_usd)} spent in all, {formatUsd(found.reserved_usd)} reserved for requests that run now.
              </Text>
            ) : null}
            <Text size="xs" c="dimmed">
              {found.requests_per_minute === null ? 'No limit of requests per minute.' : `${formatCounted(found.requests_per_minute, 'request')} a minute${found.burst_per_second === null ? '' : `, ${found.burst_per_second} in one second`}.`}
            </Text>
          </Stack>
        )}
      </Loaded>
    </Panel>
  );
}

export function Overview(): ReactElement {
  const [range, setRange] = useKept<Range>('range', '7');
  const [filter, setFilter] = useKept<Filter>('filter', ANY);
  const models = useNameChoice('model', filter.model);
  const providers = useNameChoice('provider', filter.provider);
  const nowMs = Date.now();
  const from = utcDay(nowMs - (Number(range) - 1) * DAY_MS);
  const days = useApi<Page<UsageRow>>(`/api/usage${queryText({ group_by: 'day', from, ...filter, limit: 100 })}`, { everyMs: EVERY_MS });
  const isNext = days.isFetched;
  const latest = useApi<Page<RequestRow>>(`/api/requests${queryText({ from, ...filter, status: 'completed', limit: 100 })}`, { everyMs: EVERY_MS });

  const byDay = useMemo(() => {
    const found = new Map((days.data?.data ?? []).map((row) => [row.day ?? '', row]));
    const names = utcDays(Date.parse(from), nowMs);
    return {
      times: names.map((name) => Date.parse(name) / 1_000),
      spent: names.map((name) => spentUsd(found.get(name))),
      savings: names.map((name) => Math.max(0, found.get(name)?.savings_usd ?? 0)),
      read: names.map((name) => found.get(name)?.prompt_tokens ?? 0),
      written: names.map((name) => found.get(name)?.completion_tokens ?? 0),
      requests: names.map((name) => found.get(name)?.requests ?? 0),
      half: names.map((name) => found.get(name)?.latency_ms_p50 ?? null),
      tail: names.map((name) => found.get(name)?.latency_ms_p95 ?? null),
      first: names.map((name) => found.get(name)?.time_to_first_token_ms_p50 ?? null),
    };
    // The instant itself only moves the range once a day, and `from` with it.
  }, [days.data, from]);
  const durations = useMemo(() => (latest.data?.data ?? []).map((row) => row.latency_ms), [latest.data]);

  const rows = days.data?.data ?? [];
  const spent = sumUsd(rows.map(spentUsd));
  const cost = sumUsd(rows.map((row) => row.cost_usd));
  const savings = sumUsd(rows.map((row) => row.savings_usd));
  const requests = rows.reduce((sum, row) => sum + row.requests, 0);
  const read = rows.reduce((sum, row) => sum + row.prompt_tokens, 0);
  const written = rows.reduce((sum, row) => sum + row.completion_tokens, 0);
  const saved = cost + savings > 0n && savings > 0n ? `${Number((savings * 1_000n) / (cost + savings)) / 10}% less than the baseline` : undefined;
  const shown = (text: string): string | undefined => (days.data === undefined ? undefined : text);
  const half = quantile(durations, 0.5);
  const tail = quantile(durations, 0.95);

  return (
    <>
      <PageHead title="Overview" hint="Spending, savings, tokens and latency. Days are UTC.">
        <Group gap="xs" className="filters">
          <Select aria-label="Model" placeholder="Any model" {...models} value={filter.model || null} onChange={(value) => setFilter({ ...filter, model: value ?? '' })} clearable searchable />
          <Select aria-label="Provider" placeholder="Any provider" {...providers} value={filter.provider || null} onChange={(value) => setFilter({ ...filter, provider: value ?? '' })} clearable />
          <SegmentedControl value={range} onChange={(value) => setRange(value as Range)} data={Object.entries(RANGES).map(([value, label]) => ({ value, label }))} aria-label="Time range" />
        </Group>
      </PageHead>
      <OnlySimulator />
      <Stack gap="md">
        {days.isError && days.data === undefined ? (
          <Failure error={days.error} again={() => void days.refetch()} />
        ) : (
          <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="md">
            <Figure label="Spent" value={shown(formatUsd(spent))} hint={`on ${formatCounted(requests, 'request')}${cost === spent ? '' : `, which cost ${formatUsd(cost)}`}`} />
            <Figure label="Saved by routing" value={shown(formatUsd(savings))} hint={saved} />
            <Figure label="Tokens" value={shown(formatShort(read + written))} hint={`${formatShort(read)} read, ${formatShort(written)} written`} />
            <Figure label="Latency" value={latest.isPending ? undefined : formatMs(half)} hint={tail === undefined ? undefined : `P95 ${formatMs(tail)}, latest ${formatCounted(durations.length, 'request')}`} />
          </SimpleGrid>
        )}
        {days.data !== undefined && requests === 0 ? (
          <Panel>
            <Empty title="No requests in this time">
              Send one with your key, or <Link to="/playground">try the playground</Link>.
            </Empty>
          </Panel>
        ) : null}
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
          <Panel title="Spent and saved, by day" side={<Legend entries={[['Spent', 1], ['Saved', 2]]} />}>
            <Loaded query={days} height={220}>
              {() => (
                <Chart
                  description={`Spent ${formatUsd(spent)} and saved ${formatUsd(savings)} over ${formatCounted(byDay.times.length, 'day')}.`}
                  times={byDay.times}
                  isDaily
                  format={usdAxis}
                  series={[
                    { label: 'Spent', values: byDay.spent, color: 1, kind: 'bars' },
                    { label: 'Saved', values: byDay.savings, color: 2 },
                  ]}
                />
              )}
            </Loaded>
          </Panel>
          <Panel title="Tokens, by day" side={<Legend entries={[['Read', 3], ['Written', 4]]} />}>
            <Loaded query={days} height={220}>
              {() => (
                <Chart
                  description={`${formatShort(read)} tokens read and ${formatShort(written)} written.`}
                  times={byDay.times}
                  isDaily
                  format={formatShort}
                  series={[
                    { label: 'Read', values: byDay.read, color: 3, kind: 'bars' },
                    { label: 'Written', values: byDay.written, color: 4 },
                  ]}
                />
              )}
            </Loaded>
          </Panel>
          <Panel title="Requests, by day">
            <Loaded query={days} height={220}>
              {() => <Chart description={`${formatCounted(requests, 'request')}.`} times={byDay.times} isDaily format={formatShort} series={[{ label: 'Requests', values: byDay.requests, color: 1, kind: 'bars' }]} />}
            </Loaded>
          </Panel>
          <Panel title="Latency, by day" side={<Legend entries={[['Median', 1], ['P95', 2], ['First token', 3]]} />}>
            <Loaded query={days} height={220}>
              {() =>
                byDay.half.every((ms) => ms === null) ? (
                  <Box h={220}>
                    <Empty title="No answers to time yet" />
                  </Box>
                ) : (
                  <Chart
                    description={`Median duration of answers on the latest day with any: ${formatMs(byDay.half.findLast((ms) => ms !== null))}; 95th percentile ${formatMs(byDay.tail.findLast((ms) => ms !== null))}.`}
                    times={byDay.times}
                    isDaily
                    format={msAxis}
                    series={[
                      { label: 'Median', values: byDay.half, color: 1, kind: 'dotted' },
                      { label: 'P95', values: byDay.tail, color: 2, kind: 'dotted' },
                      { label: 'First token', values: byDay.first, color: 3, kind: 'dotted' },
                    ]}
                  />
                )
              }
            </Loaded>
          </Panel>
          <LimitBars />
          <Breakdown title="By model" group="model" from={from} filter={filter} isNext={isNext} />
          <Breakdown title="By provider" group="provider" from={from} filter={filter} isNext={isNext} />
          <Breakdown title="By key" group="key" from={from} filter={filter} isNext={isNext} />
        </SimpleGrid>
      </Stack>
    </>
  );
}

function Legend({ entries }: { readonly entries: readonly (readonly [string, number])[] }): ReactElement {
  return (
    <Group gap="sm">
      {entries.map(([label, color]) => (
        <Group gap={6} key={label}>
          <Box w={10} h={10} bg={`var(--series-${color})`} style={{ borderRadius: 3 }} />
          <Text size="xs">{label}</Text>
        </Group>
      ))}
    </Group>
  );
}
