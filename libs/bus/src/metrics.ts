/** What a service knows of the bus, read when it is scraped. */
import type { Metrics } from '@signalbox/runtime/metrics';
import type { Bus, Subscription } from './bus.js';

/** `bus` answers undefined until there is one. */
export function observeBus(metrics: Metrics, bus: () => Bus | undefined): void {
  metrics.observed('gauge', 'signalbox_bus_connected', '1 while the event bus is connected.', [], () => [{ labels: {}, value: bus()?.isConnected() === true ? 1 : 0 }]);
}

/** Of a durable consumer; left out of a scrape while the server does not say. */
export function observeLag(metrics: Metrics, durable: string, subscription: () => Subscription | undefined): void {
  metrics.observed('gauge', 'signalbox_bus_consumer_lag_messages', 'Messages stored and not yet acknowledged under a durable name.', ['durable'], async () => {
    const lag = await subscription()?.lag?.();
    return lag === undefined ? [] : [{ labels: { durable }, value: lag }];
  });
}
