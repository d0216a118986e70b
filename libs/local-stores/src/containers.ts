/** Stores in throw-away containers, when a Docker engine answers. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from '@signalbox/runtime/random';

export interface ContainerStore {
  readonly url: string;
  stop(): Promise<void>;
}

/** True when a Docker engine answers within 3 s. */
export function dockerAnswers(): boolean {
  const answer = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { encoding: 'utf8', timeout: 3_000 });
  return answer.status === 0 && /^\d/.test(answer.stdout.trim());
}

/** Starts one store; undefined when the image cannot be had or testcontainers is not installed. */
export async function startContainer(store: 'postgres' | 'redis' | 'nats'): Promise<ContainerStore | undefined> {
  try {
    const { GenericContainer, Wait } = await import('testcontainers');
    const password = Buffer.from(randomBytes(16)).toString('hex');
    const container = {
      postgres: () =>
        new GenericContainer('postgres:17-alpine')
          .withEnvironment({ POSTGRES_USER: 'signalbox', POSTGRES_PASSWORD: password, POSTGRES_DB: 'postgres' })
          .withCommand(['postgres', '-c', 'fsync=off'])
          .withExposedPorts(5432)
          .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2)),
      redis: () => new GenericContainer('redis:7-alpine').withExposedPorts(6379).withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/)),
      nats: () => new GenericContainer('nats:2.10-alpine').withCommand(['-js']).withExposedPorts(4222).withWaitStrategy(Wait.forLogMessage(/Server is ready/)),
    }[store]();
    const running = await container.withStartupTimeout(60_000).start();
    const address = `${running.getHost()}:${running.getMappedPort({ postgres: 5432, redis: 6379, nats: 4222 }[store])}`;
    const url = store === 'postgres' ? `postgres://signalbox:${password}@${address}/postgres` : `${store}://${address}`;
    return { url, stop: async () => void (await running.stop()) };
  } catch {
    return undefined;
  }
}
