/** The limits of a key, changed. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useEffect, useRef, useState, type FormEvent, type ReactElement } from 'react';
import { ApiError, call } from '../lib/api.js';
import { draftOf, isSameLimits, isWellFormed, limitsBody } from '../lib/key-limits.js';
import type { KeyRecord } from '../lib/types.js';
import { useChange, useEnded } from '../lib/use-api.js';
import { LimitFields } from '../parts/limit-fields.tsx';
import { Failure } from '../parts/panel.tsx';
import { useHold, type OfKey } from './key-dialogs.tsx';

/** All limits are sent, so what was set elsewhere meanwhile must not be undone in silence. */
export function Limits({ record, onHold, onClose }: OfKey): ReactElement {
  const [base, setBase] = useState(() => draftOf(record.limits));
  const [draft, setDraft] = useState(base);
  const [isReading, setIsReading] = useState(false);
  const [unread, setUnread] = useState<Error>();
  const [isOvertaken, setIsOvertaken] = useState(false);
  const ended = useEnded();
  const save = useChange<KeyRecord>(['/api/auth', '/api/limits']);
  // What is only read may be closed away, and then nothing is saved.
  const reading = useRef<AbortController>(null);
  useEffect(() => () => reading.current?.abort(), []);
  useHold(save.isPending, onHold);
  /** What holds now; undefined where it cannot be read, which is told. */
  const readAnew = async (): Promise<ReturnType<typeof draftOf> | undefined> => {
    const { signal } = (reading.current = new AbortController());
    setIsReading(true);
    try {
      return draftOf((await call<KeyRecord>(`/api/auth/${record.id}`, { signal })).limits);
    } catch (error) {
      if (signal.aborted) return undefined;
      ended(error);
      setUnread(error instanceof Error ? error : new Error('Something went wrong.'));
      return undefined;
    } finally {
      setIsReading(false);
    }
  };
  const submit = async (): Promise<void> => {
    save.reset();
    setUnread(undefined);
    const now = await readAnew();
    if (now === undefined) return;
    if (!isSameLimits(now, base) && !isSameLimits(now, draft)) {
      // Said below; who saves again means it.
      setBase(now);
      setIsOvertaken(true);
      return;
    }
    save.mutate({ path: `/api/auth/${record.id}`, method: 'PATCH', body: { limits: limitsBody(draft) } }, { onSuccess: onClose });
  };
  return (
    <form
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Stack>
        <Text style={{ overflowWrap: 'anywhere' }}>
          What <strong>{record.name}</strong> ({record.prefix}…) may spend and use. They hold for every request from now on; what a cap has counted goes on counting.
        </Text>
        <LimitFields draft={draft} onChange={setDraft} isFirst />
        {isOvertaken ? (
          <Alert color="orange" variant="light" role="alert" title="Changed elsewhere">
            <Stack gap="xs" align="flex-start">
              <Text size="sm">The limits were changed since you opened them. Saving replaces that with what is shown here.</Text>
              <Button
                size="xs"
                variant="default"
                onClick={() => {
                  setIsOvertaken(false);
                  setDraft(base);
                }}
              >
                Show what holds now
              </Button>
            </Stack>
          </Alert>
        ) : null}
        {unread === undefined ? null : <Failure error={new ApiError(0, null, `The limits that hold now could not be read, so nothing was saved. ${unread.message}`, null)} />}
        {save.isError ? <Failure error={save.error} /> : null}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={save.isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={isReading || save.isPending} disabled={!isWellFormed(draft)}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
