/** A thread of the simulation: takes batches until it is told to end. */
import { parentPort } from 'node:worker_threads';
import { runBatch, type BatchRequest } from './batch.js';

// Faults are made by the thousand here, and nobody reads where.
Error.stackTraceLimit = 0;

const port = parentPort;
port?.on('message', (request: BatchRequest) => {
  void runBatch(request).then((result) => port.postMessage(result));
});
