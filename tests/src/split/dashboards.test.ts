import { expect, test } from '@jest/globals';
import { findPrometheus, startPrometheus } from '@signalbox/local-stores/prometheus';
import { systemClock } from '@signalbox/runtime/clock';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ask, until } from '../harness/client.js';
import { startGateway } from '../harness/gateway.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The longest wait for two scrapes of every series. */
const DATA_WAIT_MS = 90_000;
const DASHBOARDS = join(ROOT, 'deploy/grafana/dashboards');

interface Dashboard {
  readonly uid: string;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly query: string }[] };
  readonly panels: readonly { readonly title: string; readonly datasource: unknown; readonly targets: readonly { readonly expr: string; readonly datasource: unknown }[] }[];
}

const dashboards = readdirSync(DASHBOARDS).map((file) => JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8')) as Dashboard);
const expressions = dashboards.flatMap(({ uid, panels }) => panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: `${uid} / ${title}`, expr: expr.replaceAll('$__rate_interval', '60s') }))));

test('dashboards are what their table makes', () => {
  expect(spawnSync(process.execPath, [join(ROOT, 'deploy/grafana/dashboards.mjs'), '--check'], { encoding: 'utf8' })).toMatchObject({ status: 0 });
});

test('dashboards ask the Prometheus that is chosen on them: any Grafana can load them, whatever it calls its own', () => {
  for (const { templating, panels } of dashboards) {
    expect(templating.list).toEqual([expect.objectContaining({ name: 'source', type: 'datasource', query: 'prometheus' })]);
    const asked = new Set(panels.flatMap(({ datasource, targets }) => [datasource, ...targets.map((target) => target.datasource)]).map((source) => JSON.stringify(source)));
    expect([...asked]).toEqual(['{"type":"prometheus","uid":"${source}"}']);
  }
});

test('every expression of every dashboard finds data in a Prometheus that scrapes the split system, and junk makes no series', async () => {
  const found = findPrometheus();
  if (found === undefined) {
    // eslint-disable-next-line no-console -- said loudly: nothing was covered
    console.warn('NOT COVERED: Prometheus is not here and cannot be downloaded; dashboards are not evaluated.');
    return;
  }
  const gateway = await startGateway({ mode: 'split' });
  try {
    const targets = gateway.processes().flatMap(({ ports }) => (ports['metrics'] === undefined ? [] : [`127.0.0.1:${ports['metrics']}`]));
    const prometheus = await startPrometheus(found, join(gateway.dataDir, 'prometheus'), targets, join(ROOT, 'deploy/prometheus/alerts.yml'));
    try {
      const chat = (model: string, text: string, stream = false) => ask(gateway.baseUrl, gateway.key, { model, stream, max_tokens: 100, messages: [{ role: 'user', content: text }] });
      const { data: models } = (await (await fetch(`${gateway.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } })).json()) as { readonly data: readonly { readonly id: string }[] };
      // Faults have a model of their own: its breaker may well open, and a plain request would be refused by it.
      const [model = '', faulty = ''] = models.map(({ id }) => id);
      const query = async (expr: string): Promise<readonly { readonly value: readonly [number, string] }[]> => {
        const answer = (await (await fetch(`${prometheus.url}/api/v1/query`, { method: 'POST', body: new URLSearchParams({ query: expr }) })).json()) as { readonly status: string; readonly error?: string; readonly data?: { readonly result: readonly { readonly value: readonly [number, string] }[] } };
        if (answer.data === undefined) throw new Error(`${expr}: ${answer.error ?? answer.status}`);
        return answer.data.result;
      };
      // Traffic of every kind, again and again: rates need two scrapes of a series that moves.
      const traffic = async (): Promise<readonly number[]> => {
        const [, , ...healthy] = await Promise.all([chat('no-such/model', 'x'), chat(faulty, '[sim:status=500]'), chat(model, 'hello'), chat(model, 'hello', true), chat(model, 'tell [sim:tokens=40,reasoning=8,cached=2]', true)]);
        return healthy.map(({ status }) => status);
      };
      let empty: readonly string[] = ['not asked yet'];
      const statuses = new Set<number>();
      const end = systemClock.monotonicMs() + DATA_WAIT_MS;
      await until(
        async () => {
          for (const status of await traffic()) statuses.add(status);
          const results = await Promise.all(expressions.map(async ({ name, expr }) => ({ name, expr, result: await query(expr) })));
          empty = results.filter(({ result }) => result.length === 0 || result.every(({ value }) => value[1] === 'NaN')).map(({ name, expr }) => `${name}: ${expr}`);
          return empty.length === 0 || systemClock.monotonicMs() >= end;
        },
        2 * DATA_WAIT_MS,
        1_000,
        'every expression to find data',
      );
      expect({ empty, statuses: [...statuses] }).toEqual({ empty: [], statuses: [200] });

      const series = async (): Promise<number> => Number((await query('count({__name__=~"signalbox_.*"})'))[0]?.value[1] ?? 0);
      const before = await series();
      for (let i = 0; i < 40; i += 1) await chat(`junk-${i}/${'x'.repeat(i)}`, `junk ${i}`);
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      expect((await series()) - before).toBeLessThan(10);
      // No alert is an error of its own making.
      const { data } = (await (await fetch(`${prometheus.url}/api/v1/rules`)).json()) as { readonly data: { readonly groups: readonly { readonly rules: readonly { readonly name: string; readonly health: string }[] }[] } };
      expect(data.groups.flatMap(({ rules }) => rules.filter(({ health }) => health === 'err').map(({ name }) => name))).toEqual([]);
    } finally {
      await prometheus.stop();
    }
  } finally {
    await gateway.stop();
  }
}, 300_000);
