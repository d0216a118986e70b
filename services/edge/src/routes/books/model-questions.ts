/** Questions to the books about one model. The books have the ids of those that answered; clients ask for models by other names, too. */
import type { FindModelRequest, FindModelResponse__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import type { RpcClient } from '@signalbox/rpc/call';
import { QueryError } from '../query-fields.js';

const DEADLINE_MS = 5_000;

export interface ModelQuestion<Answer> {
  /** As the client names it; empty = any. */
  readonly model: string;
  ask(model: string): Promise<Answer>;
  /** True for an answer that is more than an empty list. */
  hasFound(answer: Answer): boolean;
  /** Whether the books have anything of the model of that id, whenever it was. */
  isBooked(): Promise<boolean>;
  readonly requestId?: string;
}

/**
 * The books' answer under the id that `model` is or means. What has rows is never looked up, since a catalog may have
 * dropped it. Rejects with a QueryError for a name that means nothing, under which nothing was ever booked, and with a
 * Fault `routing_unavailable` where a name without its maker cannot be looked up: that there is nothing would be a guess.
 */
export type AskOfModel = <Answer>(question: ModelQuestion<Answer>) => Promise<Answer>;

export function createModelQuestions(routing: RpcClient): AskOfModel {
  const find = async (name: string, requestId: string | undefined): Promise<string> => {
    try {
      const { id } = await routing.unary<FindModelRequest, FindModelResponse__Output>('FindModel', { name }, { deadlineMs: DEADLINE_MS, ...(requestId === undefined ? {} : { requestId }) });
      return id;
    } catch (error) {
      if (error instanceof Fault && error.code === 'internal_error') throw error;
      // In full it is what the books have.
      if (name.includes('/')) return name;
      // The operator's door names whoever did not answer.
      throw error instanceof Fault ? new Fault('routing_unavailable', 'routing did not answer', { cause: error }) : error;
    }
  };
  return async ({ model, ask, hasFound, isBooked, requestId }) => {
    const found = await ask(model);
    if (model === '' || hasFound(found)) return found;
    if (isAutoModelId(model)) throw new QueryError('model', `model: usage is recorded under the models that answered, not '${model}'. The field routed_from of a request says whether it asked for it.`);
    const id = await find(model, requestId);
    if (id === model) return found;
    if (id !== '') return ask(id);
    if (await isBooked()) return found;
    throw new QueryError('model', `model: ${JSON.stringify(model)} is the name of no single model; in full it is maker/model.`);
  };
}
