/** GET /openapi.json: public, and generated at the first request. */
import type { Request, Response } from 'express';

const HOUR_SECONDS = 3_600;

export function createOpenApiRoute(): (request: Request, response: Response) => Promise<void> {
  let text: Promise<string> | undefined;
  // Imported only now, since the generator would slow every start.
  const make = async (): Promise<string> => JSON.stringify((await import('./document.js')).openApiDocument());
  return async (_request, response) => {
    text ??= make();
    response.status(200).type('application/json').set('cache-control', `public, max-age=${HOUR_SECONDS}`).send(await text);
  };
}
