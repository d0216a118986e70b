/** Frames of pages: headings, panels, and what is shown while something loads, fails or is empty. */
import { Alert, Box, Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { ApiError } from '../lib/api.js';

export function PageHead({ title, hint, children }: { readonly title: string; readonly hint?: string; readonly children?: ReactNode }): ReactElement {
  return (
    <Group justify="space-between" align="flex-end" mb="lg" gap="sm">
      <Box>
        <Title order={1} fz="1.5rem">
          {title}
        </Title>
        {hint === undefined ? null : (
          <Text c="dimmed" size="sm" style={{ overflowWrap: 'anywhere' }}>
            {hint}
          </Text>
        )}
      </Box>
      {children}
    </Group>
  );
}

export function Panel({ title, side, children, flush = false }: { readonly title?: string; readonly side?: ReactNode; readonly children: ReactNode; readonly flush?: boolean }): ReactElement {
  return (
    <section className="panel" aria-label={title}>
      {title === undefined ? null : (
        <Group justify="space-between" px="md" pt="md" pb={flush ? 'xs' : 0}>
          <Title order={2} fz="0.95rem">
            {title}
          </Title>
          {side}
        </Group>
      )}
      <Box p={flush ? 0 : 'md'}>{children}</Box>
    </section>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }): ReactElement {
  return (
    <Stack align="center" gap={4} py="xl" px="md" ta="center">
      <Text fw={600}>{title}</Text>
      {children === undefined ? null : (
        <Text c="dimmed" size="sm" maw={460}>
          {children}
        </Text>
      )}
    </Stack>
  );
}

export function Failure({ error, again }: { readonly error: unknown; readonly again?: (() => void) | undefined }): ReactElement {
  if (error instanceof ApiError && error.code === 'unknown_url') return <Empty title="Not available">This gateway does not offer it.</Empty>;
  if (error instanceof ApiError && error.code === 'insufficient_scope') return <Empty title="Not for this key">{error.message} Sign in with a key that has it.</Empty>;
  return (
    <Alert color="red" variant="light" title="That did not work" role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{error instanceof Error ? error.message : 'Something went wrong.'}</Text>
        {again === undefined ? null : (
          <Button size="xs" variant="default" onClick={again}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** The answer once it is there; until then as much room as it will need, or dimmed the page of a list that was there before. */
export function Loaded<Answer>({ query, height = 180, children }: { readonly query: UseQueryResult<Answer>; readonly height?: number; readonly children: (answer: Answer) => ReactNode }): ReactElement {
  if (query.data !== undefined) {
    return (
      <>
        {query.isError ? (
          <Text size="xs" c="red" px="md" py={4} role="status">
            Not up to date: {query.error.message}
          </Text>
        ) : null}
        <div aria-busy={query.isPlaceholderData} style={query.isPlaceholderData ? { opacity: 0.5 } : undefined}>
          {children(query.data)}
        </div>
      </>
    );
  }
  if (query.isError) {
    return (
      <Box mih={height}>
        <Failure error={query.error} again={() => void query.refetch()} />
      </Box>
    );
  }
  return <Skeleton height={height} radius="md" aria-label="Loading" role="status" />;
}
