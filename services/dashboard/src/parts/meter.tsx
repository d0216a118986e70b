/** A limit as a bar: what is spent, what is reserved, what is left. */
import { Box, Group, Progress, Text } from '@mantine/core';
import type { ReactElement } from 'react';
import { shareOf } from '../lib/money.js';
import { formatTime } from '../lib/format.js';

export interface MeterProps {
  readonly label: string;
  readonly spent: number;
  readonly reserved: number;
  readonly limit: number;
  readonly format: (value: number) => string;
  /** Unix seconds. */
  readonly resetsAt?: number | null;
}

export function Meter({ label, spent, reserved, limit, format, resetsAt }: MeterProps): ReactElement {
  const used = shareOf(spent, limit);
  const held = Math.min(100 - used, shareOf(reserved, limit));
  const color = used + held >= 100 ? 'var(--mantine-color-error)' : used >= 80 ? 'var(--series-2)' : 'var(--series-1)';
  const text = `${format(spent)} of ${format(limit)} spent${reserved > 0 ? `, ${format(reserved)} reserved` : ''}`;
  return (
    <Box>
      <Group justify="space-between" gap="xs" mb={6}>
        <Text size="sm" fw={600}>
          {label}
        </Text>
        <Text size="sm">{text}</Text>
      </Group>
      <Progress.Root size="lg" aria-label={label}>
        <Progress.Section value={used} color={color} aria-label={`${label}: spent`} />
        <Progress.Section value={held} color={color} striped opacity={0.55} aria-label={`${label}: reserved`} />
      </Progress.Root>
      {resetsAt === null || resetsAt === undefined ? null : (
        <Text size="xs" c="dimmed" mt={4}>
          Begins anew {formatTime(resetsAt)}
        </Text>
      )}
    </Box>
  );
}
