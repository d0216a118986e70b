/** The account's API keys: made, shown once, rotated, revoked. */
import { ActionIcon, Alert, Badge, Button, Checkbox, Code, CopyButton, Group, Modal, NumberInput, Select, SimpleGrid, Stack, Table, Text, TextInput, Tooltip, VisuallyHidden } from '@mantine/core';
import { useEffect, useState, type FormEvent, type ReactElement } from 'react';
import { limitLines } from '../lib/caps.js';
import { formatDate, formatTime } from '../lib/format.js';
import { useKept } from '../lib/route.js';
import { useApi, useChange, useMayChange, useSession } from '../lib/use-api.js';
import type { CapPeriod, KeyRecord, Page } from '../lib/types.js';
import { Icon } from '../parts/icon.tsx';
import { Empty, Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

const SCOPES: Readonly<Record<string, string>> = {
  inference: 'Send completions',
  'models:read': 'List models',
  keys: 'Manage keys, policy and provider keys',
  'usage:read': 'Read usage, requests and statements',
};
const EXPIRIES = [
  { value: '', label: 'Never' },
  { value: '86400', label: 'In a day' },
  { value: '604800', label: 'In a week' },
  { value: '2592000', label: 'In 30 days' },
  { value: '7776000', label: 'In 90 days' },
  { value: '31536000', label: 'In a year' },
];
const PERIODS: readonly { value: CapPeriod; label: string }[] = [
  { value: 'day', label: 'a day' },
  { value: 'week', label: 'a week' },
  { value: 'month', label: 'a month' },
  { value: 'total', label: 'in all' },
];
/** Ids after which the pages before this one began. */
const FIRST: readonly string[] = [];
const COLORS = { active: 'teal', rotating: 'blue', disabled: 'gray', expired: 'orange', revoked: 'red' } as const;

const GRACES = [
  { value: '0', label: 'Ends at once' },
  { value: '3600', label: 'Works for another hour' },
  { value: '86400', label: 'Works for another day' },
  { value: '604800', label: 'Works for another week' },
];

interface Telling {
  /** True while a secret is on its way or shown: whoever closed the dialog would never get it. */
  readonly onTelling: (isTelling: boolean) => void;
}

function useTelling({ isPending, data }: { readonly isPending: boolean; readonly data: KeyRecord | undefined }, onTelling: Telling['onTelling']): void {
  const isTelling = isPending || data?.key !== undefined;
  useEffect(() => {
    onTelling(isTelling);
    return () => onTelling(false);
  }, [isTelling, onTelling]);
}

/** Shown this one time. */
function Secret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }): ReactElement {
  return (
    <Stack>
      <Alert color="orange" variant="light" title="Copy it now" role="status">
        This is the only time that the key is shown.
      </Alert>
      <Group wrap="nowrap" align="stretch" gap="xs">
        <Code block style={{ flex: 1, overflowWrap: 'anywhere', whiteSpace: 'normal' }} data-testid="secret">
          {secret}
        </Code>
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy} leftSection={<Icon name={copied ? 'check' : 'copy'} />} h="auto" autoFocus>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Button onClick={onClose}>I have stored it</Button>
    </Stack>
  );
}

function Rotate({ record, onTelling, onClose }: Telling & { readonly record: KeyRecord; readonly onClose: () => void }): ReactElement {
  const session = useSession();
  const rotate = useChange<KeyRecord>(['/api/auth']);
  useTelling(rotate, onTelling);
  const isOwn = session.data?.key.id === record.id;
  // At once, the session would end before the new secret could be copied.
  const graces = isOwn ? GRACES.slice(1) : GRACES;
  const [grace, setGrace] = useState(graces[0]?.value ?? '3600');
  if (rotate.data?.key !== undefined) return <Secret secret={rotate.data.key} onClose={onClose} />;
  return (
    <Stack>
      <Text style={{ overflowWrap: 'anywhere' }}>
        Give <strong>{record.name}</strong> ({record.prefix}…) a new secret? Its limits, its name and its place in the books stay.
      </Text>
      <Select label="The old secret" data={graces} value={grace} onChange={(value) => setGrace(value ?? grace)} allowDeselect={false} data-autofocus />
      {isOwn ? (
        <Alert color="orange" variant="light">
          You are signed in with this key: until the old secret ends you can only read here. Sign in anew with the new one.
        </Alert>
      ) : null}
      {rotate.isError ? <Failure error={rotate.error} /> : null}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} disabled={rotate.isPending}>
          Cancel
        </Button>
        <Button loading={rotate.isPending} onClick={() => rotate.mutate({ path: `/api/auth/${record.id}/rotate`, method: 'POST', body: { grace_seconds: Number(grace) } })}>
          Rotate
        </Button>
      </Group>
    </Stack>
  );
}

