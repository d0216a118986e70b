/** What NATS_URL says: where the servers are, and as whom they are asked. */
import { ConfigError, ENCODING_HINT, hasReadableUser } from '@signalbox/runtime/config';

export interface NatsIdentity {
  readonly user?: string;
  readonly pass?: string;
  /** Answers come to subjects below it, which no other user may read. */
  readonly inboxPrefix?: string;
}

/** `host:port` of each server. Throws ConfigError, without the text, since it may hold a password. */
export function hostsOf(url: string): readonly string[] {
  return url.split(',').map((server) => {
    let parsed: URL | undefined;
    try {
      parsed = new URL(server.trim());
    } catch {
      // Told below.
    }
    if (parsed === undefined || parsed.host === '' || !/^(nats|tls):$/.test(parsed.protocol)) throw new ConfigError('NATS_URL: must be nats://host:port, several with commas');
    if (!hasReadableUser(server.trim())) throw new ConfigError(`NATS_URL: ${ENCODING_HINT}`);
    return parsed.host;
  });
}

/** True where one of the servers is named as `tls://`: none may then be spoken to in plain words. Of a URL that `hostsOf` has read. */
export const isEncrypted = (url: string): boolean => url.split(',').some((server) => server.trim().startsWith('tls:'));

/** Of a URL that `hostsOf` has read. */
export function identityOf(url: string): NatsIdentity {
  const first = new URL((url.split(',')[0] ?? url).trim());
  if (first.username === '') return {};
  const user = decodeURIComponent(first.username);
  // A name without a password may be a token, which must not stand in a subject.
  return { user, pass: decodeURIComponent(first.password), ...(first.password !== '' && /^[\w-]+$/.test(user) ? { inboxPrefix: `_INBOX.${user}` } : {}) };
}
