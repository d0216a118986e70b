/** The frame around the pages, and who may see them. */
import { ActionIcon, Alert, AppShell, Badge, Box, Burger, Center, Group, Loader, NavLink, ScrollArea, Stack, Text, Tooltip, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactElement } from 'react';
import { signOut } from './lib/api.js';
import { hrefOf, navigate, useRoute } from './lib/route.js';
import { endSession, useSession } from './lib/use-api.js';
import type { Session } from './lib/types.js';
import { ApiReference } from './pages/api-reference.tsx';
import { Keys } from './pages/keys.tsx';
import { Memory } from './pages/memory.tsx';
import { Models } from './pages/models.tsx';
import { Overview } from './pages/overview.tsx';
import { Playground } from './pages/playground.tsx';
import { Plugins } from './pages/plugins.tsx';
import { PolicyPage } from './pages/policy.tsx';
import { ProviderKeys } from './pages/provider-keys.tsx';
import { RequestPage } from './pages/request.tsx';
import { Requests } from './pages/requests.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { Statements } from './pages/statements.tsx';
import { Brand } from './parts/brand.tsx';
import { Icon, type IconName } from './parts/icon.tsx';
import { follow } from './parts/link.tsx';
import { Failure, PageHead } from './parts/panel.tsx';

interface PageEntry {
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
  readonly render: () => ReactElement;
}

const PAGES: readonly PageEntry[] = [
  { path: '/', label: 'Overview', icon: 'overview', render: () => <Overview /> },
  { path: '/playground', label: 'Playground', icon: 'playground', render: () => <Playground /> },
  { path: '/requests', label: 'Requests', icon: 'requests', render: () => <Requests /> },
  { path: '/models', label: 'Models', icon: 'models', render: () => <Models /> },
  { path: '/plugins', label: 'Plugins', icon: 'plugins', render: () => <Plugins /> },
  { path: '/keys', label: 'API keys', icon: 'keys', render: () => <Keys /> },
  { path: '/providers', label: 'Provider keys', icon: 'providers', render: () => <ProviderKeys /> },
  { path: '/policy', label: 'Policy and caps', icon: 'policy', render: () => <PolicyPage /> },
  { path: '/statements', label: 'Statements', icon: 'statement', render: () => <Statements /> },
  { path: '/memory', label: 'Memory', icon: 'memory', render: () => <Memory /> },
  { path: '/api', label: 'API reference', icon: 'api', render: () => <ApiReference /> },
];

function Colors(): ReactElement {
  const scheme = useComputedColorScheme('light');
  const { setColorScheme } = useMantineColorScheme();
  const next = scheme === 'dark' ? 'light' : 'dark';
  return (
    <Tooltip label={`Use ${next} colours`}>
      <ActionIcon variant="subtle" color="gray" size="lg" onClick={() => setColorScheme(next)} aria-label={`Use ${next} colours`}>
        <Icon name={scheme === 'dark' ? 'sun' : 'moon'} />
      </ActionIcon>
    </Tooltip>
  );
}

function pageOf(route: string): { readonly entry: PageEntry | undefined; readonly body: ReactElement } {
  const [, first = '', second] = route.split('/');
  const entry = PAGES.find(({ path }) => path === `/${first}`);
  if (entry === undefined || (second !== undefined && first !== 'requests' && first !== 'statements')) return { entry: undefined, body: <PageHead title="There is no such page" hint="Choose one from the menu." /> };
  if (first === 'requests' && second !== undefined) return { entry, body: <RequestPage id={decodeURIComponent(second)} /> };
  if (first === 'statements') return { entry, body: <Statements {...(second === undefined ? {} : { period: decodeURIComponent(second) })} /> };
  return { entry, body: entry.render() };
}

function Shell({ session }: { readonly session: Session }): ReactElement {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const route = useRoute();
  const client = useQueryClient();
  const [problem, setProblem] = useState<string>();
  const { entry, body } = pageOf(route);
  useEffect(() => {
    document.title = `${entry?.label ?? 'Not found'} · Signalbox`;
  }, [entry]);
  const leave = async (): Promise<void> => {
    setProblem(undefined);
    try {
      await signOut();
    } catch (error) {
      setProblem(`You are still signed in. ${error instanceof Error ? error.message : 'That did not work.'}`);
      return;
    }
    endSession(client);
    navigate('/');
  };

  return (
    <AppShell header={{ height: 56 }} navbar={{ width: 228, breakpoint: 'sm', collapsed: { mobile: !isOpen } }} padding={{ base: 'sm', sm: 'lg' }}>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" aria-expanded={isOpen} />
            <Brand />
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Box visibleFrom="xs" ta="right">
              <Text size="sm" fw={600} lh={1.2}>
                {session.account.name}
              </Text>
              <Text size="xs" c="dimmed" lh={1.2}>
                {session.key.name}
              </Text>
            </Box>
            <Badge variant="light" visibleFrom="xs">
              {session.account.tier}
            </Badge>
            <Colors />
            <Tooltip label="Sign out">
              <ActionIcon variant="subtle" color="gray" size="lg" onClick={() => void leave()} aria-label="Sign out">
                <Icon name="out" />
              </ActionIcon>
            </Tooltip>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        <ScrollArea>
          <Stack gap={2}>
            {PAGES.map(({ path, label, icon }) => (
              <NavLink
                key={path}
                className="nav"
                href={hrefOf(path)}
                label={label}
                leftSection={<Icon name={icon} />}
                active={entry?.path === path}
                aria-current={entry?.path === path ? 'page' : undefined}
                onClick={(event) => {
                  follow(path)(event);
                  close();
                }}
              />
            ))}
          </Stack>
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Box maw={1180} mx="auto">
          {problem === undefined ? null : (
            <Alert color="red" variant="light" role="alert" mb="md">
              {problem}
            </Alert>
          )}
          {body}
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

export function App(): ReactElement {
  const session = useSession();
  const route = useRoute();
  if (session.isPending) {
    return (
      <Center mih="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  if (session.isError) {
    return (
      <Center mih="100vh" p="md">
        <Failure error={session.error} again={() => void session.refetch()} />
      </Center>
    );
  }
  if (session.data !== null) return <Shell session={session.data} />;
  if (route === '/api') {
    return (
      <Box component="main" maw={1000} mx="auto" p="md">
        <Group justify="space-between" mb="lg">
          <Brand />
          <Colors />
        </Group>
        <ApiReference />
      </Box>
    );
  }
  return (
    <>
      <Box pos="fixed" top={12} right={12}>
        <Colors />
      </Box>
      <SignIn />
    </>
  );
}
