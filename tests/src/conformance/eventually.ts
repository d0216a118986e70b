/** Polls until something becomes true, up to a deadline. */

const POLL_MS = 20;

/** Returns the first result that is not undefined. Rejects after the deadline, naming `what`. */
export async function eventually<Value>(what: string, ask: () => Promise<Value | undefined> | Value | undefined, deadlineMs = 10_000): Promise<Value> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const value = await ask();
    if (value !== undefined) return value;
    if (performance.now() > giveUpAt) throw new Error(`Within ${deadlineMs} ms it did not become true: ${what}.`);
    await new Promise<void>((resolve) => setTimeout(resolve, POLL_MS));
  }
}
