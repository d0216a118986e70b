/** Requests are answered between two parts of a batch: in one go it would hold the event loop of an all-in-one for milliseconds. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
