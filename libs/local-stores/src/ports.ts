/** Free ports of loopback. */
export { freePort, quietPort } from './child.js';
