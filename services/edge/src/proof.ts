/** The parts of this service that the simulation (`sim/`) drives; deploy uses `compose`. */
export { createClaimsClient, createLedgerClient } from './adapters/claims-client.js';
export { createQuotaClient } from './adapters/quota-client.js';
export { createWorkerClients, type WorkerClients } from './adapters/worker-clients.js';
export type { Answer, ClientListener, Refusal, Route, Settlement } from './domain/answer.js';
export type { ChatRequest } from './domain/chat-request.js';
export { conduct, type Conducted, type Neighbours } from './domain/conduct.js';
export { createRepeats, endingOf, type Repeats } from './domain/repeats.js';
export { settleRequests, untilNone } from './domain/stopping.js';
export type { Turn } from './domain/turn.js';
export type { Admission, Caller } from './domain/ports.js';
export { createFloodGuard } from './domain/flood.js';
export { createWaitingRoom } from './domain/waiting-room.js';
export { createRetryBudget } from './domain/retry-budget.js';
export { createAdvances } from './domain/advances.js';
