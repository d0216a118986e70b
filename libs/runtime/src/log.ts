/** JSON lines. Static text and typed fields only: never a prompt, completion, key or header value. */
import { pino } from 'pino';

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | readonly string[]>>;

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  /** `cause` is reduced to its name, code and stack frames; its message may hold foreign text and is left out. */
  error(text: string, fields?: LogFields & { readonly cause?: never }, cause?: unknown): void;
  child(fields: LogFields): Log;
}

export interface LogOptions {
  readonly service: string;
  readonly level: string;
  /** File descriptor, 2 by default: stdout belongs to the ready line. */
  readonly descriptor?: number;
}

interface Sink {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
  child(fields: object): Sink;
}

function describe(cause: unknown): object {
  if (!(cause instanceof Error)) return { error: typeof cause };
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined;
  const frames = (cause.stack ?? '').split('\n').filter((line) => line.startsWith('    at ')).slice(0, 6).map((line) => line.trim());
  return { error: cause.name, error_code: code, frames };
}

function wrap(sink: Sink): Log {
  return {
    debug: (text, fields = {}) => sink.debug(fields, text),
    info: (text, fields = {}) => sink.info(fields, text),
    warn: (text, fields = {}) => sink.warn(fields, text),
    error: (text, fields = {}, cause) => sink.error(cause === undefined ? fields : { ...fields, ...describe(cause) }, text),
    child: (fields) => wrap(sink.child(fields)),
  };
}

export function createLog({ service, level, descriptor = 2 }: LogOptions): Log {
  return wrap(pino({ level, base: { service }, timestamp: () => `,"time":${Date.now()}`, messageKey: 'text', formatters: { level: (label) => ({ level: label }) } }, pino.destination({ dest: descriptor, sync: true })));
}

export const silentLog: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => silentLog };
