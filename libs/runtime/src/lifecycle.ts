/** Lifecycle of a composed service: start, readiness, stop. */
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { systemClock } from './clock.js';
import { emptyBlanks } from './config.js';
import { createLog, type Log } from './log.js';
import { misspeltSettings, settingsReadBy } from './misspelt-settings.js';
import { tuneProcess } from './process.js';
import type { Tracer, Tracing } from './span.js';
import { ENDED_BY_CTRL_C, onStopSignals } from './stop-signals.js';
import { openRpcTls, type RpcTls } from './tls-files.js';
import { loadTracingConfig, openTracing } from './tracing.js';

/** Passed to every composition root; stores and neighbours come from its own config. */
export interface Surroundings {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  /** True for one service per process, since process metrics are collected once. */
  readonly withProcessMetrics: boolean;
  /** Present if several services share the process: they call each other through it. */
  readonly doors?: ProcessDoors;
  /** Absent = no tracing. */
  readonly tracer?: Tracer | undefined;
  /** Absent = RPC without TLS, on loopback only. */
  readonly tls?: RpcTls;
}

/** What exists once per process, for any service. */
export interface ProcessCommons {
  readonly tracing: Tracing | undefined;
  readonly tls: RpcTls;
}

/** The RPC servers of a process by `host:port`; only libs/rpc knows their type. */
export type ProcessDoors = Map<string, object>;

export interface Service {
  /** Name in the table of services, such as `quota` or `worker-openai`. */
  readonly name: string;
  /** Starts listening; resolves once the service answers. Rejects with a ConfigError or Fault that a person can read. */
  start(): Promise<void>;
  /** Drains and closes, in reverse order of start. Safe to call twice. */
  stop(): Promise<void>;
  /** True while the service can do its job. */
  ready(): boolean;
  /** Port numbers by listener, once started: `grpc`, `http`, `admin`, `metrics`. */
  ports(): Readonly<Record<string, number>>;
}

const complain = (name: string, error: unknown): void => {
  process.stderr.write(`${name}: ${error instanceof Error ? error.message : 'could not start'}\n`);
};

/**
 * Runs a service as a process: SIGTERM and SIGINT drain it and exit 0, a second SIGINT ends it at once. Wrong settings or
 * a failed start print the problem for a person and exit 1. If there is a launcher's channel, sends `ready` to it, and
 * drains when the launcher is gone, so that no process is left behind. Under a launcher, SIGINT is ignored here: Ctrl-C
 * reaches all processes of the terminal, and if all services stopped together, running streams would be cut.
 */
export async function runService(name: string, environment: Record<string, string | undefined>, compose: (commons: ProcessCommons) => { readonly service: Service; readonly log: Log }): Promise<void> {
  tuneProcess();
  emptyBlanks(environment);
  let composed: ReturnType<typeof compose>;
  let tracing: Tracing | undefined;
  try {
    const early = { clock: systemClock, log: createLog({ service: name, level: 'info' }) };
    const tls = openRpcTls(environment, early);
    tracing = await openTracing(loadTracingConfig(environment), early);
    composed = compose({ tracing, tls });
  } catch (error) {
    complain(name, error);
    process.exit(1);
  }
  const { service, log } = composed;
  for (const [given, meant] of misspeltSettings(environment, settingsReadBy(name))) log.warn('A variable is set and not used, whose name is nearly that of a setting.', { variable: given, setting: meant });
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    const stopAll = async (): Promise<void> => {
      await service.stop();
      await tracing?.stop();
    };
    stopAll().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error('The service did not stop cleanly.', {}, error);
        process.exit(1);
      },
    );
  };
  if (process.connected) {
    process.on('SIGTERM', stop);
    process.on('SIGINT', () => undefined);
  } else {
    onStopSignals({
      clock: systemClock,
      begin: stop,
      end: () => {
        process.stderr.write(`${name}: stopped at once, without waiting for running work\n`);
        process.exit(ENDED_BY_CTRL_C);
      },
    });
  }
  process.on('disconnect', stop);
  try {
    await service.start();
    if (process.connected) process.send?.({ ready: true, name: service.name, ports: service.ports() });
    log.info('The service is ready.', service.ports());
  } catch (error) {
    if (stopping) return;
    complain(service.name, error);
    process.exit(1);
  }
}
