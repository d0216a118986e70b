/** What a worker of a test does with an attempt as soon as it arrives. */
import { Fault } from '@signalbox/kernel/fault';
import { events, type Script } from './neighbours.js';

/** Gives one whole answer. */
export const answersWith = (text: string): Script => (call) => call.play(events.head(), events.body(text), events.end());
/** Gives one chunk of content for each text. */
export const streamsWith = (...texts: readonly string[]): Script => (call) => call.play(events.head(), events.role(), ...texts.map((text) => events.text(text)), events.finish(), events.end());
/** Fails at the provider. */
export const fails = (...args: Parameters<typeof events.failed>): Script => (call) => call.play(events.failed(...args));
/** Loses its link to edge. */
export const breaks = (code: 'link_lost' | 'peer_unavailable'): Script => (call) => call.listener.onEnd(new Fault(code, 'test'));
