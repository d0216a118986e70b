/** The environment of each process: its settings, and only its own addresses and secrets, as in containers. */
import { serviceSettings } from '@signalbox/standalone/service-settings';
import { providerSettings, type Environment, type WantedWorker } from '@signalbox/standalone/wanted-workers';

/** Values that the start knows from the stores and the data directory. */
export interface Given {
  readonly DATABASE_URL: string;
  readonly REDIS_URL: string;
  readonly NATS_URL: string;
  readonly KEY_PEPPER: string;
  readonly SECRETS_KEY: string;
  readonly ADMIN_TOKEN: string;
}

type Service = Parameters<typeof serviceSettings>[0];

/** Sandbox runs untrusted programs, so it gets no address of anything. */
const GIVEN: Readonly<Record<Service, readonly (keyof Given)[]>> = {
  accounts: ['DATABASE_URL', 'KEY_PEPPER', 'SECRETS_KEY', 'NATS_URL'],
  billing: ['DATABASE_URL', 'NATS_URL'],
  quota: ['REDIS_URL', 'NATS_URL'],
  routing: ['NATS_URL'],
  sandbox: [],
  plugins: ['DATABASE_URL'],
  worker: ['NATS_URL'],
  edge: ['KEY_PEPPER', 'ADMIN_TOKEN', 'NATS_URL'],
};

/** For all processes: paths, locale, memory and logging. */
const OF_ALL = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'LOG_LEVEL'];
/** For processes that connect to others: trusted certificates, and the address for traces. */
const OF_CALLERS = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG'];
/** Services that use billing periods. */
const OF_PERIODS: ReadonlySet<Service> = new Set(['billing', 'quota', 'edge']);

const pick = (environment: Environment, names: readonly string[]): Record<string, string> => Object.fromEntries(names.flatMap((name): (readonly [string, string])[] => ((environment[name] ?? '') === '' ? [] : [[name, environment[name] ?? '']])));

/** Environment of a service, without ports and neighbours, which are added at its start. */
export function environmentOf(service: Service, environment: Environment, given: Given): Readonly<Record<string, string>> {
  return {
    // glibc keeps an arena of freed memory for each of many threads; three are enough for one event loop and one V8 thread.
    MALLOC_ARENA_MAX: '3',
    // Larger blocks are returned to the system when freed; by default glibc raises this threshold and keeps them.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...pick(environment, [...OF_ALL, ...(service === 'sandbox' ? [] : OF_CALLERS), ...(OF_PERIODS.has(service) ? ['BILLING_PERIOD_SECONDS'] : [])]),
    HOST: '127.0.0.1',
    ...pick({ ...given }, GIVEN[service]),
    ...serviceSettings(service, environment),
  };
}

/** Environment of a worker, without any other provider's credential. */
export function workerEnvironmentOf({ provider, service }: WantedWorker, environment: Environment, given: Given): Readonly<Record<string, string>> {
  return { ...environmentOf('worker', environment, given), ...providerSettings(provider, environment), ...(service === 'worker-sim' ? {} : { PROVIDER: provider }) };
}
