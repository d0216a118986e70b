/** Scripts: what a test's worker does with an attempt as soon as it arrives. */
import type { DispatchEvent__Output } from '@signalbox/contracts/worker';
import { Fault, type FaultCode } from '@signalbox/kernel/fault';
import { events, type Script } from './neighbours.js';

/** Gives one whole answer. */
export const answersWith = (text: string): Script => (call) => call.play(events.head(), events.body(text), events.end());
/** Gives one chunk of content for each text. */
export const streamsWith = (...texts: readonly string[]): Script => (call) => call.play(events.head(), events.role(), ...texts.map((text) => events.text(text)), events.finish(), events.end());
/** Fails at the provider. */
export const fails = (...args: Parameters<typeof events.failed>): Script => (call) => call.play(events.failed(...args));
/** The link to edge breaks; the worker has no other replica or runs in this process. */
export const breaks = (code: 'link_lost' | 'peer_unavailable'): Script => (call) => call.listener.onEnd(new Fault(code, 'test'));
/** Sends the given events; then its replica is lost. */
export const diesWith = (replica: object, ...said: readonly DispatchEvent__Output[]): Script => (call) => {
  call.replica = replica;
  for (const event of said) call.listener.onEvent(event);
  breaks('link_lost')(call);
};
/** Its replica refuses it before anything is sent to the provider. */
export const refusedBy = (replica: object, code: FaultCode, hasOthers = true): Script => (call) => {
  call.replica = replica;
  call.hasOthers = hasOthers;
  call.listener.onEnd(new Fault(code, 'test'));
};
/** One script for each attempt of a request, in order. */
export const inTurn = (...scripts: readonly Script[]): Script => {
  const left = [...scripts];
  return (call) => left.shift()?.(call);
};
