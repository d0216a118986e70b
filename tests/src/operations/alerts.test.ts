import { expect, test } from '@jest/globals';
import { findPrometheus } from '@signalbox/local-stores/prometheus';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const rules = (parse(readFileSync(`${ROOT}/deploy/prometheus/alerts.yml`, 'utf8')) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }).groups.flatMap((group) => group.rules);

test('each alert has a page that says what to do, and no page is left without its alert', () => {
  expect(readdirSync(`${ROOT}/docs/runbooks`).filter((file) => file !== 'README.md').sort()).toEqual(rules.map(({ alert }) => `${alert}.md`).sort());
  for (const { alert, labels, annotations } of rules) {
    expect(annotations.runbook).toBe(`docs/runbooks/${alert}.md`);
    expect(['page', 'ticket']).toContain(labels.severity);
    const page = readFileSync(`${ROOT}/${annotations.runbook}`, 'utf8');
    for (const part of ['## What it means', '## Diagnose', '## Fix']) expect(page).toContain(part);
  }
});

test('each alert has a case in which it fires', () => {
  const { tests } = parse(readFileSync(`${ROOT}/deploy/prometheus/alerts.test.yml`, 'utf8')) as { readonly tests: readonly { readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[] }[] };
  const fired = new Set(tests.flatMap(({ alert_rule_test: cases }) => cases.filter(({ exp_alerts: expected }) => expected.length > 0).map(({ alertname }) => alertname)));
  expect(rules.map(({ alert }) => alert).filter((alert) => !fired.has(alert))).toEqual([]);
});

test('the cluster has the same rules as the compose file', () => {
  const inCluster = parse(readFileSync(`${ROOT}/k8s/base/alerts.yaml`, 'utf8')) as { readonly spec: unknown };
  expect(inCluster.spec).toEqual(parse(readFileSync(`${ROOT}/deploy/prometheus/alerts.yml`, 'utf8')));
});

test('promtool accepts the rules, and each fires when it must and not before', () => {
  const found = findPrometheus();
  if (found === undefined) {
    // eslint-disable-next-line no-console -- said loudly: nothing was covered
    console.warn('NOT COVERED: promtool is not here and cannot be downloaded; rules are not checked.');
    return;
  }
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(found.promtool, args, { cwd: `${ROOT}/deploy/prometheus`, encoding: 'utf8', timeout: 60_000, env: { PATH: process.env['PATH'] ?? '', ...(found.libraryPath === '' ? {} : { LD_LIBRARY_PATH: found.libraryPath }) } });
    return { status, text: stdout + stderr };
  };
  expect(run('check', 'rules', 'alerts.yml')).toMatchObject({ status: 0 });
  expect(run('check', 'config', '--syntax-only', 'prometheus.yml')).toMatchObject({ status: 0 });
  expect(run('test', 'rules', 'alerts.test.yml')).toMatchObject({ status: 0 });
}, 240_000);
