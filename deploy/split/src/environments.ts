/** What each process has in its environment: what it works with, and of addresses and secrets its own alone, as containers have it. */
import { serviceSettings } from '@signalbox/standalone/service-settings';
import { providerSettings, type Environment, type WantedWorker } from '@signalbox/standalone/wanted-workers';

/** Of the stores and of the data directory. */
export interface Given {
  readonly DATABASE_URL: string;
  readonly REDIS_URL: string;
  readonly NATS_URL: string;
  readonly KEY_PEPPER: string;
  readonly SECRETS_KEY: string;
  readonly ADMIN_TOKEN: string;
}

type Service = Parameters<typeof serviceSettings>[0];

/** Programs that nobody trusts run in sandbox: it reaches nothing, so that nothing tells it where there is something to reach. */
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

/** Of every process: how it finds programs and words, and how much it holds and says. */
const OF_ALL = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'LOG_LEVEL'];
/** Of those that reach others: whose certificates they trust, and where traces go. */
const OF_CALLERS = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_TRACES_SAMPLER_ARG'];
/** Those for whom a period of billing has an end. */
const OF_PERIODS: ReadonlySet<Service> = new Set(['billing', 'quota', 'edge']);

const pick = (environment: Environment, names: readonly string[]): Record<string, string> => Object.fromEntries(names.flatMap((name): (readonly [string, string])[] => ((environment[name] ?? '') === '' ? [] : [[name, environment[name] ?? '']])));

/** Of a service, without the ports and neighbours that its start knows. */
export function environmentOf(service: Service, environment: Environment, given: Given): Readonly<Record<string, string>> {
  return {
    // glibc keeps an arena of freed memory for each of many threads; a few are enough for one event loop and one thread of V8's.
    MALLOC_ARENA_MAX: '3',
    // What is larger goes back to the system when it is freed; by default glibc learns to keep it.
    MALLOC_MMAP_THRESHOLD_: '131072',
    ...pick(environment, [...OF_ALL, ...(service === 'sandbox' ? [] : OF_CALLERS), ...(OF_PERIODS.has(service) ? ['BILLING_PERIOD_SECONDS'] : [])]),
    HOST: '127.0.0.1',
    ...pick({ ...given }, GIVEN[service]),
    ...serviceSettings(service, environment),
  };
}

/** Of a worker: no other provider's credential is in it. */
export function workerEnvironmentOf({ provider, service }: WantedWorker, environment: Environment, given: Given): Readonly<Record<string, string>> {
  return { ...environmentOf('worker', environment, given), ...providerSettings(provider, environment), ...(service === 'worker-sim' ? {} : { PROVIDER: provider }) };
}