function NewKey({ onTelling, onClose }: Telling & { readonly onClose: () => void }): ReactElement {
  const session = useSession();
  const allowed = (session.data?.key.scopes ?? []).filter((scope) => scope in SCOPES);
  const make = useChange<KeyRecord>(['/api/auth']);
  useTelling(make, onTelling);
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['inference', 'models:read'].filter((scope) => allowed.includes(scope)));
  const [expiry, setExpiry] = useState('7776000');
  const [cap, setCap] = useState<number | string>('');
  const [period, setPeriod] = useState<CapPeriod>('month');
  const [rate, setRate] = useState<number | string>('');

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate({
      path: '/api/auth',
      method: 'POST',
      body: {
        name: name.trim(),
        scopes,
        ...(expiry === '' ? {} : { expires_in: Number(expiry) }),
        limits: { ...(cap === '' ? {} : { cost_cap_usd: Number(cap), cost_cap_period: period }), ...(rate === '' ? {} : { requests_per_minute: Number(rate) }) },
      },
    });
  };

  if (make.data?.key !== undefined) {
    return <Secret secret={make.data.key} onClose={onClose} />;
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput label="Name" placeholder="ci, staging, Anna’s laptop" value={name} onChange={(event) => setName(event.currentTarget.value)} maxLength={100} required data-autofocus />
        <Checkbox.Group label="What it may do" value={scopes} onChange={setScopes}>
          <Stack gap={6} mt={6}>
            {allowed.map((scope) => (
              <Checkbox key={scope} value={scope} label={`${SCOPES[scope]} (${scope})`} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Select label="Expires" data={EXPIRIES} value={expiry} onChange={(value) => setExpiry(value ?? '')} allowDeselect={false} />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <NumberInput label="Cost cap (US$)" placeholder="None" min={0} decimalScale={9} value={cap} onChange={setCap} hideControls />
          <Select label="for" data={[...PERIODS]} value={period} onChange={(value) => setPeriod((value ?? 'month') as CapPeriod)} allowDeselect={false} />
        </SimpleGrid>
        <NumberInput label="Requests per minute" placeholder="The account’s" min={1} allowDecimal={false} value={rate} onChange={setRate} hideControls />
        {make.isError ? <Failure error={make.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={make.isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={make.isPending} disabled={name.trim() === '' || scopes.length === 0}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Revoke({ record, onClose }: { readonly record: KeyRecord; readonly onClose: () => void }): ReactElement {
  const session = useSession();
  const revoke = useChange<object>(['/api/auth']);
  const isOwn = session.data?.key.id === record.id;
  return (
    <Stack>
      <Text>
        Revoke <strong>{record.name}</strong> ({record.prefix}…)? Requests with it are refused at once, everywhere. This cannot be undone.
      </Text>
      {isOwn ? (
        <Alert color="orange" variant="light">
          You are signed in with this key: your session ends with it.
        </Alert>
      ) : null}
      {revoke.isError ? <Failure error={revoke.error} /> : null}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} data-autofocus>
          Keep it
        </Button>
        <Button color="red" loading={revoke.isPending} onClick={() => revoke.mutate({ path: `/api/auth/${record.id}`, method: 'DELETE' }, { onSuccess: onClose })}>
          Revoke
        </Button>
      </Group>
    </Stack>
  );
}

export function Keys(): ReactElement {
  const [after, setAfter] = useKept('after', FIRST);
  const keys = useApi<Page<KeyRecord>>(`/api/auth?limit=50${after.length === 0 ? '' : `&after=${after.at(-1)}`}`);
  const [isMaking, setIsMaking] = useState(false);
  const [revoked, setRevoked] = useState<KeyRecord>();
  const [rotated, setRotated] = useState<KeyRecord>();
  // A dialog that tells a secret is closed on purpose only.
  const [isTelling, setIsTelling] = useState(false);
  const canChange = useMayChange();
  return (
    <>
      <PageHead title="API keys" hint="Each can do less, spend less and end sooner than your account.">
        {canChange ? <Button onClick={() => setIsMaking(true)}>New key</Button> : null}
      </PageHead>
      <Panel flush>
        <Loaded query={keys} height={260}>
          {({ data, has_more: hasMore, last_id: last }) =>
            data.length === 0 ? (
              <Empty title="No keys" />
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
                              <Group gap={4} wrap="nowrap">
                                <Button size="compact-sm" variant="subtle" onClick={() => setRotated(record)} aria-label={`Rotate ${record.name}`}>
                                  Rotate
                                </Button>
                                <Button size="compact-sm" variant="subtle" color="red" onClick={() => setRevoked(record)} aria-label={`Revoke ${record.name}`}>
                                  Revoke
                                </Button>
                              </Group>
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
      <Modal opened={isMaking} onClose={() => setIsMaking(false)} title="New API key" closeOnClickOutside={false} closeOnEscape={!isTelling} withCloseButton={!isTelling} closeButtonProps={{ 'aria-label': 'Close' }}>
        <NewKey onTelling={setIsTelling} onClose={() => setIsMaking(false)} />
      </Modal>
      <Modal opened={rotated !== undefined} onClose={() => setRotated(undefined)} title="Rotate a key" closeOnClickOutside={false} closeOnEscape={!isTelling} withCloseButton={!isTelling} closeButtonProps={{ 'aria-label': 'Close' }}>
        {rotated === undefined ? null : <Rotate record={rotated} onTelling={setIsTelling} onClose={() => setRotated(undefined)} />}
      </Modal>
      <Modal opened={revoked !== undefined} onClose={() => setRevoked(undefined)} title="Revoke a key" closeButtonProps={{ 'aria-label': 'Close' }}>
        {revoked === undefined ? null : <Revoke record={revoked} onClose={() => setRevoked(undefined)} />}
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
