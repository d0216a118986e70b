/** The HTTP side of Idempotency-Key: the header, the refusals, and replayed answers. */
import { toFault } from '@signalbox/kernel/fault';
import type { Secret } from '@signalbox/runtime/secret';
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@signalbox/kernel/clock';
import { watchRest } from '../adapters/responses.js';
import { createFloodGuard } from '../domain/flood.js';
import type { Caller } from '../domain/ports.js';
import type { OpenClaim, Repeats } from '../domain/repeats.js';
import { apiError, faultToApiError, retryHeaders, type ApiError } from '../wire/errors.js';
import { isGivenTwice } from '../wire/given-twice.js';
import type { HeaderList } from '../wire/headers.js';
import { unpackAnswer, type KeptAnswer } from '../wire/kept-answer.js';
import type { Gate } from './gate.js';

/** Claims a second of one account at this edge, since each is a write; more get 429. */
const CLAIMS_PER_SECOND_MAX = 200;
const KEY_PATTERN = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

export interface Repeated {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly caller: Caller;
  /** The header's value. */
  readonly key: string;
  readonly body: Buffer;
  /** The request is booked in the ledger. */
  readonly isBilled: boolean;
  /** The request allows its answer to be kept (no `zdr`). */
  readonly mayKeep: boolean;
}

/** `keyDigest`: HMAC of the account and the Idempotency-Key; the same for each repeat. */
export type GatedClaim = OpenClaim & { readonly keyDigest: Buffer };

export interface RepeatGate {
  /** The claim, whose `end` must be called, or undefined when the request was answered. */
  enter(repeated: Repeated): Promise<GatedClaim | undefined>;
}

/** Whether answers are kept for repeats: by the account's own setting, else the operator's. */
export function keepsAnswers({ account }: Caller): boolean {
  return account.policyStoreAnswers ?? account.storeAnswers;
}

/** A key restricted to some models gets no answer of another key's request, since it may not be allowed that model. */
function mayRead({ key }: Caller, { keyId }: KeptAnswer): boolean {
  return keyId === undefined || keyId === key.id || (key.limits?.allowedModels ?? []).length === 0;
}

/** Marks a conflict that a retry does not solve. */
const final = (error: ApiError): ApiError => ({ ...error, headers: { 'x-should-retry': 'false' } });

export function createRepeatGate({ repeats, gate, clock, pepper }: { readonly repeats: Repeats; readonly gate: Gate; readonly clock: Clock; readonly pepper: Secret }): RepeatGate {
  const pepperText = pepper.unwrap();
  const flood = createFloodGuard(clock, CLAIMS_PER_SECOND_MAX, 1_000);
  // An HMAC, so that a reader of the store can guess neither keys nor bodies.
  const digest = (...parts: readonly (string | Buffer)[]): Buffer => parts.reduce((hmac, part) => hmac.update(part).update('\n'), createHmac('sha256', pepperText)).digest();

  const give = ({ response, requestId, caller }: Repeated, { status, headers, trailers, body }: KeptAnswer): void => {
    const isChunked = trailers.length > 0 && response.req.httpVersion !== '1.0';
    const list: HeaderList = [...headers, 'Idempotent-Replayed', 'true'];
    if (!headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'x-request-id')) list.push('x-request-id', requestId);
    if (isChunked) list.push('Trailer', trailers.filter((_name, index) => index % 2 === 0).join(', '));
    else list.push('Content-Length', String(body.length));
    gate.addHeaders(list, caller);
    response.writeHead(status, list);
    response.write(body);
    if (isChunked) response.addTrailers(Object.fromEntries(trailers.flatMap((name, index) => (index % 2 === 0 ? [[name, trailers[index + 1] ?? ''] as const] : []))));
    response.end();
    watchRest(response, gate.readers);
  };

  return {
    enter: async (repeated) => {
      const { request, response, requestId, caller, key, body, isBilled, mayKeep } = repeated;
      const refuse = (error: ApiError): undefined => {
        gate.fail(response, requestId, error, caller);
        return undefined;
      };
      if (isGivenTwice(request.rawHeaders, 'idempotency-key')) return refuse(gate.noteInvalid(caller, apiError('invalid_value', { param: 'Idempotency-Key', message: 'Idempotency-Key must be sent once.' })));
      if (!KEY_PATTERN.test(key)) return refuse(gate.noteInvalid(caller, apiError('invalid_value', { param: 'Idempotency-Key', message: 'Idempotency-Key must be 1 to 255 printable ASCII characters.' })));
      flood.note(caller.account.id);
      const floodMs = flood.waitMs(caller.account.id);
      if (floodMs > 0) return refuse(apiError('requests_rate_limited', { message: `Rate limit reached: this account may make ${CLAIMS_PER_SECOND_MAX} requests with an Idempotency-Key a second.`, retryAfterMs: floodMs }));
      const ref = { accountId: caller.account.id, keyDigest: digest('idempotency key', caller.account.id, key), requestId };
      let entry;
      try {
        const path = (request.url ?? '').split('?')[0] ?? '';
        entry = await repeats.enter(ref, digest('idempotent body', request.method ?? '', path, body), isBilled, () => response.writableEnded);
      } catch (error) {
        return refuse(faultToApiError(toFault(error)));
      }
      switch (entry.kind) {
        case 'open':
          return { ...entry.claim, keyDigest: ref.keyDigest };
        case 'other-body':
          return refuse(gate.noteInvalid(caller, final(apiError('idempotency_conflict'))));
        case 'running':
          return refuse({ ...apiError('idempotency_in_progress', { metadata: { request_id: entry.requestId, retryable: true } }), headers: { ...retryHeaders(entry.retryAfterMs), 'x-should-retry': 'true' } });
        case 'done': {
          const kept = entry.answer === undefined || !mayKeep || !keepsAnswers(caller) ? undefined : unpackAnswer(entry.answer);
          if (kept === undefined || !mayRead(caller, kept)) return refuse(final(apiError('idempotency_completed', { metadata: { request_id: entry.requestId, cost_usd: entry.costNanoUsd ?? null } })));
          give(repeated, kept);
          return undefined;
        }
      }
    },
  };
}
