/** What a request meets on its way: the other services, and what all requests share. */
import type { Clock } from '@signalbox/kernel/clock';
import type { FloodGuard } from './flood.js';
import type { SchemaCheck } from './healing.js';
import type { MovedConversations } from './moved-conversations.js';
import type { PluginNeighbours } from './plugin-run.js';
import type { QuotaPort, RoutingPort, WorkersPort } from './ports.js';
import type { RetryBudget } from './retry-budget.js';
import type { WaitingRoom } from './waiting-room.js';

export interface Neighbours extends PluginNeighbours {
  readonly routing: RoutingPort;
  readonly quota: QuotaPort;
  readonly workers: WorkersPort;
  readonly waitingRoom: WaitingRoom;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly checkSchema: SchemaCheck;
  /** Shared by all requests. */
  readonly retries: RetryBudget;
  /** Accounts whose answers were not the JSON that they asked for, so that the operator paid for another. Absent: nobody counts. */
  readonly unhealedAnswers?: FloodGuard;
  /** Absent: nobody remembers. */
  readonly moved?: MovedConversations;
}
