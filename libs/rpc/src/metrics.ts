/** Metrics of a service's clients about their peers, read at the scrape. The `peer` label comes from the code, never from input. */
import type { LabelValues, Metrics } from '@signalbox/runtime/metrics';

export interface PeerStats {
  /** Links wanted, and links that are up; both 0 if the peer is in this process. */
  readonly linksReady: number;
  readonly links: number;
  /** Calls that wait for a link. */
  readonly waiting: number;
  /** Since the start. */
  readonly linksLost: number;
  /** Calls begun, and calls that ended with a fault. */
  readonly calls: number;
  readonly faults: number;
}

/** Passed to every client of a service. */
export interface RpcObserver {
  watch(peer: string, read: () => PeerStats): void;
}

export function createRpcObserver(metrics: Metrics): RpcObserver {
  const peers: { readonly peer: string; readonly read: () => PeerStats }[] = [];
  const each = (pick: (stats: PeerStats) => number): readonly { readonly labels: LabelValues<'peer'>; readonly value: number }[] => {
    const byPeer = new Map<string, number>();
    for (const { peer, read } of peers) byPeer.set(peer, (byPeer.get(peer) ?? 0) + pick(read()));
    return [...byPeer].map(([peer, value]) => ({ labels: { peer }, value }));
  };
  metrics.observed('gauge', 'signalbox_rpc_links', 'Links wanted to a peer; 0 when it is in this process.', ['peer'], () => each(({ links }) => links));
  metrics.observed('gauge', 'signalbox_rpc_links_ready', 'Links to a peer that are up.', ['peer'], () => each(({ linksReady }) => linksReady));
  metrics.observed('gauge', 'signalbox_rpc_calls_waiting', 'Calls that wait for a first link to their peer.', ['peer'], () => each(({ waiting }) => waiting));
  metrics.observed('counter', 'signalbox_rpc_links_lost_total', 'Links to a peer that broke or were never up; renewals do not count.', ['peer'], () => each(({ linksLost }) => linksLost));
  metrics.observed('counter', 'signalbox_rpc_calls_total', 'Calls begun to a peer.', ['peer'], () => each(({ calls }) => calls));
  metrics.observed('counter', 'signalbox_rpc_faults_total', 'Calls to a peer that ended with a fault, the caller\'s own cancellations included.', ['peer'], () => each(({ faults }) => faults));
  return { watch: (peer, read) => void peers.push({ peer, read }) };
}
