/** Bills, line by line. */
import { Badge, Button, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useState, type ReactElement } from 'react';
import { callRaw } from '../lib/api.js';
import { formatCount, formatUtcDate } from '../lib/format.js';
import { exactUsd, formatUsd } from '../lib/money.js';
import { navigate } from '../lib/route.js';
import { useApi, useEnded } from '../lib/use-api.js';
import type { Page, Statement, StatementRow } from '../lib/types.js';
import { Icon } from '../parts/icon.tsx';
import { follow, Link } from '../parts/link.tsx';
import { Empty, Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

function StatusOf({ status }: { readonly status: string }): ReactElement {
  return (
    <Badge variant="light" color={status === 'open' ? 'blue' : 'teal'}>
      {status}
    </Badge>
  );
}

async function download(period: string): Promise<void> {
  const response = await callRaw(`/api/statements/${encodeURIComponent(period)}`, { headers: { accept: 'text/csv' } });
  const address = URL.createObjectURL(await response.blob());
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = `statement-${period}.csv`;
  anchor.click();
  URL.revokeObjectURL(address);
}

function One({ period }: { readonly period: string }): ReactElement {
  const statement = useApi<Statement>(`/api/statements/${encodeURIComponent(period)}`);
  const [problem, setProblem] = useState<unknown>();
  const ended = useEnded();
  const fetchCsv = async (): Promise<void> => {
    setProblem(undefined);
    try {
      await download(period);
    } catch (error) {
      ended(error);
      setProblem(error);
    }
  };
  return (
    <>
      <PageHead title={`Statement ${period}`}>
        <Group gap="xs">
          <Button variant="default" leftSection={<Icon name="back" />} onClick={() => navigate('/statements')}>
            All
          </Button>
          <Button onClick={() => void fetchCsv()}>CSV</Button>
        </Group>
      </PageHead>
      {problem === undefined ? null : <Failure error={problem} />}
      <Loaded query={statement} height={420}>
        {(bill) => (
          <Stack gap="md">
            <SimpleGrid cols={{ base: 2, sm: 3, md: 6 }} spacing="sm">
              {(
                [
                  ['Total', bill.total_usd],
                  ['Models', bill.model_spend_usd],
                  ['Subscription', bill.subscription_usd],
                  ['Overage', bill.overage_usd],
                  ['Plugins', bill.plugins_usd],
                  ['Corrections', bill.adjustments_usd],
                  ...(bill.trial_credit_usd === 0 ? [] : [['Trial credit', bill.trial_credit_usd] as const]),
                ] as const
              ).map(([label, amount]) => (
                <div className="panel" key={label}>
                  <Stack gap={2} p="sm">
                    <Text size="xs" c="dimmed">
                      {label}
                    </Text>
                    <Text fw={650}>{formatUsd(amount)}</Text>
                  </Stack>
                </div>
              ))}
            </SimpleGrid>
            <Panel title={`${formatUtcDate(bill.starts_at)} to ${formatUtcDate(bill.ends_at - 1)}, UTC`} side={<StatusOf status={bill.status} />} flush>
              <Rows>
                <Table verticalSpacing="xs" horizontalSpacing="md">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Line</Table.Th>
                      <Table.Th>Model</Table.Th>
                      <Table.Th>Provider</Table.Th>
                      <Table.Th className="number">Requests</Table.Th>
                      <Table.Th className="number">Tokens</Table.Th>
                      <Table.Th className="number">Amount</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {bill.lines.map((line, index) => (
                      <Table.Tr key={index}>
                        <Table.Td>{line.description}</Table.Td>
                        <Table.Td>{line.model ?? ''}</Table.Td>
                        <Table.Td>{line.provider ?? ''}</Table.Td>
                        <Table.Td className="number">{line.requests === 0 ? '' : formatCount(line.requests)}</Table.Td>
                        <Table.Td className="number">{line.tokens === 0 ? '' : formatCount(line.tokens)}</Table.Td>
                        <Table.Td className="number">{exactUsd(line.amount_usd)}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                  <Table.Tfoot>
                    <Table.Tr>
                      <Table.Th colSpan={5}>Total</Table.Th>
                      <Table.Th className="number">{exactUsd(bill.total_usd)}</Table.Th>
                    </Table.Tr>
                  </Table.Tfoot>
                </Table>
              </Rows>
            </Panel>
          </Stack>
        )}
      </Loaded>
    </>
  );
}

export function Statements({ period }: { readonly period?: string }): ReactElement {
  if (period !== undefined) return <One key={period} period={period} />;
  return <All />;
}

function All(): ReactElement {
  const statements = useApi<Page<StatementRow>>('/api/statements?limit=100');
  return (
    <>
      <PageHead title="Statements" hint="The same figures line by line, as JSON and CSV. Periods are UTC." />
      <Panel flush>
        <Loaded query={statements} height={200}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No statements yet">The first one opens with your first request.</Empty>
            ) : (
              <Rows>
                <Table verticalSpacing="sm" horizontalSpacing="md">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Period</Table.Th>
                      <Table.Th>From</Table.Th>
                      <Table.Th>Until</Table.Th>
                      <Table.Th>State</Table.Th>
                      <Table.Th className="number">Models</Table.Th>
                      <Table.Th className="number">With plugins and corrections</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {data.map((row) => (
                      <Table.Tr key={row.period} data-link onClick={follow(`/statements/${row.period}`)}>
                        <Table.Td>
                          <Link to={`/statements/${row.period}`}>{row.period}</Link>
                        </Table.Td>
                        <Table.Td>{formatUtcDate(row.starts_at)}</Table.Td>
                        <Table.Td>{formatUtcDate(row.ends_at - 1)}</Table.Td>
                        <Table.Td>
                          <StatusOf status={row.status} />
                        </Table.Td>
                        <Table.Td className="number">{formatUsd(row.model_spend_usd)}</Table.Td>
                        <Table.Td className="number">{formatUsd(row.charge_usd)}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Rows>
            )
          }
        </Loaded>
      </Panel>
    </>
  );
}
