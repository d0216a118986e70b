/** Reads a service's settings once: all problems are reported together, each naming its variable. */
import { z } from 'zod';
import { Secret } from './secret.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings are wrong or missing: `message` has one line a problem and is meant for a person's eyes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Why a door could not be opened, naming the setting that is to be changed: `variable` has the port, HOST the address. */
export function doorError(error: Error, { host, port, variable }: { readonly host: string; readonly port: number; readonly variable: string }): ConfigError {
  // gRPC tells the system's code in its message only.
  const code = /\bE[A-Z]{3,20}\b/.exec('code' in error ? String(error.code) : error.message)?.[0] ?? 'unknown';
  const isAddress = code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI' || code === 'EINVAL';
  const line = code === 'EADDRINUSE' ? `${variable}: port ${port} on ${host} is taken by another process.` : isAddress ? `HOST: ${host} is no address of this machine (${code}).` : `${variable}: cannot listen on ${bracketed(host)}:${port} (${code}).`;
  return new ConfigError(line, { cause: error });
}

/** `host` as a URL and as an address with a port have it: an IPv6 address in brackets. */
export const bracketed = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host);

/** Host of the URL at which this machine reaches a door that listens on `host`. */
export const hostInUrl = (host: string): string => (host === '0.0.0.0' || host === '::' ? '127.0.0.1' : bracketed(host));

/** Parses `environment` by the schema and freezes the result. Variables that are empty or blank count as absent: a blank would be read as 0. Throws ConfigError. */
export function loadConfig<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, environment: Environment): Readonly<z.infer<z.ZodObject<Shape>>> {
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value.trim() !== ''));
  const parsed = schema.safeParse(present);
  if (!parsed.success) {
    const lines = new Map<string, string>();
    for (const { code, path, message } of parsed.error.issues) {
      const name = path.join('.');
      // What else is wrong with the same text helps nobody.
      if (!lines.has(name)) lines.set(name, `${name}: ${code === 'custom' || String(path[0]) in present ? message : 'is required, and is not set'}`);
    }
    throw new ConfigError([...lines.values()].join('\n'));
  }
  return Object.freeze(parsed.data);
}

/** What a number was to be, for its line: itself, where it is short and begins as one. Anything else may be a secret in the wrong place, and is told by its length. */
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

/** Share from text, 0 to 1. */
export const shareField = (fallback: number) => numberBetween(0, 1, 'a number', DECIMAL).default(fallback);

/** `host:port`, or `[address]:port`, several separated by commas. Required without a fallback; an empty one may stay empty. */
export const addressesField = (fallback?: string) => {
  const text = fallback === undefined ? z.string() : z.string().default(fallback);
  return text
    .transform((list) => list.split(',').map((part) => part.trim()).filter((part) => part !== ''))
    .refine((list) => (list.length > 0 || fallback === '') && list.every((address) => /^[^\s:]+:\d{1,5}$|^\[[0-9a-f:]+\]:\d{1,5}$/i.test(address)), 'expected host:port, several separated by commas');
};

export const secretField = () => z.string().min(1, 'must not be empty').transform((value) => new Secret(value));

/** Where Postgres is, with a password as may be: a URL, or the folder of its socket as the driver takes it. */
export const postgresUrlField = () => secretField().refine((url) => /^(?:postgres(?:ql)?:\/\/|socket:|\/)/i.test(url.unwrap()), 'must begin with postgres:// (or postgresql://)');

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const logLevelField = (fallback: (typeof LOG_LEVELS)[number] = 'info') => z.enum(LOG_LEVELS).default(fallback);

/** LOG_LEVEL alone, for what is logged before a service has its settings. Throws ConfigError. */
export function logLevelOf(environment: Environment, fallback: (typeof LOG_LEVELS)[number]): string {
  return loadConfig(z.object({ LOG_LEVEL: logLevelField(fallback) }), environment).LOG_LEVEL;
}
