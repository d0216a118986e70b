/** The certificates of a process: read at the start and again while it runs, so that they can be renewed without a restart. */
import type { Clock, Timer } from '@signalbox/kernel/clock';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { ConfigError, loadConfig, type Environment } from './config.js';
import type { Log } from './log.js';
import { rareWarning } from './rare-warning.js';

/** PEM texts. */
export interface TlsMaterial {
  /** Trusted authorities, for callers and for servers. */
  readonly ca: Buffer;
  readonly certificate: Buffer;
  readonly privateKey: Buffer;
}

export interface TlsFiles {
  latest(): TlsMaterial;
  /** Calls the listener with each new set. Returns a function that stops this. */
  watch(listener: (material: TlsMaterial) => void): () => void;
  /** To be called when the certificate of the service at `address`, or without it of a caller, was refused: logs that at most once a minute. `reason`: a code of OpenSSL or Node, such as CERT_HAS_EXPIRED. */
  refused(reason: string, address?: string): void;
  /** Stops reading the files. */
  stop(): void;
}

/** Security of RPC between services: with certificates; `off` = plaintext on any address; absent = plaintext, on loopback only. */
export type RpcTls = TlsFiles | 'off' | undefined;

/** File names as in a Kubernetes secret of type tls. */
const FILES = { ca: 'ca.crt', certificate: 'tls.crt', privateKey: 'tls.key' } as const;
/** Certificates are valid for weeks, so a new one is used long before the old one ends. */
const REREAD_MS = 10_000;

const schema = z.object({
  /** Folder with ca.crt, tls.crt and tls.key: services then use mutual TLS. Absent = no TLS, allowed on loopback only. */
  RPC_TLS_DIR: z.string().min(1).optional(),
  /** `off` = no TLS beyond loopback either, for development on an isolated network. */
  RPC_TLS: z.enum(['required', 'off']).default('required'),
  /** `production` refuses RPC_TLS=off. */
  DEPLOYMENT: z.enum(['development', 'production']).default('development'),
});

function readMaterial(directory: string): TlsMaterial {
  const read = (name: string): Buffer => {
    try {
      return readFileSync(join(directory, name));
    } catch {
      throw new ConfigError(`RPC_TLS_DIR: ${name} cannot be read there.`);
    }
  };
  const material = { ca: read(FILES.ca), certificate: read(FILES.certificate), privateKey: read(FILES.privateKey) };
  try {
    createSecureContext({ ca: material.ca, cert: material.certificate, key: material.privateKey });
  } catch {
    throw new ConfigError(`RPC_TLS_DIR: ${FILES.certificate}, ${FILES.privateKey} and ${FILES.ca} do not make a certificate, its key and who is believed.`);
  }
  return material;
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** When the certificate ends, or the authority that signed it if that is sooner, in milliseconds since the epoch. */
function endOf({ ca, certificate }: TlsMaterial): number {
  const own = new X509Certificate(certificate);
  // While an authority is being replaced, both are trusted.
  const signers = (ca.toString('latin1').match(PEM) ?? []).map((pem) => new X509Certificate(pem)).filter((each) => own.checkIssued(each));
  return Math.min(...[own, ...signers].map(({ validTo }) => Date.parse(validTo)));
}

/** End dates of all certificate sets that this process uses: a metric of the process, like its memory. */
const endsInUse = new Map<object, number>(); // kept: by set of files.

/** When the first certificate in use ends, in milliseconds since the Unix epoch; undefined = no certificates in use. */
export function certificateEndMs(): number | undefined {
  return endsInUse.size === 0 ? undefined : Math.min(...endsInUse.values());
}

const isSame = (a: TlsMaterial, b: TlsMaterial): boolean => a.ca.equals(b.ca) && a.certificate.equals(b.certificate) && a.privateKey.equals(b.privateKey);

/** Throws a ConfigError if the files cannot be used. Later, unusable files are logged once and change nothing. */
function openTlsFiles(directory: string, { clock, log }: { readonly clock: Clock; readonly log: Log }): TlsFiles {
  const listeners = new Set<(material: TlsMaterial) => void>();
  let latest = readMaterial(directory);
  const inUse = {};
  endsInUse.set(inUse, endOf(latest));
  let timer: Timer | undefined;
  let isBroken = false;
  // A refused peer tries again for ever.
  const warnOfCaller = rareWarning(log, clock, 'The certificate of a caller was refused.');
  const warnOfService = rareWarning(log, clock, 'The certificate of a called service was refused.');
  const reread = (): void => {
    try {
      const material = readMaterial(directory);
      isBroken = false;
      if (!isSame(material, latest)) {
        latest = material;
        endsInUse.set(inUse, endOf(material));
        log.info('New certificates are in use.');
        for (const listener of listeners) listener(material);
      }
    } catch {
      // The files of a set may be replaced one after the other, so this may be a set that is half replaced.
      if (!isBroken) log.warn('New certificates cannot be used; the ones before stay.');
      isBroken = true;
    }
    schedule();
  };
  const schedule = (): void => {
    timer = clock.setTimer(REREAD_MS, reread, { unref: true });
  };
  schedule();
  return {
    latest: () => latest,
    watch: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    refused: (reason, address) => {
      if (address === undefined) warnOfCaller({ reason });
      else warnOfService({ reason, address });
    },
    stop: () => {
      timer?.cancel();
      endsInUse.delete(inUse);
    },
  };
}

/** Throws a ConfigError that names the problem. */
export function openRpcTls(environment: Environment, surroundings: { readonly clock: Clock; readonly log: Log }): RpcTls {
  const { RPC_TLS_DIR: directory, RPC_TLS: mode, DEPLOYMENT: deployment } = loadConfig(schema, environment);
  if (mode === 'off' && deployment === 'production') throw new ConfigError('RPC_TLS: off is refused in production; give certificates in RPC_TLS_DIR.');
  if (mode === 'off') return 'off';
  return directory === undefined ? undefined : openTlsFiles(directory, surroundings);
}
