/** What the memory plugin keeps of a user, and forgetting it. */
import { Button, Group, Modal, Stack, Table, Text, TextInput } from '@mantine/core';
import { useState, type ReactElement } from 'react';
import { queryText } from '../lib/api.js';
import { formatTime } from '../lib/format.js';
import { useApi, useChange, useMayChange } from '../lib/use-api.js';
import { Empty, Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';
import { Rows } from '../parts/rows.tsx';

interface Fact {
  readonly id: string;
  readonly text: string;
  readonly created_at: number;
}

export function Memory(): ReactElement {
  const [user, setUser] = useState('');
  const [asked, setAsked] = useState('');
  const [isForgetting, setIsForgetting] = useState(false);
  const facts = useApi<{ readonly data: readonly Fact[] }>(`/api/memory${queryText({ user: asked })}`);
  const canChange = useMayChange();
  const forget = useChange<object>(['/api/memory']);
  return (
    <>
      <PageHead title="Memory" hint="Facts that the memory plugin learned, by the user named in your requests.">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setAsked(user.trim());
          }}
        >
          <Group gap="xs" wrap="nowrap">
            <TextInput aria-label="User" placeholder="User" value={user} onChange={(event) => setUser(event.currentTarget.value)} />
            <Button type="submit" variant="default">
              Show
            </Button>
          </Group>
        </form>
      </PageHead>
      <Panel flush>
        <Loaded query={facts} height={200}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="Nothing is remembered">{asked === '' ? 'Requests with the plugin "memory" leave facts here.' : `Of ${asked} there is nothing.`}</Empty>
            ) : (
              <Rows>
                <Table verticalSpacing="sm" horizontalSpacing="md">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Fact</Table.Th>
                      <Table.Th>User</Table.Th>
                      <Table.Th>Learned</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {data.map((fact) => (
                      <Table.Tr key={fact.id}>
                        <Table.Td className="name">{fact.text}</Table.Td>
                        <Table.Td className="name">{asked === '' ? 'none' : asked}</Table.Td>
                        <Table.Td>{formatTime(fact.created_at)}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
                <Group justify="flex-end" p="sm">
                  {canChange ? (
                    <Button color="red" variant="light" onClick={() => setIsForgetting(true)}>
                      Forget all of it
                    </Button>
                  ) : null}
                </Group>
              </Rows>
            )
          }
        </Loaded>
      </Panel>
      <Modal opened={isForgetting} onClose={() => setIsForgetting(false)} title="Forget" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Stack>
          <Text>Forget everything about {asked === '' ? 'requests without a user' : asked}? This cannot be undone.</Text>
          {forget.isError ? <Failure error={forget.error} /> : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setIsForgetting(false)} data-autofocus>
              Keep it
            </Button>
            <Button color="red" loading={forget.isPending} onClick={() => forget.mutate({ path: `/api/memory${queryText({ user: asked })}`, method: 'DELETE' }, { onSuccess: () => setIsForgetting(false) })}>
              Forget
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
