/** Lets requests be answered between two parts of a batch. A whole batch at once would block the event loop of an all-in-one process for milliseconds. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
