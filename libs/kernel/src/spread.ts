/** A wait from `fromMs` to below `fromMs + overMs`, chosen by the id's random tail, so that clients that are told to wait do not all return at once. */
export function spreadMs(id: string, fromMs: number, overMs: number): number {
  const last = id.length - 1;
  return fromMs + ((id.charCodeAt(last) * 31 + id.charCodeAt(last - 1)) % overMs || 0);
}
