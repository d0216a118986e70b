/** Composition root of worker-sim: the simulator's HTTP server, and the ordinary worker that talks to it. */
import type { Bus } from '@signalbox/bus/bus';
import type { Service, Surroundings } from '@signalbox/runtime/lifecycle';
import { createOpenAiChatAdapter } from '@signalbox/worker-kit/openai-chat-adapter';
import type { Journal } from '@signalbox/worker-kit/journal';
import { serveWorker } from '@signalbox/worker-kit/serve';
import type { WorkerSimConfig } from './config.js';
import { createSimulatorServer } from './server.js';

/** Without a `bus` the service connects to NATS_URL by itself. `journal` is for tests. `ports()` also names the simulator's own `simulator` port. */
export function composeWorkerSim(config: WorkerSimConfig, surroundings: Surroundings, options: { readonly bus?: Bus; readonly journal?: Journal } = {}): Service {
  const simulator = createSimulatorServer(surroundings.clock);
  let worker: Service | undefined;
  let port = 0;
  return {
    name: 'worker-sim',
    start: async () => {
      port = await simulator.start();
      const adapter = createOpenAiChatAdapter({ provider: 'simulator', baseUrl: `http://127.0.0.1:${String(port)}/v1` });
      worker = serveWorker({ name: 'worker-sim', config, surroundings, adapter, isCredentialOptional: true, ...options });
      try {
        await worker.start();
      } catch (error) {
        await simulator.stop();
        throw error;
      }
    },
    stop: async () => {
      await worker?.stop();
      await simulator.stop();
    },
    ready: () => worker?.ready() ?? false,
    ports: () => ({ ...worker?.ports(), simulator: port }),
  };
}
