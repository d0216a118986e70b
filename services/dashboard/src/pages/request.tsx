/** One request: why it went where it went, what was tried, what it cost. */
import { Badge, Button, Group, SimpleGrid, Skeleton, Stack, Table, Text } from '@mantine/core';
import type { ReactElement, ReactNode } from 'react';
import { ApiError } from '../lib/api.js';
import { decisionInWords, leftOutInWords } from '../lib/decision.js';
import { formatCount, formatInstant, formatMs, formatTime } from '../lib/format.js';
import { bookedFirst, exactUsd, formatUsd } from '../lib/money.js';
import { navigate } from '../lib/route.js';
import { useApi } from '../lib/use-api.js';
import type { Decision, RequestDetail } from '../lib/types.js';
import { Icon } from '../parts/icon.tsx';
import { Empty, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';
import { StatusBadge } from './requests.tsx';

const BUCKETS: Readonly<Record<string, string>> = { input_uncached: 'read', cache_read: 'read from cache', cache_write: 'written to cache', output_text: 'written', output_reasoning: 'reasoning', audio: 'audio', image: 'image' };

const SOURCES: Readonly<Record<string, string>> = { provider: 'the provider’s count', estimated: 'the gateway’s own count', orphan: 'a stand-in for a count that was lost' };

function Fact({ label, children }: { readonly label: string; readonly children: ReactNode }): ReactElement {
  return (
    <div style={{ minWidth: 0 }}>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" fw={600} component="div" style={{ overflowWrap: 'anywhere' }}>
        {children}
      </Text>
    </div>
  );
}

/** The router's own words. */
function Why({ decision }: { readonly decision: Decision }): ReactElement {
  const leftOut = leftOutInWords(decision.excluded);
  return (
    <>
      {decision.why === '' ? null : <Text size="sm">{decision.why}</Text>}
      {leftOut === undefined ? null : <Text size="sm">{leftOut}</Text>}
    </>
  );
}

const CONSIDERED_MAX = 8;

function Considered({ decision: { candidates } }: { readonly decision: Decision }): ReactElement | null {
  if (candidates.length < 2) return null;
  return (
    <Panel title="Considered" flush side={<Text size="xs" c="dimmed">{candidates.length > CONSIDERED_MAX ? `the first ${CONSIDERED_MAX} of ${candidates.length}` : 'forecasts, never billed'}</Text>}>
      <Rows>
        <Table verticalSpacing="sm" horizontalSpacing="md">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Endpoint</Table.Th>
              <Table.Th className="number">Predicted quality</Table.Th>
              <Table.Th className="number">Expected cost</Table.Th>
              <Table.Th className="number">P75 latency</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {candidates.slice(0, CONSIDERED_MAX).map((candidate) => (
              <Table.Tr key={candidate.endpoint}>
                <Table.Td>{candidate.endpoint}</Table.Td>
                <Table.Td className="number">{candidate.quality === null ? '–' : `${(candidate.quality * 100).toFixed(1)} %`}</Table.Td>
                <Table.Td className="number">{formatUsd(candidate.expected_cost_usd)}</Table.Td>
                <Table.Td className="number">{formatMs(candidate.latency_ms_p75)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Rows>
    </Panel>
  );
}

export function RequestPage({ id }: { readonly id: string }): ReactElement {
  const request = useApi<RequestDetail>(`/api/requests/${encodeURIComponent(id)}`);
  const decisionId = request.data?.decision_id ?? null;
  // Kept for days, and not for every request: without it the page says less.
  const decision = useApi<Decision>(`/v1/decisions/${encodeURIComponent(decisionId ?? '')}`, { isEnabled: decisionId !== null });
  const isUnknown = request.error instanceof ApiError && request.error.status === 404;
  return (
    <>
      <PageHead title="Request" hint={id}>
        <Button variant="default" leftSection={<Icon name="back" />} onClick={() => navigate('/requests')}>
          All requests
        </Button>
      </PageHead>
      {isUnknown ? (
        <Panel>
          <Empty title="No such request">It is not one of this account, was refused before any provider was asked, or has not been booked yet.</Empty>
        </Panel>
      ) : (
        <Loaded query={request} height={420}>
          {(found) =>
            decision.isLoading || decision.isPlaceholderData ? (
              <Skeleton height={420} radius="md" aria-label="Loading" role="status" />
            ) : (
            <Stack gap="md">
              <Panel title="What happened" side={<StatusBadge row={found} />}>
                <Stack gap={6}>
                  {decisionInWords(found).map((sentence) => (
                    <Text key={sentence} size="sm">
                      {sentence}
                    </Text>
                  ))}
                  {decision.data === undefined ? null : <Why decision={decision.data} />}
                </Stack>
                <SimpleGrid cols={{ base: 2, sm: 3, md: 4 }} mt="lg" spacing="md">
                  <Fact label="Time">{formatInstant(found.created)}</Fact>
                  <Fact label="Asked for">{found.routed_from ?? '–'}</Fact>
                  <Fact label={found.status === 'failed' ? 'Asked last' : 'Answered by'}>{found.model ?? '–'}</Fact>
                  <Fact label="Provider">{found.provider ?? '–'}</Fact>
                  <Fact label={found.attempts.length > 1 ? 'Last attempt' : 'Whole answer'}>{formatMs(found.latency_ms)}</Fact>
                  <Fact label={found.attempts.length > 1 ? 'Its first token' : 'First token'}>{formatMs(found.time_to_first_token_ms)}</Fact>
                  <Fact label="Tokens">
                    {formatCount(found.prompt_tokens)} read, {formatCount(found.completion_tokens)} written
                  </Fact>
                  <Fact label="Finished because">{found.finish_reason ?? '–'}</Fact>
                  <Fact label="Cost">{exactUsd(found.cost_usd)}</Fact>
                  <Fact label="Charged">{exactUsd(found.charge_usd)}</Fact>
                  <Fact label="Saved">{exactUsd(found.savings_usd)}</Fact>
                  <Fact label="Decision">{found.decision_id ?? '–'}</Fact>
                </SimpleGrid>
              </Panel>
              {decision.data === undefined ? null : <Considered decision={decision.data} />}
              <Panel title="Attempts" flush>
                <Rows>
                  <Table verticalSpacing="sm" horizontalSpacing="md">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>#</Table.Th>
                        <Table.Th>Provider</Table.Th>
                        <Table.Th>Outcome</Table.Th>
                        <Table.Th>Tokens</Table.Th>
                        <Table.Th className="number">Latency</Table.Th>
                        <Table.Th className="number">Cost</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {found.attempts.map((attempt) => (
                        <Table.Tr key={attempt.attempt}>
                          <Table.Td>{attempt.attempt}</Table.Td>
                          <Table.Td>
                            <Text size="sm">{attempt.provider}</Text>
                            <Text size="xs" c="dimmed">
                              {attempt.endpoint_id ?? attempt.model}
                            </Text>
                          </Table.Td>
                          <Table.Td>
                            <Group gap={6}>
                              <Badge variant="light" color={attempt.failure === null ? 'teal' : 'red'}>
                                {attempt.failure?.replaceAll('_', ' ') ?? 'answered'}
                              </Badge>
                              {attempt.charged ? <Badge variant="default">charged</Badge> : null}
                            </Group>
                          </Table.Td>
                          <Table.Td>
                            <Text size="xs">
                              {Object.entries(attempt.tokens)
                                .filter(([, count]) => count > 0)
                                .map(([bucket, count]) => `${formatCount(count)} ${BUCKETS[bucket] ?? bucket}`)
                                .join(', ') || 'none'}
                            </Text>
                          </Table.Td>
                          <Table.Td className="number">{formatMs(attempt.latency_ms)}</Table.Td>
                          <Table.Td className="number">
                            {exactUsd(attempt.cost_usd)}
                            {attempt.plugins_usd > 0 ? (
                              <Text size="xs" c="dimmed">
                                plugins {exactUsd(attempt.plugins_usd)}
                              </Text>
                            ) : null}
                          </Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </Rows>
              </Panel>
              <Panel title="Ledger" flush>
                <Rows>
                  <Table verticalSpacing="sm" horizontalSpacing="md">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Line</Table.Th>
                        <Table.Th>Period</Table.Th>
                        <Table.Th className="number">Amount</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      <Table.Tr>
                        <Table.Td>Charge, by {SOURCES[found.charge.source ?? ''] ?? 'the gateway’s count'}</Table.Td>
                        <Table.Td>{found.charge.period}</Table.Td>
                        <Table.Td className="number">{exactUsd(bookedFirst(found.charge))}</Table.Td>
                      </Table.Tr>
                      {found.charge.adjustments.map((line, index) => (
                        <Table.Tr key={index}>
                          <Table.Td>Correction of {formatTime(line.at)}</Table.Td>
                          <Table.Td>{line.period}</Table.Td>
                          <Table.Td className="number">{exactUsd(line.amount_usd)}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                    {found.charge.adjustments.length === 0 ? null : (
                      <Table.Tfoot>
                        <Table.Tr>
                          <Table.Th colSpan={2}>Charged</Table.Th>
                          <Table.Th className="number">{exactUsd(found.charge.amount_usd)}</Table.Th>
                        </Table.Tr>
                      </Table.Tfoot>
                    )}
                  </Table>
                </Rows>
              </Panel>
            </Stack>
            )
          }
        </Loaded>
      )}
    </>
  );
}
