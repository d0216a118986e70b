/** File descriptors: a process may have only so many, and each connection takes one. */
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

/** The limit of this process, and that of the host. */
const NONE_LEFT: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE']);

/** What the system says of a call that failed. */
const told = (error: unknown): { readonly code?: unknown; readonly syscall?: unknown } => (typeof error === 'object' && error !== null ? error : {});

/** Throws the system error if there is no descriptor. */
const openOne = (): void => closeSync(openSync(devNull, 'r'));

/**
 * Whether a connection could not be opened because this process has no descriptor left, so that the other side is not to
 * blame. The system's resolver does not say so: it cannot read its files or ask anybody, and reports that the name does not
 * exist. Then this tries to open one; `open` replaces that in tests.
 */
export function isOutOfDescriptors(error: unknown, open: () => void = openOne): boolean {
  const { code, syscall } = told(error);
  if (NONE_LEFT.has(code)) return true;
  if (syscall !== 'getaddrinfo') return false;
  try {
    open();
    return false;
  } catch (refusal) {
    return NONE_LEFT.has(told(refusal).code);
  }
}
