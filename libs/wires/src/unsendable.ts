/** How composing a request fails: with the failure that its attempt ends with, before a byte left. */
import { failure, type Failure } from './canonical.js';

/** Thrown while a request is composed; nothing else that is thrown there is expected. */
export class Unsendable extends Error {
  readonly failure: Failure;

  constructor(reason: Failure) {
    super(`A request cannot be sent: ${reason.class}.`);
    this.name = 'Unsendable';
    this.failure = reason;
  }
}

/** The client's fault: `param` names the message and part, such as `messages.[0].content.[1].image_url.url`; no other endpoint would take it. */
export function badInput(param: string, message: string): Unsendable {
  return new Unsendable({ ...failure('BAD_REQUEST', false), publicMessage: message, publicParam: param });
}

/** The wire has no words for it: another endpoint may take it. */
export function notTakenHere(param: string, message: string): Unsendable {
  return new Unsendable({ ...failure('BAD_REQUEST'), publicMessage: message, publicParam: param });
}
