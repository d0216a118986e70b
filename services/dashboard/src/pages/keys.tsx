/** The account's API keys: made, shown once, limited, disabled, rotated, revoked. */
import { ActionIcon, Badge, Button, Group, Modal, Select, Table, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import { useState, type ReactElement } from 'react';
import { queryText } from '../lib/api.js';
import { limitLines } from '../lib/caps.js';
import { formatDate, formatTime } from '../lib/format.js';
import { useKept } from '../lib/route.js';
import { useApi, useMayChange } from '../lib/use-api.js';
import type { KeyRecord, Page } from '../lib/types.js';
import { Icon } from '../parts/icon.tsx';
import { Empty, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';
import { NewKey, Revoke, Rotate, Switch, type OfKey } from './key-dialogs.tsx';
import { Limits } from './key-limits-dialog.tsx';

/** Keys are made and revoked by programs and in other tabs too. */
const EVERY_MS = 15_000;
/** Ids after which the pages before this one began. */
const FIRST: readonly string[] = [];
const COLORS = { active: 'teal', rotating: 'blue', disabled: 'gray', expired: 'orange', revoked: 'red' } as const;

interface Action {
  readonly name: string;
  /** The words of its button. */
  readonly label: (record: KeyRecord) => string;
  readonly title: (record: KeyRecord) => string;
  readonly color?: 'red';
  readonly Body: (props: OfKey) => ReactElement;
}

const ACTIONS: readonly Action[] = [
  { name: 'limits', label: () => 'Limits', title: () => 'Limits of a key', Body: Limits },
  { name: 'switch', label: ({ status }) => (status === 'disabled' ? 'Enable' : 'Disable'), title: ({ status }) => (status === 'disabled' ? 'Enable a key' : 'Disable a key'), Body: Switch },
  { name: 'rotate', label: () => 'Rotate', title: () => 'Rotate a key', Body: Rotate },
  { name: 'revoke', label: () => 'Revoke', title: () => 'Revoke a key', color: 'red', Body: Revoke },
];

/** A key that was revoked has no button left to go back to: who works by keyboard goes on at the page. */
function keepFocus(): void {
  if (document.activeElement === document.body) document.getElementById('main')?.focus({ preventScroll: true });
}

/** Keys may have one name, so each is also called by how its secret begins. */
function Actions({ record, onChoose }: { readonly record: KeyRecord; readonly onChoose: (action: Action) => void }): ReactElement {
  return (
    <Group gap={4} className="actions">
      {ACTIONS.map((action) => (
        <Button key={action.name} size="compact-sm" variant="subtle" {...(action.color === undefined ? {} : { color: action.color })} onClick={() => onChoose(action)} aria-label={`${action.label(record)} ${record.name} (${record.prefix}…)`}>
          {action.label(record)}
        </Button>
      ))}
    </Group>
  );
}

export function Keys(): ReactElement {
  // Of an account whose programs make and revoke keys, those that work may be many pages back.
  const [status, setStatus] = useKept('status', '');
  const [after, setAfter] = useKept('after', FIRST);
  const keys = useApi<Page<KeyRecord>>(`/api/auth${queryText({ limit: 50, status, after: after.at(-1) })}`, { everyMs: EVERY_MS });
  const show = (chosenStatus: string): void => {
    setStatus(chosenStatus);
    setAfter(FIRST);
  };
  const [isMaking, setIsMaking] = useState(false);
  const [chosen, setChosen] = useState<{ readonly action: Action; readonly record: KeyRecord; readonly title: string }>();
  // A dialog that waits, or tells a secret, is closed on purpose only.
  const [isHeld, setIsHeld] = useState(false);
  const kept = { closeOnClickOutside: false, closeOnEscape: !isHeld, withCloseButton: !isHeld, closeButtonProps: { 'aria-label': 'Close' } };
  const canChange = useMayChange();
  return (
    <>
      <PageHead title="API keys" hint="Each can do less, spend less and end sooner than your account.">
        <Group gap="xs">
          <Select aria-label="State" placeholder="Any state" data={Object.keys(COLORS)} value={status || null} onChange={(value) => show(value ?? '')} clearable w={150} />
          {canChange ? <Button onClick={() => setIsMaking(true)}>New key</Button> : null}
        </Group>
      </PageHead>
      <Panel flush>
        <Loaded query={keys} height={260}>
          {({ data, has_more: hasMore, last_id: last }) =>
            data.length === 0 ? (
              <Empty title={status === '' ? 'No keys' : 'Nothing matches'}>
                {status === '' ? null : (
                  <Button variant="subtle" size="xs" onClick={() => show('')}>
                    Clear the filter
                  </Button>
                )}
              </Empty>
            ) : (
              <>
                <Rows>
                  <Table verticalSpacing="sm" horizontalSpacing="sm">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name</Table.Th>
                        <Table.Th>State</Table.Th>
                        <Table.Th>May</Table.Th>
                        <Table.Th>Limits</Table.Th>
                        <Table.Th>Made</Table.Th>
                        <Table.Th>Last used</Table.Th>
                        <Table.Th>Expires</Table.Th>
                        <Table.Th>
                          <VisuallyHidden>Actions</VisuallyHidden>
                        </Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {data.map((record) => (
                        <Table.Tr key={record.id}>
                          <Table.Td>
                            <Text size="sm" fw={600} className="name">
                              {record.name}
                            </Text>
                            <Text size="xs" c="dimmed" ff="monospace">
                              {record.prefix}…
                            </Text>
                          </Table.Td>
                          <Table.Td>
                            <Badge variant="light" color={COLORS[record.status]}>
                              {record.status}
                            </Badge>
                          </Table.Td>
                          <Table.Td>
                            <Text size="xs">{record.scopes.join(', ')}</Text>
                          </Table.Td>
                          <Table.Td style={{ whiteSpace: 'pre-line' }}>{limitLines(record.limits).join('\n') || '–'}</Table.Td>
                          <Table.Td className="date">{formatDate(record.created_at)}</Table.Td>
                          <Table.Td>{formatTime(record.last_used_at)}</Table.Td>
                          <Table.Td className="date">{record.expires_at === null ? 'never' : formatDate(record.expires_at)}</Table.Td>
                          <Table.Td>
                            {!canChange || record.status === 'revoked' || record.status === 'expired' ? null : (
                              <Actions record={record} onChoose={(action) => setChosen({ action, record, title: action.title(record) })} />
                            )}
                          </Table.Td>
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
      <Modal opened={isMaking} onClose={() => setIsMaking(false)} title="New API key" {...kept}>
        <NewKey onHold={setIsHeld} onClose={() => setIsMaking(false)} />
      </Modal>
      <Modal opened={chosen !== undefined} onClose={() => setChosen(undefined)} title={chosen?.title} onExitTransitionEnd={keepFocus} {...kept}>
        {chosen === undefined ? null : <chosen.action.Body record={chosen.record} onHold={setIsHeld} onClose={() => setChosen(undefined)} />}
      </Modal>
    </>
  );
}

export function Pages({ hasBefore, hasMore, onBefore, onMore }: { readonly hasBefore: boolean; readonly hasMore: boolean; readonly onBefore: () => void; readonly onMore: () => void }): ReactElement | null {
  if (!hasBefore && !hasMore) return null;
  return (
    <Group justify="flex-end" p="sm">
      <Tooltip label="Newer">
        <ActionIcon variant="default" disabled={!hasBefore} onClick={onBefore} aria-label="Newer">
          <Icon name="back" />
        </ActionIcon>
      </Tooltip>
      <Button size="xs" variant="default" disabled={!hasMore} onClick={onMore}>
        Older
      </Button>
    </Group>
  );
}
