/** A conversation that streams, with its route, cost and savings while it runs. */
import { Alert, Badge, Button, Group, NumberInput, Select, SimpleGrid, Stack, Switch, Text, Textarea } from '@mantine/core';
import { useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react';
import { ApiError, callRaw } from '../lib/api.js';
import { triedInWords } from '../lib/decision.js';
import { createEventReader } from '../lib/events.js';
import { formatCount, formatMs } from '../lib/format.js';
import { formatUsd } from '../lib/money.js';
import { useApi, useBooked, useEnded } from '../lib/use-api.js';
import type { ModelRecord } from '../lib/types.js';
import { Link } from '../parts/link.tsx';
import { OnlySimulator } from '../parts/only-simulator.tsx';
import { PageHead, Panel } from '../parts/panel.tsx';

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

/** What is known of a run so far. */
interface Run {
  readonly id: string | undefined;
  readonly model: string | undefined;
  readonly provider: string | undefined;
  readonly attempts: string | undefined;
  readonly costUsd: number | undefined;
  readonly savingsUsd: number | undefined;
  readonly isFinal: boolean;
  readonly tokens: number | undefined;
  readonly firstMs: number | undefined;
  readonly totalMs: number | undefined;
}

const NO_RUN: Run = { id: undefined, model: undefined, provider: undefined, attempts: undefined, costUsd: undefined, savingsUsd: undefined, isFinal: false, tokens: undefined, firstMs: undefined, totalMs: undefined };

interface Chunk {
  readonly model?: string;
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly usage?: { readonly completion_tokens: number; readonly prompt_tokens: number } | null;
  readonly x_router?: { readonly provider: string; readonly cost_usd: number; readonly savings_usd: number };
  readonly error?: { readonly message: string };
}

const numberOf = (text: string | null): number | undefined => (text === null || text === '' ? undefined : Number(text));

function Figure({ label, value }: { readonly label: string; readonly value: string }): ReactElement {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
        {value}
      </Text>
    </div>
  );
}

