/** JSON lines. Static text and typed fields only: never a prompt, completion, key or header value. */
import { pino } from 'pino';

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | readonly string[]>>;

export interface Log {
  debug(text: string, fields?: LogFields): void;
  info(text: string, fields?: LogFields): void;
  warn(text: string, fields?: LogFields): void;
  /** `cause` is reduced to its name, code and stack frames, and a fault's cause too; its message may hold foreign text and is left out. */
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

const framesOf = (error: Error): readonly string[] => (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at ')).slice(0, 6).map((line) => line.trim());
const codeOf = (error: Error): string | undefined => ('code' in error && typeof error.code === 'string' ? error.code : undefined);

/** A Fault has no stack frames, so those of its cause are logged. */
function describe(cause: unknown): object {
  if (!(cause instanceof Error)) return { error: typeof cause };
  const own = { error: cause.name, error_code: codeOf(cause), frames: framesOf(cause) };
  if (own.frames.length > 0 || !(cause.cause instanceof Error)) return own;
  return { ...own, caused_by: cause.cause.name, caused_by_code: codeOf(cause.cause), frames: framesOf(cause.cause) };
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
