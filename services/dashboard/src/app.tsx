/** The frame around the pages, and who may see them. */
import { ActionIcon, Alert, AppShell, Badge, Box, Burger, Center, Group, Loader, NavLink, ScrollArea, Stack, Text, Tooltip, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactElement } from 'react';
import { signOut } from './lib/api.js';
import { hrefOf, navigate, useRoute } from './lib/route.js';
import { endSession, heedRefusal, mayRead, useOtherTabs, useSession } from './lib/use-api.js';
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
import { Guard } from './parts/guard.tsx';
import { Empty, Failure, PageHead, Panel } from './parts/panel.tsx';

interface PageEntry {
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
  /** Scopes of which one is needed. */
  readonly needs?: readonly string[];
  readonly render: () => ReactElement;
}

const USAGE = ['usage:read'];
const PAGES: readonly PageEntry[] = [
  { path: '/', label: 'Overview', icon: 'overview', needs: USAGE, render: () => <Overview /> },
  { path: '/playground', label: 'Playground', icon: 'playground', needs: ['inference'], render: () => <Playground /> },
  { path: '/requests', label: 'Requests', icon: 'requests', needs: USAGE, render: () => <Requests /> },
  { path: '/models', label: 'Models', icon: 'models', needs: ['models:read', 'inference'], render: () => <Models /> },
  { path: '/plugins', label: 'Plugins', icon: 'plugins', needs: USAGE, render: () => <Plugins /> },
  { path: '/keys', label: 'API keys', icon: 'keys', needs: ['keys'], render: () => <Keys /> },
  { path: '/providers', label: 'Provider keys', icon: 'providers', needs: ['keys'], render: () => <ProviderKeys /> },
  { path: '/policy', label: 'Policy and caps', icon: 'policy', needs: USAGE, render: () => <PolicyPage /> },
  { path: '/statements', label: 'Statements', icon: 'statement', needs: USAGE, render: () => <Statements /> },
  { path: '/memory', label: 'Memory', icon: 'memory', needs: USAGE, render: () => <Memory /> },
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

function NotForKey({ entry: { label, needs = [] }, session }: { readonly entry: PageEntry; readonly session: Session }): ReactElement {
  return (
    <>
      <PageHead title={label} />
      <Panel>
        <Empty title="Not for this key">
          It needs the scope {needs.join(' or ')}; this key has {session.key.scopes.join(', ')}. Sign in with one that has it.
        </Empty>
      </Panel>
    </>
  );
}

/** An address may have been typed. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function pageOf(route: string): { readonly entry: PageEntry | undefined; readonly body: ReactElement } {
  const [, first = '', second] = route.split('/');
  const entry = PAGES.find(({ path }) => path === `/${first}`);
  if (entry === undefined || (second !== undefined && first !== 'requests' && first !== 'statements')) return { entry: undefined, body: <PageHead title="There is no such page" hint="Choose one from the menu." /> };
  if (first === 'requests' && second !== undefined) return { entry, body: <RequestPage key={second} id={decoded(second)} /> };
  if (first === 'statements') return { entry, body: <Statements {...(second === undefined ? {} : { period: decoded(second) })} /> };
  return { entry, body: entry.render() };
}

function Shell({ session }: { readonly session: Session }): ReactElement {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const route = useRoute();
  const client = useQueryClient();
  useHotkeys([['Escape', close]]);
  const [problem, setProblem] = useState<string>();
  const { entry, body } = pageOf(route);
  const isAllowed = entry?.needs?.some((scope) => mayRead(session, scope)) !== false;
  useEffect(() => {
    document.title = `${entry?.label ?? 'Not found'} · Signalbox`;
  }, [entry]);
  // Who follows a link by keyboard or ear goes on at the page, not at the head of the document.
  const shown = useRef(route);
  useEffect(() => {
    if (shown.current === route) return;
    shown.current = route;
    setProblem(undefined);
    document.getElementById('main')?.focus({ preventScroll: true });
  }, [route]);
  const leave = async (): Promise<void> => {
    setProblem(undefined);
    try {
      await signOut();
    } catch (error) {
      void heedRefusal(client, error);
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
            <Box visibleFrom="xs" ta="right" maw={320} className="who">
              <Text size="sm" fw={600} lh={1.2} truncate>
                {session.account.name}
              </Text>
              <Text size="xs" c="dimmed" lh={1.2} truncate>
                {session.key.name}
              </Text>
            </Box>
            <Badge variant="light" visibleFrom="xs" miw="max-content">
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
      <AppShell.Navbar p="xs" aria-label="Pages" className="pages" data-open={isOpen}>
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
          <Guard key={route}>{isAllowed || entry === undefined ? body : <NotForKey entry={entry} session={session} />}</Guard>
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

export function App(): ReactElement {
  const session = useSession();
  const route = useRoute();
  useOtherTabs();
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
