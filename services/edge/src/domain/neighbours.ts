/** Everything a request works with: the other services, and the state that all requests of this edge share. */
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
  /** Counts by account the answers that could not be healed and for which the operator paid a second attempt. Absent = not counted. */
  readonly unhealedAnswers?: FloodGuard;
  /** Absent = not remembered. */
  readonly moved?: MovedConversations;
}
