/** How requests are routed, and what they may cost. */
import { Alert, Button, Fieldset, Group, NumberInput, SegmentedControl, Select, SimpleGrid, Stack, Switch, TagsInput, Text } from '@mantine/core';
import { useMemo, useState, type ReactElement } from 'react';
import { useApi, useChange, useMayChangeAccount, useModelChoice } from '../lib/use-api.js';
import type { CapPeriod, Policy } from '../lib/types.js';
import { Failure, Loaded, PageHead, Panel } from '../parts/panel.tsx';

const PERIODS: readonly (readonly [CapPeriod, string])[] = [['day', 'A day'], ['week', 'A week'], ['month', 'A month'], ['total', 'In all']];
const MODES = [{ value: 'economy', label: 'Economy' }, { value: 'balanced', label: 'Balanced' }, { value: 'quality', label: 'Quality' }];
const WORDS: Readonly<Record<string, string>> = {
  economy: 'The cheapest model that is likely good enough.',
  balanced: 'Near the best answer, at a good part of the savings.',
  quality: 'The model that is predicted to answer best.',
};

const isSame = (one: Policy, other: Policy): boolean => JSON.stringify(one) === JSON.stringify(other);

/** `policy` is what was read last, `reread` reads it anew, undefined when it cannot: a form that replaces all of it must not undo in silence what was set elsewhere. */
function Form({ policy, reread }: { readonly policy: Policy; readonly reread: () => Promise<Policy | undefined> }): ReactElement {
  const [draft, setDraft] = useState<Policy>(policy);
  // What the draft began as.
  const [base, setBase] = useState<Policy>(policy);
  const [seen, setSeen] = useState<Policy>(policy);
  const [isOvertaken, setIsOvertaken] = useState(false);
  const [isUnread, setIsUnread] = useState(false);
  if (policy !== seen) {
    setSeen(policy);
    const isUntouched = isSame(draft, base);
    if (isUntouched) setDraft(policy);
    if (isUntouched || !isSame(policy, base)) setBase(policy);
    if (!isUntouched && !isSame(policy, base) && !isSame(policy, draft)) setIsOvertaken(true);
  }
  const canChange = useMayChangeAccount();
  const save = useChange<Policy>(['/api/policy', '/api/limits', '/v1/models']);
  const models = useModelChoice();
  const names = useMemo(() => models.map(({ id }) => id).filter((id) => id !== 'auto' && id !== 'router-auto'), [models]);
  const providers = useMemo(() => [...new Set(models.flatMap(({ endpoints = [] }) => endpoints.map(({ provider }) => provider)))].sort(), [models]);
  const set = (change: Partial<Policy>): void => {
    save.reset();
    setIsUnread(false);
    setDraft({ ...draft, ...change });
  };
  const capOf = (period: CapPeriod): number | string => draft.cost_caps.find((cap) => cap.period === period)?.cap_usd ?? '';
  const setCap = (period: CapPeriod, value: number | string): void => {
    const others = draft.cost_caps.filter((cap) => cap.period !== period);
    set({ cost_caps: value === '' ? others : [...others, { cap_usd: Number(value), period }] });
  };
  const mode = draft.mode ?? 'balanced';
  const submit = async (): Promise<void> => {
    save.reset();
    const now = await reread();
    setIsUnread(now === undefined);
    // Said below, and the next time it is meant.
    if (now === undefined || (!isSame(now, base) && !isSame(now, draft))) return;
    const { effective: _effective, ...own } = draft;
    const onSuccess = (saved: Policy): void => {
      setIsOvertaken(false);
      setBase(saved);
      setDraft(saved);
    };
    save.mutate({ path: '/api/policy', method: 'PUT', body: own }, { onSuccess });
  };
  // What holds where the account says nothing; not told while it does say something.
  const baselineElse = policy.baseline_model === null ? (policy.effective.baseline_model ?? 'The ablest that a request allows') : 'The operator’s, else the ablest that a request allows';
  const isHardByOperator = !policy.hard_cap && policy.effective.hard_cap;

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Fieldset variant="unstyled" m={0} miw={0} disabled={!canChange}>
        <Stack gap="md">
          <Panel title="Automatic choice">
            <Stack gap="sm">
              <SegmentedControl value={draft.lambda === null ? mode : ''} onChange={(value) => set({ mode: value, lambda: null })} data={MODES} aria-label="Automatic choice" />
              <Text size="sm" c="dimmed">
                {draft.lambda === null ? WORDS[mode] : `A weight of cost of its own holds, ${draft.lambda}, which a program set. Choosing one of these replaces it.`}
              </Text>
              <Select label="Baseline model" description="Savings are told against it." placeholder={baselineElse} data={names} value={draft.baseline_model} onChange={(value) => set({ baseline_model: value })} searchable clearable />
            </Stack>
          </Panel>
          <Panel title="What may be used">
            <SimpleGrid cols={{ base: 1, sm: 2 }}>
              <TagsInput label="Only these models" placeholder={draft.allow_models.length === 0 ? 'All' : ''} data={names} value={[...draft.allow_models]} onChange={(value) => set({ allow_models: value })} clearable />
              <TagsInput label="Never these models" placeholder={draft.deny_models.length === 0 ? 'None' : ''} data={names} value={[...draft.deny_models]} onChange={(value) => set({ deny_models: value })} clearable />
              <TagsInput label="Only these providers" placeholder={draft.allow_providers.length === 0 ? 'All' : ''} data={providers} value={[...draft.allow_providers]} onChange={(value) => set({ allow_providers: value })} clearable />
              <TagsInput label="Never these providers" placeholder={draft.deny_providers.length === 0 ? 'None' : ''} data={providers} value={[...draft.deny_providers]} onChange={(value) => set({ deny_providers: value })} clearable />
            </SimpleGrid>
          </Panel>
          <Panel title="Cost caps of the account (US$)">
            <Stack>
              <SimpleGrid cols={{ base: 2, sm: 4 }}>
                {PERIODS.map(([period, label]) => (
                  <NumberInput key={period} label={label} placeholder="No cap" min={0} decimalScale={9} hideControls value={capOf(period)} onChange={(value) => setCap(period, value)} />
                ))}
              </SimpleGrid>
              <Switch label="Stop at the allotment instead of paying for overage" checked={draft.hard_cap || isHardByOperator} disabled={isHardByOperator} {...(isHardByOperator ? { description: 'Set by the operator.' } : {})} onChange={(event) => set({ hard_cap: event.currentTarget.checked })} />
              <Text size="xs" c="dimmed">
                A cap holds to the cent: what running requests may still cost is reserved first. Caps of the operator hold beside these.
              </Text>
            </Stack>
          </Panel>
          {isOvertaken ? (
            <Alert color="orange" variant="light" role="alert" title="Changed elsewhere">
              <Stack gap="xs" align="flex-start">
                <Text size="sm">The policy was changed since you opened it. Saving replaces that with what is shown here.</Text>
                <Button
                  size="xs"
                  variant="default"
                  onClick={() => {
                    setIsOvertaken(false);
                    setDraft(policy);
                  }}
                >
                  Show what holds now
                </Button>
              </Stack>
            </Alert>
          ) : null}
          {isUnread ? (
            <Alert color="red" variant="light" role="alert">
              The policy that holds now could not be read, so nothing was saved. Save again in a moment.
            </Alert>
          ) : null}
          {save.isError ? <Failure error={save.error} /> : null}
          {save.isSuccess ? (
            <Alert color="teal" variant="light" role="status">
              Saved. It holds for every request from now on.
            </Alert>
          ) : null}
          <Group justify="flex-end">
            {canChange ? (
              <Button type="submit" loading={save.isPending}>
                Save
              </Button>
            ) : (
              <Text size="sm" c="dimmed">
                This key may read the policy, not change it: it lacks the scope keys, or has limits of its own.
              </Text>
            )}
          </Group>
        </Stack>
      </Fieldset>
    </form>
  );
}

export function PolicyPage(): ReactElement {
  const policy = useApi<Policy>('/api/policy');
  const reread = async (): Promise<Policy | undefined> => {
    const { data, isError } = await policy.refetch();
    return isError ? undefined : data;
  };
  return (
    <>
      <PageHead title="Policy and caps" hint="For the whole account. Keys can be narrower, never wider." />
      <Loaded query={policy} height={480}>
        {(found) => <Form policy={found} reread={reread} />}
      </Loaded>
    </>
  );
}
