/** Metrics of sandbox. */
import { createMetrics, type Metrics } from '@signalbox/runtime/metrics';

export interface SandboxMetrics {
  readonly metrics: Metrics;
  /** `status` as in the contract, in lower case; `seconds` includes the wait. */
  ran(status: string, seconds: number): void;
  fenced(isFenced: boolean): void;
}

export function createSandboxMetrics(withProcessMetrics: boolean): SandboxMetrics {
  const metrics = createMetrics({ service: 'sandbox', withProcessMetrics });
  const programs = metrics.counter('signalbox_sandbox_programs_total', 'Programs by how they ended.', ['status']);
  const seconds = metrics.histogram('signalbox_sandbox_program_seconds', 'Time of a program, waiting included.', [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]);
  const fence = metrics.gauge('signalbox_sandbox_network_fenced', '1 where the kernel keeps programs from the network, 0 where the interpreter alone does or the container has none.');
  return {
    metrics,
    fenced: (isFenced) => fence.set(isFenced ? 1 : 0),
    ran: (status, took) => {
      programs.inc({ status });
      seconds.observe(took);
    },
  };
}
