/** Publishes decisions for billing, and an operator's commands for the other replicas. Both are delivered at most once. */
import type { Bus, Subscription } from '@signalbox/bus/bus';
import type { DecisionsMade, DecisionsMade__Output, RoutingControl, RoutingControl__Output } from '@signalbox/contracts/events';
import { messageCodec } from '@signalbox/contracts/load';
import type { Log } from '@signalbox/runtime/log';
import type { RecordedDecision } from '../domain/decisions.js';

const DECISIONS_SUBJECT = 'decisions.v1';
const CONTROL_SUBJECT = 'routing.v1.control';
/** Half the largest message of the bus. */
const MESSAGE_BYTES_MAX = 512 * 1_024;

const decisionsCodec = messageCodec<DecisionsMade, DecisionsMade__Output>('signalbox.events.v1.DecisionsMade');
const controlCodec = messageCodec<RoutingControl, RoutingControl__Output>('signalbox.events.v1.RoutingControl');

/** Publishes records in messages of bounded size. A single record above that size is not published, and stays in memory only. */
export function announceDecisions(bus: Bus, records: readonly RecordedDecision[]): void {
  let batch: NonNullable<DecisionsMade['decisions']> = [];
  let bytes = 0;
  const send = (): void => {
    if (batch.length > 0) bus.announce(DECISIONS_SUBJECT, decisionsCodec.encode({ decisions: batch }));
    batch = [];
    bytes = 0;
  };
  for (const { id, requestId, accountId, atMs, viaAuto, record } of records) {
    if (record.length > MESSAGE_BYTES_MAX) continue;
    if (bytes + record.length > MESSAGE_BYTES_MAX) send();
    batch.push({ id, requestId, accountId, atMs: String(atMs), viaAuto, recordJson: record });
    bytes += record.length;
  }
  send();
}

export function announceControl(bus: Bus, { origin, action }: { readonly origin: string; readonly action: string }): void {
  bus.announce(CONTROL_SUBJECT, controlCodec.encode({ origin, action }));
}

/** Calls `obey` with the commands that other replicas received. */
export function listenToControl(bus: Bus, origin: string, obey: (action: string) => Promise<void>, log: Log): Promise<Subscription> {
  return bus.listen(CONTROL_SUBJECT, ({ payload }) => {
    let message: RoutingControl__Output;
    try {
      message = controlCodec.decode(payload);
    } catch {
      log.warn('A message of another replica could not be read.');
      return;
    }
    if (message.origin === origin) return;
    obey(message.action).catch((error: unknown) => log.error('A command received by another replica could not be carried out here.', { action: message.action }, error));
  });
}
