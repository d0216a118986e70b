/** The cheapest gateway that one could write: node:http in, undici out, nothing looked at. The yardstick of every ratio. */
import { createServer } from 'node:http';
import { Pool } from 'undici';

const upstream = new Pool(process.argv[2] ?? '', { connections: 128 });

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const headers = { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' };
    upstream
      .stream({ path: request.url ?? '/', method: 'POST', headers, body: Buffer.concat(parts), opaque: response }, ({ statusCode, headers: answered }) => {
        const length = answered['content-length'];
        response.writeHead(statusCode, { 'content-type': String(answered['content-type']), ...(length === undefined ? {} : { 'content-length': String(length) }) });
        return response;
      })
      .catch(() => response.destroy());
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`ready ${typeof address === 'object' && address !== null ? String(address.port) : ''}\n`);
});
