/** What every composed service is: something that starts, is ready or not, and stops. */
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { systemClock } from './clock.js';
import type { Environment } from './config.js';
import { createLog, type Log } from './log.js';
import { tuneProcess } from './process.js';
import type { Tracer, Tracing } from './span.js';
import { ENDED_BY_CTRL_C, onStopSignals } from './stop-signals.js';
import { openRpcTls, type RpcTls } from './tls-files.js';
import { loadTracingConfig, openTracing } from './tracing.js';

/** What every composition root is given; stores and neighbours come from its own config. */
export interface Surroundings {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  /** True for one service of a process: process metrics are collected once. */
  readonly withProcessMetrics: boolean;
  /** Given when several services share the process: they call each other through it. */
  readonly doors?: ProcessDoors;
  /** Absent: nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Absent: the doors between services are plain, and on loopback only. */
  readonly tls?: RpcTls;
}

/** What a process has once, whatever its service is. */
export interface ProcessCommons {
  readonly tracing: Tracing | undefined;
  readonly tls: RpcTls;
}

/** The rpc doors of a process by `host:port`; what stands behind one is known to libs/rpc only. */
export type ProcessDoors = Map<string, object>;

export interface Service {
  /** Name as in the table of services, such as `quota` or `worker-openai`. */
  readonly name: string;
  /** Opens the doors; resolves once they answer. Rejects with a ConfigError or Fault that a person can read. */
  start(): Promise<void>;
  /** Drains and closes, in reverse order of start. Safe to call twice. */
  stop(): Promise<void>;
  /** True while the service can do its job. */
  ready(): boolean;
  /** Port numbers by door once started: `grpc`, `http`, `admin`, `metrics`. */
  ports(): Readonly<Record<string, number>>;
}

const complain = (name: string, error: unknown): void => {
  process.stderr.write(`${name}: ${error instanceof Error ? error.message : 'could not start'}\n`);
};

/**
 * Runs a service as a process: SIGTERM and SIGINT drain it and exit 0, a second SIGINT ends it at once. Settings that are
 * wrong and a start that fails print what is wrong for a person and exit 1. A launcher's channel is told `ready`; when the
 * launcher is gone, the service drains too, so that nothing is left behind. Ctrl-C is then the launcher's: it reaches the
 * whole terminal, and neighbours that all end together would cut the streams they serve.
 */
export async function runService(name: string, environment: Environment, compose: (commons: ProcessCommons) => { readonly service: Service; readonly log: Log }): Promise<void> {
  tuneProcess();
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
