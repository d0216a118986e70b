/** One request from its plan to its end, with the other services and the client in memory. */
import type { ChatRequest } from '../domain/chat-request.js';
import { conduct, type Conducted } from '../domain/conduct.js';
import type { Caller } from '../domain/ports.js';
import { callerWith, plannedAt, planWith, requestWith } from './callers.js';
import { createFakeNeighbours, type FakeNeighbours, type Script } from './neighbours.js';
import { createRecordedAnswer, type RecordedAnswer } from './recorded-answer.js';

export interface Story {
  readonly neighbours: FakeNeighbours;
  readonly answer: RecordedAnswer;
  readonly run: () => Promise<Conducted>;
}

/** A plan of the scripts' providers, in order; a provider without a script has no worker. */
export function story(scripts: Readonly<Record<string, Script | undefined>>, { request = {}, caller = callerWith() }: { readonly request?: Partial<ChatRequest>; readonly caller?: Caller } = {}): Story {
  const neighbours = createFakeNeighbours(planWith(Object.keys(scripts).map((provider) => plannedAt(provider))));
  for (const [provider, script] of Object.entries(scripts)) if (script !== undefined) neighbours.scripts.set(provider, script);
  const answer = createRecordedAnswer();
  return { neighbours, answer, run: () => conduct(neighbours, { requestId: 'chatcmpl-0123456789', caller, request: requestWith(request), answer }) };
}
