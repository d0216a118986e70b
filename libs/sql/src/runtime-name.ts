/**
 * Names the runtime as Node 21 and later do. As pg is loaded it asks whether it runs at Cloudflare, and where there is no name it
 * tries one of `fetch`'s classes, which loads all of Node's own HTTP client: 20 to 40 ms of a start, and memory that nothing
 * else uses. To be imported before pg.
 */
if (!('navigator' in globalThis)) Object.defineProperty(globalThis, 'navigator', { value: { userAgent: `Node.js/${process.versions.node.split('.')[0] ?? ''}` }, configurable: true, enumerable: false, writable: true });

export {};
