/** Queries of billing about one model. Billing knows models by their ids only; clients also use other names. */
import type { FindModelRequest, FindModelResponse__Output } from '@signalbox/contracts/routing';
import { Fault } from '@signalbox/kernel/fault';
import { isAutoModelId } from '@signalbox/kernel/model-lists';
import type { RpcClient } from '@signalbox/rpc/call';
import { QueryError } from '../query-fields.js';

const DEADLINE_MS = 5_000;

export interface ModelQuestion<Answer> {
  /** The name that the client gave; empty = any model. */
  readonly model: string;
  ask(model: string): Promise<Answer>;
  /** True for an answer with at least one row. */
  hasFound(answer: Answer): boolean;
  /** Whether anything was ever booked under that id. */
  isBooked(): Promise<boolean>;
  readonly requestId?: string;
}

/**
 * Billing's answer for `model`, or for the id that this name means. A name with rows is not looked up, since the catalog may
 * no longer have it. Rejects with a QueryError for an unknown name under which nothing was ever booked, and with a Fault
 * `routing_unavailable` if a name without its maker cannot be looked up.
 */
export type AskOfModel = <Answer>(question: ModelQuestion<Answer>) => Promise<Answer>;

export function createModelQuestions(routing: RpcClient): AskOfModel {
  const find = async (name: string, requestId: string | undefined): Promise<string> => {
    try {
      const { id } = await routing.unary<FindModelRequest, FindModelResponse__Output>('FindModel', { name }, { deadlineMs: DEADLINE_MS, ...(requestId === undefined ? {} : { requestId }) });
      return id;
    } catch (error) {
      if (error instanceof Fault && error.code === 'internal_error') throw error;
      // A full name (maker/model) is an id already.
      if (name.includes('/')) return name;
      // The admin port has errors of its own type, which name the service.
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
