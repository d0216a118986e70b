/** A thread of the simulation: runs batches until it is told to end. */
import { parentPort } from 'node:worker_threads';
import { runBatch, type BatchRequest } from './batch.js';

// Thousands of errors are created here, and their stacks are never read.
Error.stackTraceLimit = 0;

const port = parentPort;
port?.on('message', (request: BatchRequest) => {
  void runBatch(request).then((result) => port.postMessage(result));
});
