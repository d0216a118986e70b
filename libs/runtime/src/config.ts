/** Reads a service's settings once: all problems are reported together, each naming its variable. */
import { z } from 'zod';
import { Secret } from './secret.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings are wrong or missing: `message` has one line per problem, for a person. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Explains why a listener failed, and names the setting to change: `variable` for the port, HOST for the address. */
export function doorError(error: Error, { host, port, variable }: { readonly host: string; readonly port: number; readonly variable: string }): ConfigError {
  // gRPC gives the system's error code only in its message.
  const code = /\bE[A-Z]{3,20}\b/.exec('code' in error ? String(error.code) : error.message)?.[0] ?? 'unknown';
  const isAddress = code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI' || code === 'EINVAL';
  const line = code === 'EADDRINUSE' ? `${variable}: port ${port} on ${host} is taken by another process.` : isAddress ? `HOST: ${host} is no address of this machine (${code}).` : `${variable}: cannot listen on ${bracketed(host)}:${port} (${code}).`;
  return new ConfigError(line, { cause: error });
}

/** `host` for a URL or an address with a port: puts an IPv6 address in brackets. */
export const bracketed = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host);

/** Host of the URL at which this machine reaches a listener on `host`. */
export const hostInUrl = (host: string): string => (host === '0.0.0.0' || host === '::' ? '127.0.0.1' : bracketed(host));

/** Parses `environment` by the schema and freezes the result. Empty and blank variables count as absent, since a blank would be read as 0. Throws a ConfigError. */
export function loadConfig<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, environment: Environment): Readonly<z.infer<z.ZodObject<Shape>>> {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value.trim() !== ''));
  const parsed = schema.safeParse(present);
  if (!parsed.success) {
    const lines = new Map<string, string>();
    for (const { code, path, message } of parsed.error.issues) {
      const name = path.join('.');
      // One problem per variable is enough.
      if (!lines.has(name)) lines.set(name, `${name}: ${code === 'custom' || String(path[0]) in present ? message : 'is required, and is not set'}`);
    }
    throw new ConfigError([...lines.values()].join('\n'));
  }
  return Object.freeze(parsed.data);
}

/** Describes an invalid number in a problem's line. Shows the text if it is short and begins like a number. Anything else may be a misplaced secret, so only its length is shown. */
function foundOf(text: string): string {
  return /^(?:[-+.]?\d[\w.+-]{0,11}|[-+]?Infinity|NaN)$/.test(text) ? text : `a text of ${String(text.length)} characters`;
}

const WHOLE = /^\d+$/;
const DECIMAL = /^(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?$/i;

function numberBetween(minimum: number, maximum: number, kind: string, shape: RegExp) {
  return z.string().transform((given, context) => {
    const text = given.trim();
    const value = shape.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    context.addIssue({ code: 'custom', message: `must be ${kind} from ${String(minimum)} to ${String(maximum)}, found ${foundOf(text)}` });
    return z.NEVER;
  });
}

/** TCP port from text; 0 = any free one. */
export const portField = (fallback: number) => numberBetween(0, 65_535, 'a port', WHOLE).default(fallback);

/** TCP port from text, which may be absent. */
export const optionalPortField = () => numberBetween(0, 65_535, 'a port', WHOLE).optional();

/** Whole number in decimal digits, within bounds. */
export const wholeNumberField = (minimum: number, maximum: number, fallback: number) => numberBetween(minimum, maximum, 'a whole number', WHOLE).default(fallback);

/** Whole number in decimal digits, within bounds, which may be absent. */
export const optionalWholeNumberField = (minimum: number, maximum: number) => numberBetween(minimum, maximum, 'a whole number', WHOLE).optional();

/** Share (0 to 1) from text. */
export const shareField = (fallback: number) => numberBetween(0, 1, 'a number', DECIMAL).default(fallback);

/** Empties what is blank, for code that only asks whether a variable is set: blank counts as absent, as in `loadConfig`. */
export function emptyBlanks(environment: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(environment)) if (value !== undefined && value !== '' && value.trim() === '') environment[name] = '';
}

/** True for `host:port` and `[address]:port`, with a port that can be connected to. */
export function isAddress(text: string): boolean {
  const port = Number(/^(?:[^\s:]+|\[[0-9a-f:.]+(?:%[\w.-]+)?\]):(\d{1,5})$/i.exec(text)?.[1] ?? 0);
  return port > 0 && port < 65_536;
}

/** `host:port`, or `[address]:port`, several separated by commas. Required without a fallback; an empty fallback permits an empty value. */
export const addressesField = (fallback?: string) => {
  const text = fallback === undefined ? z.string() : z.string().default(fallback);
  return text
    .transform((list) => list.split(',').map((part) => part.trim()).filter((part) => part !== ''))
    .refine((list) => (list.length > 0 || fallback === '') && list.every(isAddress), 'expected host:port, several separated by commas');
};

export const secretField = () => z.string().min(1, 'must not be empty').transform((value) => new Secret(value));

/** What to write instead of the characters that a URL gives a meaning of their own. */
export const ENCODING_HINT = 'cannot be read as a URL; a user and a password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25';

/** False for a URL whose user or password has a `%` that encodes nothing: clients of stores decode both, and throw an error that names nothing. */
export function hasReadableUser(url: string): boolean {
  if (!URL.canParse(url)) return true;
  const { username, password } = new URL(url);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** As the driver reads it: blanks are fine, and so is no host behind a user. */
const isPostgresUrl = (text: string): boolean => URL.canParse(text.replaceAll(' ', '%20').replace('@/', '@host/'));

/** Address of Postgres, possibly with a password: a URL, or the folder of its socket in the driver's format. */
export const postgresUrlField = () =>
  secretField()
    .refine((url) => /^(?:postgres(?:ql)?:\/\/|socket:|\/)/i.test(url.unwrap()), 'must begin with postgres:// (or postgresql://)')
    .refine((url) => !/^postgres/i.test(url.unwrap()) || isPostgresUrl(url.unwrap()), ENCODING_HINT);

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const logLevelField = (fallback: (typeof LOG_LEVELS)[number] = 'info') => z.enum(LOG_LEVELS).default(fallback);

/** Reads only LOG_LEVEL, for logs before a service has its settings. Throws a ConfigError. */
export function logLevelOf(environment: Environment, fallback: (typeof LOG_LEVELS)[number]): string {
  return loadConfig(z.object({ LOG_LEVEL: logLevelField(fallback) }), environment).LOG_LEVEL;
}