export function Playground(): ReactElement {
  const models = useApi<{ readonly data: readonly ModelRecord[] }>('/v1/models');
  const names = useMemo(() => (models.data?.data ?? []).map(({ id }) => id), [models.data]);
  const [model, setModel] = useState<string>();
  const [maxTokens, setMaxTokens] = useState<number | string>(512);
  const [isZdr, setIsZdr] = useState(false);
  const [isDenied, setIsDenied] = useState(false);
  const [draft, setDraft] = useState('');
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [run, setRun] = useState<Run>(NO_RUN);
  const [problem, setProblem] = useState<string>();
  const ended = useEnded();
  const abort = useRef<AbortController>(undefined);
  const [isRunning, setIsRunning] = useState(false);
  const wanted = model ?? names[0] ?? 'auto';
  // The stream's own last word is not in every answer: variant B has none, and a stream that was stopped.
  const booked = useBooked(isRunning || run.isFinal ? undefined : run.id);
  const shown: Run = booked === undefined || run.isFinal ? run : { ...run, model: booked.model ?? run.model, provider: booked.provider ?? run.provider, costUsd: booked.cost_usd, savingsUsd: Math.max(0, booked.savings_usd), tokens: booked.prompt_tokens + booked.completion_tokens, isFinal: true };
  const estimated = shown.isFinal || shown.id === undefined ? '' : ', estimated';

  const send = async (): Promise<void> => {
    const text = draft.trim();
    if (text === '' || isRunning) return;
    const messages: readonly Turn[] = [...turns, { role: 'user', content: text }];
    const startedMs = performance.now();
    const controller = new AbortController();
    abort.current = controller;
    setDraft('');
    setProblem(undefined);
    setRun(NO_RUN);
    setIsRunning(true);
    setTurns([...messages, { role: 'assistant', content: '' }]);
    let answer = '';
    const onChunk = (data: string): void => {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data) as Chunk;
      const piece = chunk.choices?.[0]?.delta?.content ?? '';
      if (piece !== '') {
        if (answer === '') setRun((before) => ({ ...before, firstMs: performance.now() - startedMs }));
        answer += piece;
        setTurns([...messages, { role: 'assistant', content: answer }]);
      }
      if (chunk.error !== undefined) setProblem(chunk.error.message);
      setRun((before) => ({
        ...before,
        model: chunk.model ?? before.model,
        ...(chunk.x_router === undefined ? {} : { provider: chunk.x_router.provider, costUsd: chunk.x_router.cost_usd, savingsUsd: chunk.x_router.savings_usd, isFinal: true }),
        ...(chunk.usage === undefined || chunk.usage === null ? {} : { tokens: chunk.usage.prompt_tokens + chunk.usage.completion_tokens }),
      }));
    };
    try {
      const response = await callRaw('/v1/chat/completions', {
        method: 'POST',
        signal: controller.signal,
        body: { model: wanted, stream: true, messages, ...(maxTokens === '' ? {} : { max_tokens: Number(maxTokens) }), ...(isZdr ? { zdr: true } : {}), ...(isDenied ? { data_collection: 'deny' } : {}) },
      });
      const { headers } = response;
      setRun((before) => ({
        ...before,
        id: headers.get('x-request-id') ?? undefined,
        provider: headers.get('x-router-provider') ?? undefined,
        attempts: headers.get('x-router-attempts') ?? undefined,
        costUsd: numberOf(headers.get('x-router-cost')),
        savingsUsd: numberOf(headers.get('x-router-savings')),
      }));
      const reader = createEventReader(onChunk);
      const decoder = new TextDecoder();
      const parts = response.body?.getReader();
      for (let part = await parts?.read(); part !== undefined && !part.done; part = await parts?.read()) reader.push(decoder.decode(part.value, { stream: true }));
    } catch (error) {
      ended(error);
      if (!(error instanceof DOMException && error.name === 'AbortError')) setProblem(error instanceof ApiError ? `${error.message} ${triedInWords(error.tried)}`.trim() : 'The stream was cut.');
      // What reached a provider is in the books, with why it failed.
      if (error instanceof ApiError && error.tried.length > 0) setRun((before) => ({ ...before, id: error.requestId }));
      if (answer === '') {
        setTurns(turns);
        setDraft(text);
      }
    } finally {
      setIsRunning(false);
      setRun((before) => ({ ...before, totalMs: performance.now() - startedMs }));
    }
  };

  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };

  return (
    <>
      <PageHead title="Playground" hint="Real requests, charged to your account.">
        <Button
          variant="default"
          disabled={isRunning || turns.length === 0}
          onClick={() => {
            setTurns([]);
            setRun(NO_RUN);
            setProblem(undefined);
          }}
        >
          New conversation
        </Button>
      </PageHead>
      <OnlySimulator />
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="md">
        <Stack gap="md" style={{ gridColumn: 'span 2' }} className="talk-column">
          <Panel>
            <Stack gap="sm" className="talk" aria-live="polite" aria-busy={isRunning} role="log" aria-label="Conversation">
              {turns.length === 0 ? (
                <Text c="dimmed" size="sm" ta="center" my="auto">
                  Ask something. The figures beside it move while the answer comes.
                </Text>
              ) : (
                turns.map((turn, index) => (
                  <div className="bubble" data-role={turn.role} key={index}>
                    <Text size="sm" className="say">
                      {turn.content === '' ? (isRunning ? '…' : 'No text.') : turn.content}
                    </Text>
                  </div>
                ))
              )}
            </Stack>
          </Panel>
          {problem === undefined ? null : (
            <Alert color="red" variant="light" role="alert">
              {problem}
            </Alert>
          )}
          <Group align="flex-end" gap="xs" wrap="nowrap">
            <Textarea style={{ flex: 1 }} aria-label="Message" placeholder="Message; Enter sends, Shift+Enter breaks the line" autosize minRows={2} maxRows={8} value={draft} onChange={(event) => setDraft(event.currentTarget.value)} onKeyDown={onKey} />
            {isRunning ? (
              <Button color="red" onClick={() => abort.current?.abort()}>
                Stop
              </Button>
            ) : (
              <Button onClick={() => void send()} disabled={draft.trim() === ''}>
                Send
              </Button>
            )}
          </Group>
        </Stack>
        <Stack gap="md">
          <Panel title="Route" side={<Badge variant="light" color={isRunning ? 'blue' : shown.isFinal ? 'teal' : 'gray'}>{isRunning ? 'running' : shown.isFinal ? 'final' : shown.id === undefined ? 'idle' : 'not booked yet'}</Badge>}>
            <SimpleGrid cols={2} spacing="sm">
              <Figure label="Model" value={shown.model ?? '–'} />
              <Figure label="Provider" value={shown.provider ?? '–'} />
              <Figure label={`Cost${estimated}`} value={formatUsd(shown.costUsd)} />
              <Figure label={`Saved${estimated}`} value={formatUsd(shown.savingsUsd)} />
              <Figure label="First token" value={formatMs(shown.firstMs)} />
              <Figure label="Whole answer" value={formatMs(shown.totalMs)} />
              <Figure label="Tokens" value={formatCount(shown.tokens)} />
              <Figure label="Attempts" value={shown.attempts ?? '–'} />
            </SimpleGrid>
            <Text size="xs" mt="sm" mih={20}>
              {shown.id !== undefined && !isRunning ? <Link to={`/requests/${shown.id}`}>Open this request</Link> : null}
            </Text>
          </Panel>
          <Panel title="Settings">
            <Stack gap="sm">
              <Select label="Model" data={names.length === 0 ? ['auto'] : names} value={wanted} onChange={(value) => setModel(value ?? undefined)} searchable allowDeselect={false} />
              <NumberInput label="At most this many tokens" min={1} allowDecimal={false} value={maxTokens} onChange={setMaxTokens} hideControls />
              <Switch label="Zero data retention only" checked={isZdr} onChange={(event) => setIsZdr(event.currentTarget.checked)} />
              <Switch label="No provider that may train on it" checked={isDenied} onChange={(event) => setIsDenied(event.currentTarget.checked)} />
            </Stack>
          </Panel>
        </Stack>
      </SimpleGrid>
    </>
  );
}
