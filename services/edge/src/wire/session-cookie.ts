/** The cookie of a dashboard session. */

/** Over TLS; the prefix binds it to this host. */
const SECURE_NAME = '__Host-signalbox';
/** On loopback, where browsers treat `Secure` without TLS differently. The port is appended, since cookies are shared by all ports of a host: a second gateway would sign out the users of the first. */
const LOOPBACK_NAME = 'signalbox';
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::(\d{1,5}))?$/i;

function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

function cookieName(host: string | undefined): string {
  const loopback = LOOPBACK_HOST.exec(host ?? '');
  if (loopback === null) return SECURE_NAME;
  const [, port] = loopback;
  return port === undefined ? LOOPBACK_NAME : `${LOOPBACK_NAME}-${port}`;
}

/** The cookie's value; undefined when there is none, or more than one. */
export function readSessionCookie(cookie: string | undefined, host: string | undefined): string | undefined {
  if (cookie === undefined) return undefined;
  const start = `${cookieName(host)}=`;
  const values = cookie.split(';').flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(start) ? [text.slice(start.length)] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}

/** `Set-Cookie` that keeps `token` for `maxAgeSeconds`; with an empty token and 0 it removes the cookie. */
export function sessionCookie(token: string, maxAgeSeconds: number, host: string | undefined): string {
  const secure = isLoopbackHost(host) ? '' : '; Secure';
  return `${cookieName(host)}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}
