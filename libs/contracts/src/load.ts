/** Every contract of proto/ by name: codecs of messages, and the RPCs of services. */
import * as accounts from './gen/codec/accounts.js';
import * as billing from './gen/codec/billing.js';
import * as common from './gen/codec/common.js';
import * as events from './gen/codec/events.js';
import * as link from './gen/codec/link.js';
import * as plugins from './gen/codec/plugins.js';
import * as quota from './gen/codec/quota.js';
import * as routing from './gen/codec/routing.js';
import * as sandbox from './gen/codec/sandbox.js';
import * as worker from './gen/codec/worker.js';
import type { MessageCodec, Rpc } from './wire.js';

export type { MessageCodec, Rpc } from './wire.js';

const SERVICES = {
  quota: { rpcs: quota.rpcs, link: '/signalbox.quota.v1.QuotaService/Link' },
  routing: { rpcs: routing.rpcs, link: '/signalbox.routing.v1.RoutingService/Link' },
  accounts: { rpcs: accounts.rpcs, link: '/signalbox.accounts.v1.AccountsService/Link' },
  billing: { rpcs: billing.rpcs, link: '/signalbox.billing.v1.BillingService/Link' },
  sandbox: { rpcs: sandbox.rpcs, link: '/signalbox.sandbox.v1.SandboxService/Link' },
  plugins: { rpcs: plugins.rpcs, link: '/signalbox.plugins.v1.PluginsService/Link' },
  worker: { rpcs: worker.rpcs, link: '/signalbox.worker.v1.WorkerService/Link' },
} as const;
export type ServiceArea = keyof typeof SERVICES;

export interface ServiceContract {
  /** By RPC name; Link is not among them. */
  readonly rpcs: Readonly<Record<string, Rpc>>;
  /** gRPC path of the area's Link. */
  readonly link: string;
}

export function serviceContract(area: ServiceArea): ServiceContract {
  return SERVICES[area];
}

const AREAS = { accounts, billing, common, events, link, plugins, quota, routing, sandbox, worker } as const;

/** Codec of one message type, such as `signalbox.events.v1.UsageRecorded`. Throws when there is no such type. */
export function messageCodec<Message extends object, Output extends object>(name: string): MessageCodec<Message, Output> {
  const [, area = '', , type = ''] = name.split('.');
  const codecs: Readonly<Record<string, unknown>> | undefined = Object.hasOwn(AREAS, area) ? AREAS[area as keyof typeof AREAS].codecs : undefined;
  if (codecs === undefined || !Object.hasOwn(codecs, type)) throw new Error(`No contract named ${name}.`);
  return codecs[type] as MessageCodec<Message, Output>;
}
