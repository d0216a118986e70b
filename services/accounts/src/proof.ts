/** The parts of this service that the simulation uses; deploy uses `compose`. */
export { createMemoryClaimStore } from './adapters/memory-claim-store.js';
export { createClaims, type Claims, type ClaimStore } from './domain/claims.js';
export { createAccountsMetrics } from './metrics.js';
export { createHandlers } from './server.js';
