// The dashboards, as a table: `node deploy/grafana/dashboards.mjs` writes dashboards/*.json, `--check` compares.
import { readFileSync, writeFileSync } from 'node:fs';

const rate = (metric, by = '') => `sum${by === '' ? '' : ` by (${by})`} (rate(${metric}[$__rate_interval]))`;
const quantile = (q, metric, by = '') => `histogram_quantile(${q}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${metric}_bucket[$__rate_interval])))`;
const orZero = (expression) => `${expression} or vector(0)`;
const USD = 'currencyUSD';

// [title, unit, [[expression, legend], …], explanation]
const DASHBOARDS = {
  overview: [
    ['Requests', 'reqps', [[rate('signalbox_edge_chat_requests_total', 'status'), '{{status}}']], 'Chat completions by HTTP status.'],
    ['Our own faults', 'percentunit', [[`(${orZero(rate('signalbox_edge_chat_requests_total{status=~"5.."}'))}) / ${rate('signalbox_edge_chat_requests_total')}`, '5xx']], 'Share of answers that are our fault. Alert at 5 %.'],
    ['Duration', 's', [[quantile(0.5, 'signalbox_edge_chat_duration_seconds'), 'p50'], [quantile(0.95, 'signalbox_edge_chat_duration_seconds'), 'p95'], [quantile(0.99, 'signalbox_edge_chat_duration_seconds'), 'p99']], 'From the request line to the end of the answer: mostly the time of the model.'],
    ['What became of requests', 'reqps', [[rate('signalbox_edge_chat_results_total', 'result'), '{{result}}']], '`cut`: ended with an error after it began. `gone`: the client left.'],
    ['In work', 'short', [['sum(signalbox_edge_chat_in_flight)', 'requests'], ['sum(signalbox_edge_chat_arriving)', 'not whole']], 'Above IN_FLIGHT_MAX of an edge, requests are shed; those that are not whole have as many places of their own.'],
    ['Errors by code', 'reqps', [[rate('signalbox_edge_errors_total', 'code'), '{{code}}']], ''],
    ['Cost', USD, [['sum(rate(signalbox_worker_cost_nano_usd_total[$__rate_interval])) * 3600 / 1e9', 'per hour']], 'At the cards that attempts were sent with.'],
    ['Services that answer', 'short', [['sum by (service) (up{job="signalbox"} * on (instance) group_left (service) group by (instance, service) (process_start_time_seconds))', '{{service}}']], ''],
  ],
  money: [
    ['Out of balance', USD, [['max(signalbox_billing_unreconciled_nano_usd) / 1e9', 'difference']], 'Must be 0.'],
    ['Set aside, not booked', 'short', [['max(signalbox_billing_dead_events_waiting)', 'events']], 'Must be 0: each holds its period open.'],
    ['Rows booked', 'ops', [[rate('signalbox_billing_ledger_rows_total', 'kind'), '{{kind}}']], ''],
    ['Behind the stream', 'short', [['max by (durable) (signalbox_bus_consumer_lag_messages)', '{{durable}}']], 'Messages of usage not yet booked.'],
    ['On workers, not in the ledger', 'short', [['max by (service) (signalbox_worker_wal_unbooked_records)', '{{service}}']], 'Records of the write-ahead logs.'],
    ['Longest wait for the ledger', 's', [['max by (service) (signalbox_worker_wal_unbooked_seconds)', '{{service}}']], 'Of a record on a worker. Alert at 5 minutes.'],
    ['Silent workers', 'short', [['max(signalbox_billing_writers_silent)', 'not all booked']], 'Must be 0: what is missing is on a volume that nobody answers for.'],
    ['On workers, not sent', 'short', [['max by (service) (signalbox_worker_wal_unshipped_records)', '{{service}}']], 'Grows while the bus is away.'],
    ['Refused by the disk', 'short', [['max by (service) (signalbox_worker_wal_refused_records)', '{{service}}']], 'Must be 0: a volume is full or broken.'],
    ['Records written', 'ops', [[rate('signalbox_worker_wal_records_total', 'service'), '{{service}}']], ''],
    ['Time of a commit', 's', [[quantile(0.5, 'signalbox_billing_commit_seconds'), 'p50'], [quantile(0.99, 'signalbox_billing_commit_seconds'), 'p99']], ''],
    ['Commits that failed', 'ops', [[rate('signalbox_billing_batches_failed_total'), 'batches']], 'They come again.'],
    ['Cost by provider', USD, [['sum by (service, payer) (rate(signalbox_worker_cost_nano_usd_total[$__rate_interval])) * 3600 / 1e9', '{{service}} {{payer}}']], 'Per hour. `byok`: paid by the account to its provider.'],
    ['Savings since the start', USD, [['sum by (payer) (signalbox_worker_savings_nano_usd) / 1e9', '{{payer}}']], 'Against the reference model.'],
    ['Periods', 'short', [['max(signalbox_billing_periods_waiting)', 'waiting'], ['sum(signalbox_billing_periods_closed_total)', 'closed since the start']], ''],
  ],
  providers: [
    ['Attempts', 'reqps', [[rate('signalbox_worker_attempts_total', 'service, outcome'), '{{service}} {{outcome}}']], ''],
    ['Share that fails', 'percentunit', [[`(sum by (service) (rate(signalbox_worker_attempts_total{outcome!~"ok|abandoned"}[$__rate_interval])) or 0 * sum by (service) (rate(signalbox_worker_attempts_total[$__rate_interval]))) / sum by (service) (rate(signalbox_worker_attempts_total[$__rate_interval]))`, '{{service}}']], ''],
    ['First byte, p75', 's', [[quantile(0.75, 'signalbox_worker_first_byte_seconds', 'service'), '{{service}}']], ''],
    ['Whole answer, p95', 's', [[quantile(0.95, 'signalbox_worker_attempt_seconds', 'service'), '{{service}}']], ''],
    ['Tokens', 'ops', [[rate('signalbox_worker_tokens_total', 'service, bucket'), '{{service}} {{bucket}}']], ''],
    ['In work', 'short', [['sum by (service) (signalbox_worker_in_flight)', '{{service}}'], ['sum by (service) (signalbox_worker_draining)', '{{service}} draining']], '`draining`: the client is gone, the usage is still awaited.'],
    ['Breakers', 'short', [['sum by (service, state) (signalbox_worker_breakers)', '{{service}} {{state}}']], 'Directly in front of the provider.'],
    ['Credentials', 'short', [['sum by (service, state) (signalbox_worker_credentials)', '{{service}} {{state}}']], '`doubtful`: refused, off the bench, and not taken since.'],
    ['Usage hard to believe', 'ops', [[rate('signalbox_worker_suspect_usage_total', 'service'), '{{service}}']], 'Booked as told, and flagged.'],
  ],
  routing: [
    ['Decisions', 'reqps', [[rate('signalbox_routing_decisions_total', 'result'), '{{result}}']], ''],
    ['Time of a decision', 's', [[quantile(0.5, 'signalbox_routing_decision_seconds'), 'p50'], [quantile(0.99, 'signalbox_routing_decision_seconds'), 'p99']], ''],
    ['Attempts by provider', 'reqps', [[rate('signalbox_edge_attempts_total', 'provider, result'), '{{provider}} {{result}}']], ''],
    ['Endpoints by breaker', 'short', [['sum by (provider, breaker) (signalbox_routing_endpoints)', '{{provider}} {{breaker}}']], 'As routing sees them.'],
    ['Outliers left out', 'short', [['sum by (provider, reason) (signalbox_routing_ejected_endpoints)', '{{provider}} {{reason}}']], 'Far from others of the same model, for 30 s and more.'],
    ['Latency routing reckons with', 's', [['signalbox_routing_latency_p75_seconds', '{{provider}}']], 'First token, P75 of five minutes, of the fastest endpoint.'],
    ['Catalog', 'short', [['max by (kind) (signalbox_routing_catalog_entries)', '{{kind}}']], ''],
    ['Catalogs refused', 'short', [[orZero('sum(increase(signalbox_routing_catalog_reloads_total{result="refused"}[1h]))'), 'last hour']], 'The last good one stays.'],
  ],
  quota: [
    ['Admissions', 'reqps', [[rate('signalbox_quota_admissions_total', 'decision'), '{{decision}}'], [rate('signalbox_edge_advance_admissions_total'), 'served from an advance']], 'An advance counts as one, and what is served from it apart.'],
    ['Store of counters', 's', [[quantile(0.5, 'signalbox_quota_store_seconds'), 'p50'], [quantile(0.99, 'signalbox_quota_store_seconds'), 'p99']], ''],
    ['Store failures', 'ops', [[rate('signalbox_quota_store_failures_total'), 'failures']], ''],
    ['Store answers', 'short', [['min(signalbox_quota_store_ready)', 'ready']], ''],
    ['Holds that ended by time', 'ops', [[rate('signalbox_quota_leases_ended_total'), 'leases']], 'Reserved and never dispatched.'],
    ['Settled by asking the ledger', 'ops', [[rate('signalbox_quota_reconciled_total'), 'requests']], 'Their totals did not arrive.'],
    ['Keys', 'reqps', [[rate('signalbox_edge_keys_presented_total', 'judged'), '{{judged}}']], 'From the cache, by asking accounts, or for their form.'],
    ['Keys answered from the cache', 'percentunit', [[`sum(rate(signalbox_edge_keys_presented_total{judged="cached"}[$__rate_interval])) / ${rate('signalbox_edge_keys_presented_total')}`, 'hits']], ''],
    ['Keys in the cache', 'short', [['sum by (instance) (signalbox_edge_keys_cached)', '{{instance}}']], ''],
  ],
  runtime: [
    ['CPU', 'percentunit', [[rate('process_cpu_seconds_total', 'service'), '{{service}}']], 'Of one core.'],
    ['Memory', 'bytes', [['sum by (service) (process_resident_memory_bytes)', '{{service}}']], ''],
    ['Event loop lag', 's', [['max by (service) (nodejs_eventloop_lag_p99_seconds)', '{{service}} p99'], ['max by (service) (nodejs_eventloop_lag_seconds)', '{{service}} now']], ''],
    ['Time in the collector', 'percentunit', [[rate('nodejs_gc_duration_seconds_sum', 'service'), '{{service}}']], ''],
    ['Open files', 'short', [['sum by (service) (process_open_fds)', '{{service}}']], ''],
    ['Links that are up', 'short', [['sum by (service, peer) (signalbox_rpc_links_ready)', '{{service}} to {{peer}}']], ''],
    ['Links wanted', 'short', [['sum by (service, peer) (signalbox_rpc_links)', '{{service}} to {{peer}}']], ''],
    ['Links lost', 'ops', [[rate('signalbox_rpc_links_lost_total', 'service, peer'), '{{service}} to {{peer}}']], ''],
    ['Calls', 'ops', [[rate('signalbox_rpc_calls_total', 'service, peer'), '{{service}} to {{peer}}']], ''],
    ['Calls that fail', 'ops', [[rate('signalbox_rpc_faults_total', 'service, peer'), '{{service}} to {{peer}}']], ''],
    ['Calls that wait for a link', 'short', [['sum by (service, peer) (signalbox_rpc_calls_waiting)', '{{service}} to {{peer}}']], ''],
    ['Event bus', 'short', [['min by (service) (signalbox_bus_connected)', '{{service}}']], '1 while connected.'],
  ],
};

