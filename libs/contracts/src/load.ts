/** Loads every contract of proto/ once. */
import { loadSync, type AnyDefinition, type PackageDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import { fileURLToPath } from 'node:url';
import { loaderOptions } from '../loader-options.mjs';

const PROTO_DIR = fileURLToPath(new URL('../../../proto', import.meta.url));
const AREAS = ['common', 'link', 'quota', 'routing', 'accounts', 'billing', 'worker', 'events'] as const;
export type Area = (typeof AREAS)[number];

let loaded: PackageDefinition | undefined;

function definitions(): PackageDefinition {
  loaded ??= loadSync(
    AREAS.map((area) => `${area}/v1/${area}.proto`),
    { ...loaderOptions, includeDirs: [PROTO_DIR] },
  );
  return loaded;
}

function definition(name: string): AnyDefinition {
  const found = definitions()[name];
  if (found === undefined) throw new Error(`No contract named ${name}.`);
  return found;
}

const SERVICES = {
  quota: 'signalbox.quota.v1.QuotaService',
  routing: 'signalbox.routing.v1.RoutingService',
  accounts: 'signalbox.accounts.v1.AccountsService',
  billing: 'signalbox.billing.v1.BillingService',
  worker: 'signalbox.worker.v1.WorkerService',
} as const;
export type ServiceArea = keyof typeof SERVICES;

/** The gRPC definition of an area's one service, its `Link` method included. */
export function serviceDefinition(area: ServiceArea): ServiceDefinition {
  return definition(SERVICES[area]) as ServiceDefinition;
}

export interface MessageCodec<Message extends object, Output extends object> {
  encode(message: Message): Buffer;
  /** Throws on bytes that are not such a message. */
  decode(bytes: Uint8Array): Output;
}

let root: protobuf.Root | undefined;

function protoRoot(): protobuf.Root {
  if (root === undefined) {
    root = new protobuf.Root();
    root.resolvePath = (_origin, target) => `${PROTO_DIR}/${target}`;
    root.loadSync(AREAS.map((area) => `${area}/v1/${area}.proto`));
  }
  return root;
}

/** Codec of one message type, such as `signalbox.events.v1.UsageRecorded`. */
export function messageCodec<Message extends object, Output extends object>(name: string): MessageCodec<Message, Output> {
  const type = protoRoot().lookupType(name);
  return {
    encode: (message) => Buffer.from(type.encode(type.fromObject(message)).finish()),
    decode: (bytes) => type.toObject(type.decode(bytes), loaderOptions) as Output,
  };
}
