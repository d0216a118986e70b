/** The bus of a deployment that has NATS. */
import type { Bus } from './bus.js';
import type { JetStreamOptions } from './jetstream.js';

/** As `connectJetStreamBus`; its client is loaded only here, since the all-in-one never needs it and starts sooner without. */
export async function connectNatsBus(options: JetStreamOptions): Promise<Bus> {
  const { connectJetStreamBus } = await import('./jetstream.js');
  return connectJetStreamBus(options);
}
