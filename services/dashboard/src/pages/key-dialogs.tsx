/** What is done with API keys, a dialog each. */
import { Alert, Button, Checkbox, Code, CopyButton, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useLayoutEffect, useState, type FormEvent, type ReactElement } from 'react';
import { isWellFormed, limitsBody, NO_LIMITS } from '../lib/key-limits.js';
import type { KeyRecord } from '../lib/types.js';
import { useChange, useSession } from '../lib/use-api.js';
import { Icon } from '../parts/icon.tsx';
import { LimitFields } from '../parts/limit-fields.tsx';
import { Failure } from '../parts/panel.tsx';

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
const GRACES = [
  { value: '0', label: 'Ends at once' },
  { value: '3600', label: 'Works for another hour' },
  { value: '86400', label: 'Works for another day' },
  { value: '604800', label: 'Works for another week' },
];

export interface Dialog {
  /** True while closing it would leave somebody unsure: a change is on its way, or a secret that nobody else is told. */
  readonly onHold: (isHeld: boolean) => void;
  readonly onClose: () => void;
}

export interface OfKey extends Dialog {
  readonly record: KeyRecord;
}

export function useHold(isHeld: boolean, onHold: Dialog['onHold']): void {
  // Before the next event, which may be the Escape.
  useLayoutEffect(() => {
    onHold(isHeld);
    return () => onHold(false);
  }, [isHeld, onHold]);
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

export function Rotate({ record, onHold, onClose }: OfKey): ReactElement {
  const session = useSession();
  const rotate = useChange<KeyRecord>(['/api/auth']);
  useHold(rotate.isPending || rotate.data?.key !== undefined, onHold);
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

export function NewKey({ onHold, onClose }: Dialog): ReactElement {
  const session = useSession();
  const allowed = (session.data?.key.scopes ?? []).filter((scope) => scope in SCOPES);
  const make = useChange<KeyRecord>(['/api/auth']);
  useHold(make.isPending || make.data?.key !== undefined, onHold);
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['inference', 'models:read'].filter((scope) => allowed.includes(scope)));
  const [expiry, setExpiry] = useState('7776000');
  const [limits, setLimits] = useState(NO_LIMITS);

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate({
      path: '/api/auth',
      method: 'POST',
      body: {
        name: name.trim(),
        scopes,
        ...(expiry === '' ? {} : { expires_in: Number(expiry) }),
        limits: limitsBody(limits),
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
        <LimitFields draft={limits} onChange={setLimits} />
        {make.isError ? <Failure error={make.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={make.isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={make.isPending} disabled={name.trim() === '' || scopes.length === 0 || !isWellFormed(limits)}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export function Revoke({ record, onHold, onClose }: OfKey): ReactElement {
  const session = useSession();
  const revoke = useChange<object>(['/api/auth']);
  useHold(revoke.isPending, onHold);
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
        <Button variant="default" onClick={onClose} disabled={revoke.isPending} data-autofocus>
          Keep it
        </Button>
        <Button color="red" loading={revoke.isPending} onClick={() => revoke.mutate({ path: `/api/auth/${record.id}`, method: 'DELETE' }, { onSuccess: onClose })}>
          Revoke
        </Button>
      </Group>
    </Stack>
  );
}

/** Disables a key, or enables it again. */
export function Switch({ record, onHold, onClose }: OfKey): ReactElement {
  const session = useSession();
  const change = useChange<KeyRecord>(['/api/auth']);
  useHold(change.isPending, onHold);
  // What it was when it was opened: the list behind is read anew meanwhile.
  const [isDisabled] = useState(record.status === 'disabled');
  const isOwn = session.data?.key.id === record.id;
  return (
    <Stack>
      <Text>
        {isDisabled ? 'Enable' : 'Disable'} <strong>{record.name}</strong> ({record.prefix}…)? {isDisabled ? 'It works again at once, with the limits that it has.' : 'Requests with it are refused at once, everywhere, until it is enabled again.'}
      </Text>
      {isOwn && !isDisabled ? (
        <Alert color="orange" variant="light">
          You are signed in with this key: your session ends with it, and another key has to enable it.
        </Alert>
      ) : null}
      {change.isError ? <Failure error={change.error} /> : null}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} disabled={change.isPending} data-autofocus>
          Cancel
        </Button>
        <Button {...(isDisabled ? {} : { color: 'red' })} loading={change.isPending} onClick={() => change.mutate({ path: `/api/auth/${record.id}`, method: 'PATCH', body: { disabled: !isDisabled } }, { onSuccess: onClose })}>
          {isDisabled ? 'Enable' : 'Disable'}
        </Button>
      </Group>
    </Stack>
  );
}