// Chosen on the dashboard, the default Prometheus at first: its uid is different in every Grafana but that of compose.
const SOURCE = { type: 'prometheus', uid: '${source}' };

function dashboard(name, panels) {
  return {
    uid: `signalbox-${name}`,
    title: `Signalbox: ${name}`,
    tags: ['signalbox'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    templating: { list: [{ name: 'source', label: 'Prometheus', type: 'datasource', query: 'prometheus', current: {}, hide: 0, multi: false, includeAll: false }] },
    links: [{ type: 'dashboards', tags: ['signalbox'], asDropdown: false, title: 'Signalbox', includeVars: true, keepTime: true }],
    panels: panels.map(([title, unit, targets, description], index) => ({
      id: index + 1,
      type: 'timeseries',
      title,
      description,
      datasource: SOURCE,
      gridPos: { h: 8, w: 12, x: (index % 2) * 12, y: Math.floor(index / 2) * 8 },
      fieldConfig: { defaults: { unit, min: title.startsWith('Savings') || title.startsWith('Out of') ? undefined : 0 }, overrides: [] },
      options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
      targets: targets.map(([expr, legendFormat], target) => ({ refId: String.fromCharCode(65 + target), datasource: SOURCE, expr, legendFormat })),
    })),
  };
}

const isCheck = process.argv.includes('--check');
for (const [name, panels] of Object.entries(DASHBOARDS)) {
  const file = new URL(`dashboards/${name}.json`, import.meta.url);
  const text = `${JSON.stringify(dashboard(name, panels), null, 2)}\n`;
  if (!isCheck) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${name}.json is not what dashboards.mjs makes: run node deploy/grafana/dashboards.mjs\n`);
    process.exitCode = 1;
  }
}
