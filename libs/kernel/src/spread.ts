/** From `fromMs` up to less than `overMs` more, by the id's random tail: clients that are told to wait do not come back as one. */
export function spreadMs(id: string, fromMs: number, overMs: number): number {
  const last = id.length - 1;
  return fromMs + ((id.charCodeAt(last) * 31 + id.charCodeAt(last - 1)) % overMs || 0);
}
