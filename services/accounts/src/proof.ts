/** What the simulation drives of this service; deploy takes `compose`. */
export { createMemoryClaimStore } from './adapters/memory-claim-store.js';
export { createClaims, type Claims, type ClaimStore } from './domain/claims.js';
export { createAccountsMetrics } from './metrics.js';
export { createHandlers } from './server.js';
