/** A key in, a session out. */
import { Alert, Button, Center, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type FormEvent, type ReactElement } from 'react';
import { signIn } from '../lib/api.js';
import { ENDED_KEY, SESSION_KEY } from '../lib/use-api.js';
import { forgetKept } from '../lib/route.js';
import { Brand } from '../parts/brand.tsx';
import { Link } from '../parts/link.tsx';

export function SignIn(): ReactElement {
  const client = useQueryClient();
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<string>();
  const [isBusy, setIsBusy] = useState(false);
  const ended = client.getQueryData<string>(ENDED_KEY);
  useEffect(() => {
    document.title = 'Sign in · Signalbox';
  }, []);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setIsBusy(true);
    setProblem(undefined);
    try {
      const session = await signIn(key.trim());
      setKey('');
      forgetKept();
      client.removeQueries({ queryKey: ENDED_KEY });
      client.setQueryData(SESSION_KEY, session);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'That did not work.');
    } finally {
      setIsBusy(false);
    }
  };

  return (
    <Center mih="100vh" p="md" component="main">
      <Stack w="100%" maw={400} gap="lg">
        <Brand />
        <div className="panel">
          <form onSubmit={(event) => void submit(event)}>
            <Stack p="lg">
              <div>
                <Title order={1} fz="1.3rem">
                  Sign in
                </Title>
                <Text c="dimmed" size="sm" mt={4}>
                  With an API key of your account. It is exchanged for a session and not kept in this browser.
                </Text>
              </div>
              {ended === undefined || problem !== undefined ? null : (
                <Alert color="orange" variant="light" role="status">
                  You are signed out. {ended}
                </Alert>
              )}
              <PasswordInput label="API key" placeholder="sbx_live_…" value={key} onChange={(event) => setKey(event.currentTarget.value)} autoComplete="off" spellCheck={false} autoFocus required data-testid="key" />
              {problem === undefined ? null : (
                <Alert color="red" variant="light" role="alert">
                  {problem}
                </Alert>
              )}
              <Button type="submit" loading={isBusy} disabled={key.trim() === ''} fullWidth>
                Sign in
              </Button>
            </Stack>
          </form>
        </div>
        <Text size="sm" c="dimmed">
          No key yet? The first one is printed when the gateway starts for the first time; the operator makes others. <Link to="/api">Read the API reference</Link>
        </Text>
      </Stack>
    </Center>
  );
}
