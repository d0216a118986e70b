/** The client's side in memory: records what it got, in order, and can stall or leave. */
import type { Answer, ClientListener, Refusal, Settlement } from '../domain/answer.js';

export interface RecordedAnswer extends Answer {
  readonly said: string[];
  /** Choices as they came, in order. */
  readonly raw: string[];
  refusal: Refusal | undefined;
  settlement: Settlement | undefined;
  /** The choices that had ended before the answer was cut. */
  finished: readonly number[];
  /** While true the client reads nothing. */
  isStalled: boolean;
  /** Bytes that it has read; undefined = another answer has its turn. */
  takenBytes: number | undefined;
  drain(): void;
  /** The client leaves; `byItself` false = edge cuts it off. */
  leave(byItself?: boolean): void;
  /** Ends the drain; true = the answer ends by itself. */
  stop(): boolean;
}

export function createRecordedAnswer(): RecordedAnswer {
  let listener: ClientListener | undefined;
  let hasLeft = false;
  let isCut = false;
  /** The attempt was told that the client is slow, and has not read since. */
  let isSlow = false;
  const tellSlow = (): void => listener?.onSlow(() => answer.takenBytes);
  const answer: RecordedAnswer = {
    said: [],
    raw: [],
    refusal: undefined,
    settlement: undefined,
    finished: [],
    isStalled: false,
    takenBytes: 0,
    drain: () => {
      answer.isStalled = false;
      isSlow = false;
      listener?.onDrain();
    },
    leave: (byItself = true) => {
      hasLeft = byItself;
      isCut = !byItself;
      listener?.onGone(byItself);
    },
    stop: () => listener?.onStop?.() ?? false,
    decided: () => undefined,
    keepAlive: () => void answer.said.push('keep-alive'),
    chunk: (_route, choices) => {
      answer.raw.push(Buffer.from(choices).toString());
      answer.said.push(`chunk ${textOf(choices)}`);
      if (!answer.isStalled) return;
      isSlow = true;
      tellSlow();
    },
    finish: (_route, choices, settlement) => {
      answer.settlement = settlement;
      answer.raw.push(Buffer.from(choices).toString());
      answer.said.push(`finish ${textOf(choices)}`);
    },
    cut: (_route, failed, settlement, _attempts, finished = new Set<number>()) => {
      answer.finished = [...finished];
      answer.settlement = settlement;
      answer.said.push(`cut ${failed.class}`);
    },
    body: (body, settlement) => {
      answer.settlement = settlement;
      answer.raw.push(Buffer.from(body.choices).toString());
      answer.said.push(`body ${textOf(body.choices)}`);
    },
    refuse: (refusal, settlement) => {
      answer.refusal = refusal;
      answer.settlement = settlement ?? answer.settlement;
      answer.said.push(`refuse ${refusal.kind}`);
    },
    admitted: () => undefined,
    abandon: (unread) => void answer.said.push(unread === 'stalled' ? 'abandon' : `abandon ${unread}`),
    isGone: () => hasLeft || isCut,
    attend: (attempt) => {
      listener = attempt;
      if (hasLeft || isCut) attempt.onGone(hasLeft);
      else if (isSlow) tellSlow();
    },
  };
  return answer;
}

/** Index, text and finish reason of the first choice, in short form. */
function textOf(choices: Uint8Array): string {
  const [choice] = JSON.parse(Buffer.from(choices).toString()) as { index: number; delta?: { content?: string }; message?: { content?: string }; finish_reason?: string | null }[];
  return `${choice?.index ?? '-'}:${choice?.delta?.content ?? choice?.message?.content ?? ''}${(choice?.finish_reason ?? null) === null ? '' : `!${choice?.finish_reason ?? ''}`}`;
}
