/** Simulated plugins: prepare a request, offer two tools, sometimes fail, and record the fees that they report. */
import type { Stage__Output, Tool__Output } from '@signalbox/contracts/plugins';
import type { Neighbours } from '@signalbox/edge/proof';
import { Fault } from '@signalbox/kernel/fault';
import type { Life } from './life.js';
import type { Random } from './random.js';
import type { PluginTerms } from './traffic.js';

type PluginsPort = NonNullable<Neighbours['plugins']>;

/** A tool that spends nothing. */
const LOOK = 'look';
/** A tool that spends money outside. */
const BUY = 'buy';

const toolOf = (name: string, feeNanoUsdMax: number): Tool__Output => ({ name, definition: Buffer.from(JSON.stringify({ type: 'function', function: { name } })), feeNanoUsdMax: String(feeNanoUsdMax), imagesMax: 0 });
const stageOf = (name: string, feeNanoUsd: number): Stage__Output => ({ name, plugin: 'web-search', status: 'ok', durationMs: 1, feeNanoUsd: String(feeNanoUsd), boughtProvider: '', boughtNanoUsd: '0', detail: Buffer.alloc(0) });

export class SimPlugins {
  /** By request: fees reported to edge. */
  readonly fees = new Map<string, bigint[]>();
  /** Number of answered calls. */
  ran = 0;

  constructor(private readonly random: Random) {}

  /** The port for one request, at the edge with that life. */
  portFor(life: Life, requestId: string, terms: PluginTerms): PluginsPort {
    const { random } = this;
    const later = <Told>(msMax: number, tell: () => Told): Promise<Told> =>
      new Promise((resolve, reject) => {
        const isAway = random.chance(0.08);
        life.clock.setTimer(random.int(1, msMax), () => (isAway ? reject(new Fault('peer_unavailable', 'plugins')) : resolve(tell())));
      });
    const bill = (feeNanoUsd: number): number => {
      if (feeNanoUsd > 0) this.fees.set(requestId, [...(this.fees.get(requestId) ?? []), BigInt(feeNanoUsd)]);
      return feeNanoUsd;
    };
    return {
      manifests: () => Promise.resolve(undefined),
      prepare: () =>
        later(300, () => ({
          problem: null, messages: Buffer.alloc(0), citations: [], files: [], observes: false, toolRoundsMax: terms.roundsMax,
          stages: [stageOf('prepare', bill(terms.feeNanoUsd))], tools: [toolOf(LOOK, 0), toolOf(BUY, terms.toolFeeNanoUsdMax)],
        })),
      // Some calls take longer than workers wait for a silent edge.
      runTool: ({ name, byok }) =>
        later(random.chance(0.03) ? 45_000 : 1_500, () => {
          this.ran += 1;
          return { content: 'r'.repeat(random.int(1, 200)), stage: stageOf(name ?? '', name === BUY && byok !== true ? bill(terms.toolFeeNanoUsd) : 0), images: [] };
        }),
      observe: () => undefined,
    };
  }
}
