/** The client's side in memory: what it was told, in order, and a reader that can stall or leave. */
import type { Answer, Refusal, Settlement } from '../domain/answer.js';

export interface RecordedAnswer extends Answer {
  readonly said: string[];
  refusal: Refusal | undefined;
  settlement: Settlement | undefined;
  /** While true the client takes nothing. */
  isStalled: boolean;
  drain(): void;
  leave(): void;
}

export function createRecordedAnswer(): RecordedAnswer {
  let drained: (() => void)[] = [];
  let gone: (() => void)[] = [];
  let hasLeft = false;
  const answer: RecordedAnswer = {
    said: [],
    refusal: undefined,
    settlement: undefined,
    isStalled: false,
    drain: () => {
      answer.isStalled = false;
      const waiting = drained;
      drained = [];
      for (const listener of waiting) listener();
    },
    leave: () => {
      hasLeft = true;
      for (const listener of gone) listener();
      gone = [];
    },
    keepAlive: () => void answer.said.push('keep-alive'),
    chunk: (_route, choices) => {
      answer.said.push(`chunk ${textOf(choices)}`);
      return !answer.isStalled;
    },
    finish: (_route, choices, settlement) => {
      answer.settlement = settlement;
      answer.said.push(`finish ${textOf(choices)}`);
    },
    cut: (_route, failed) => void answer.said.push(`cut ${failed.class}`),
    body: (_route, body, settlement) => {
      answer.settlement = settlement;
      answer.said.push(`body ${textOf(body.choices)}`);
    },
    refuse: (refusal) => {
      answer.refusal = refusal;
      answer.said.push(`refuse ${refusal.kind}`);
    },
    admitted: () => undefined,
    onDrain: (listener) => void drained.push(listener),
    abandon: () => void answer.said.push('abandon'),
    isGone: () => hasLeft,
    onGone: (listener) => {
      if (hasLeft) listener();
      else gone.push(listener);
    },
  };
  return answer;
}

/** Index, text and finish reason of the first choice, shortly. */
function textOf(choices: Uint8Array): string {
  const [choice] = JSON.parse(Buffer.from(choices).toString()) as { index: number; delta?: { content?: string }; message?: { content?: string }; finish_reason?: string | null }[];
  return `${choice?.index ?? '-'}:${choice?.delta?.content ?? choice?.message?.content ?? ''}${(choice?.finish_reason ?? null) === null ? '' : `!${choice?.finish_reason ?? ''}`}`;
}
