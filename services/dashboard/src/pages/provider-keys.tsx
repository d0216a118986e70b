/** The account's own credentials at providers: given, never shown again. */
import { Badge, Button, Group, Modal, PasswordInput, Select, Stack, Switch, Table, Text, TextInput, VisuallyHidden } from '@mantine/core';
import { useState, type FormEvent, type ReactElement } from 'react';
import { formatDate } from '../lib/format.js';
import { providersWithKeys } from '../lib/only-simulator.js';
import { useApi, useChange, useIsOnlySimulator, useMayChangeAccount } from '../lib/use-api.js';
import type { Page, ProviderKey } from '../lib/types.js';
import { Empty, Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

function Give({ names, onClose }: { readonly names: readonly string[]; readonly onClose: () => void }): ReactElement {
  const put = useChange<ProviderKey>(['/api/providers', '/v1/models']);
  const [provider, setProvider] = useState<string | null>(null);
  const [secret, setSecret] = useState('');
  const [zdr, setZdr] = useState(false);
  const [baseUrl, setBaseUrl] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    put.mutate({ path: `/api/providers/${encodeURIComponent(provider ?? '')}`, method: 'PUT', body: { secret: secret.trim(), zdr, ...(baseUrl.trim() === '' ? {} : { base_url: baseUrl.trim() }) } }, { onSuccess: onClose });
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Select label="Provider" data={[...names]} value={provider} onChange={setProvider} searchable required data-autofocus />
        <PasswordInput label="Its API key" value={secret} onChange={(event) => setSecret(event.currentTarget.value)} autoComplete="off" spellCheck={false} required description="Stored encrypted. Nobody can read it back, you neither." />
        <TextInput label="Base URL" placeholder="The provider’s own" value={baseUrl} onChange={(event) => setBaseUrl(event.currentTarget.value)} />
        <Switch label="I have a zero-data-retention agreement for this key" checked={zdr} onChange={(event) => setZdr(event.currentTarget.checked)} />
        {put.isError ? <Failure error={put.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={put.isPending} disabled={provider === null || secret.trim() === ''}>
            Store
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function ProviderKeys(): ReactElement {
  const keys = useApi<Page<ProviderKey> & { readonly providers: readonly string[] }>('/api/providers');
  const remove = useChange<object>(['/api/providers', '/v1/models']);
  const canChange = useMayChangeAccount();
  const isOnlySimulator = useIsOnlySimulator();
  const [isGiving, setIsGiving] = useState(false);
  const [removed, setRemoved] = useState<ProviderKey>();
  return (
    <>
      <PageHead title="Provider keys" hint="Requests to these providers run on your own key and are paid there. Their tokens count towards your plan here, overage included.">
        {canChange ? (
          <Button onClick={() => setIsGiving(true)} disabled={keys.data === undefined}>
            Add a key
          </Button>
        ) : null}
      </PageHead>
      <Panel flush>
        <Loaded query={keys} height={200}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="None of your own">
                {isOnlySimulator ? 'Nor has the operator one: until you add a key here, or the operator starts the gateway with one (such as OPENAI_API_KEY), only the simulator answers.' : 'Requests run on the operator’s keys and are charged to your account.'}
              </Empty>
            ) : (
              <Rows>
                <Table verticalSpacing="sm" horizontalSpacing="md">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Provider</Table.Th>
                      <Table.Th>Key</Table.Th>
                      <Table.Th>Retention</Table.Th>
                      <Table.Th>Stored</Table.Th>
                      <Table.Th>
                        <VisuallyHidden>Actions</VisuallyHidden>
                      </Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {data.map((key) => (
                      <Table.Tr key={key.provider}>
                        <Table.Td>
                          <Text size="sm" fw={600}>
                            {key.provider}
                          </Text>
                          {key.base_url === undefined || key.base_url === null ? null : (
                            <Text size="xs" c="dimmed" className="name">
                              {key.base_url}
                            </Text>
                          )}
                        </Table.Td>
                        <Table.Td ff="monospace">…{key.last4 ?? ''}</Table.Td>
                        <Table.Td>{key.zdr ? <Badge variant="light">zero retention</Badge> : key.base_url === undefined || key.base_url === null ? 'provider’s terms' : 'not known'}</Table.Td>
                        <Table.Td>{formatDate(key.created_at)}</Table.Td>
                        <Table.Td>
                          {canChange ? (
                            <Button size="compact-sm" variant="subtle" color="red" onClick={() => setRemoved(key)} aria-label={`Remove the key at ${key.provider}`}>
                              Remove
                            </Button>
                          ) : null}
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Rows>
            )
          }
        </Loaded>
      </Panel>
      <Modal opened={isGiving} onClose={() => setIsGiving(false)} title="Add a provider key" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Give names={providersWithKeys(keys.data?.providers ?? [])} onClose={() => setIsGiving(false)} />
      </Modal>
      <Modal opened={removed !== undefined} onClose={() => setRemoved(undefined)} title="Remove a provider key" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Stack>
          <Text>
            Remove your key at <strong>{removed?.provider}</strong>? Requests there run on the operator’s key again, if there is one, and are charged.
          </Text>
          {remove.isError ? <Failure error={remove.error} /> : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setRemoved(undefined)} data-autofocus>
              Keep it
            </Button>
            <Button color="red" loading={remove.isPending} onClick={() => remove.mutate({ path: `/api/providers/${encodeURIComponent(removed?.provider ?? '')}`, method: 'DELETE' }, { onSuccess: () => setRemoved(undefined) })}>
              Remove
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
