/** Says, where nothing but the simulator answers, that it does, and what to do for real models. */
import { Alert, Text } from '@mantine/core';
import type { ReactElement } from 'react';
import { useIsOnlySimulator } from '../lib/use-api.js';
import { Link } from './link.tsx';

export function OnlySimulator(): ReactElement | null {
  if (!useIsOnlySimulator()) return null;
  return (
    <Alert color="blue" variant="light" mb="md" title="Only the simulator answers here" role="note">
      <Text size="sm">
        It is no language model: it repeats what it is told, at invented prices, and asks nobody outside. For real models, <Link to="/providers">give this account a key of its own</Link> at a provider, or let the operator start the gateway with one for everybody, such as OPENAI_API_KEY.
      </Text>
    </Alert>
  );
}
