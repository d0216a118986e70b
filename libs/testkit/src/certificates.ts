/** An authority of a test's own, and the certificates it makes. */
import forge from 'node-forge';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Authority {
  /** Writes ca.crt, tls.crt and tls.key for a service that is reached at its name and on loopback, over what is there; valid for a day unless told. */
  issue(directory: string, service: string, days?: number): void;
}

const DAY_MS = 86_400_000;
const IP_ADDRESS = 7;
const DNS_NAME = 2;

interface Keys {
  readonly publicKey: forge.pki.PublicKey;
  readonly privateKey: forge.pki.rsa.PrivateKey;
  readonly privatePem: string;
}

/** By node:crypto: forge's own generator takes seconds. */
function makeKeys(): Keys {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
  return { publicKey: forge.pki.publicKeyFromPem(publicKey), privateKey: forge.pki.privateKeyFromPem(privateKey), privatePem: privateKey };
}

let serial = 1;

function certificateFor(name: string, issuer: string, publicKey: forge.pki.PublicKey, extensions: readonly object[], days: number): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = publicKey;
  serial += 1;
  certificate.serialNumber = serial.toString(16).padStart(4, '0');
  certificate.validity.notBefore = new Date(Date.now() - DAY_MS);
  certificate.validity.notAfter = new Date(Date.now() + days * DAY_MS);
  certificate.setSubject([{ name: 'commonName', value: name }]);
  certificate.setIssuer([{ name: 'commonName', value: issuer }]);
  certificate.setExtensions([...extensions]);
  return certificate;
}

export function createAuthority(name: string, authorityDays = 1): Authority {
  const own = makeKeys();
  const ca = certificateFor(name, name, own.publicKey, [{ name: 'basicConstraints', cA: true, critical: true }, { name: 'keyUsage', keyCertSign: true, critical: true }], authorityDays);
  ca.sign(own.privateKey, forge.md.sha256.create());
  const caPem = forge.pki.certificateToPem(ca);
  return {
    issue: (directory, service, days = 1) => {
      const keys = makeKeys();
      const certificate = certificateFor(service, name, keys.publicKey, [
        { name: 'basicConstraints', cA: false },
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        { name: 'subjectAltName', altNames: [{ type: DNS_NAME, value: service }, { type: DNS_NAME, value: `${service}.signalbox.svc` }, { type: IP_ADDRESS, ip: '127.0.0.1' }] },
      ], days);
      certificate.sign(own.privateKey, forge.md.sha256.create());
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, 'ca.crt'), caPem);
      writeFileSync(join(directory, 'tls.crt'), forge.pki.certificateToPem(certificate));
      writeFileSync(join(directory, 'tls.key'), keys.privatePem, { mode: 0o600 });
    },
  };
}
