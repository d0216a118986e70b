/** Limits of a key as fields. */
import { Fieldset, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core';
import { useMemo, type ReactElement } from 'react';
import { amountProblem, CAP_PERIODS, rateProblem, type LimitsDraft } from '../lib/key-limits.js';
import { useModelChoice } from '../lib/use-api.js';

interface LimitFieldsProps {
  readonly draft: LimitsDraft;
  readonly onChange: (draft: LimitsDraft) => void;
  /** True where a dialog begins with them. */
  readonly isFirst?: boolean;
}

export function LimitFields({ draft, onChange, isFirst = false }: LimitFieldsProps): ReactElement {
  const models = useModelChoice();
  const names = useMemo(() => models.map(({ id }) => id), [models]);
  return (
    <Stack>
      <Fieldset legend="Cost caps (US$)" variant="unstyled" m={0} p={0} miw={0}>
        <SimpleGrid cols={2} verticalSpacing="xs">
          {CAP_PERIODS.map(([period, label], index) => (
            <TextInput key={period} data-autofocus={(isFirst && index === 0) || undefined} label={label} placeholder="No cap" inputMode="decimal" autoComplete="off" value={draft.caps[period]} error={amountProblem(draft.caps[period])} onChange={(event) => onChange({ ...draft, caps: { ...draft.caps, [period]: event.currentTarget.value } })} />
          ))}
        </SimpleGrid>
      </Fieldset>
      <TextInput label="Requests per minute" placeholder="The account’s" inputMode="numeric" autoComplete="off" value={draft.rate} error={rateProblem(draft.rate)} onChange={(event) => onChange({ ...draft, rate: event.currentTarget.value })} />
      <TagsInput label="Only these models" placeholder={draft.models.length === 0 ? 'All that the account may use' : ''} data={names} value={[...draft.models]} onChange={(value) => onChange({ ...draft, models: value })} clearable />
    </Stack>
  );
}
