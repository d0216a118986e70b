/** Arguments of `npm run start:split`. */

export interface SplitArguments {
  readonly isJson: boolean;
  /** Run services from their bundles, `dist/program.js`, built by `scripts/bundle.mjs`. */
  readonly isBundled: boolean;
  /** Number of replicas by role; 1 for other roles. */
  readonly replicas: ReadonlyMap<string, number>;
}

const REPLICAS_MAX = 16;

/** Throws an Error whose message is meant for a person. */
export function parseArguments(args: readonly string[]): SplitArguments {
  const replicas = new Map<string, number>();
  let isJson = false;
  let isBundled = false;
  for (let i = 0; i < args.length; i += 1) {
    const [flag = '', inline] = (args[i] ?? '').split(/=(.*)/s);
    if (flag === '--json') isJson = true;
    else if (flag === '--bundled') isBundled = true;
    else if (flag === '--replicas') {
      const text = inline ?? args[(i += 1)] ?? '';
      for (const part of text.split(',')) {
        const match = /^([a-z-]+)=(\d{1,2})$/.exec(part);
        const count = Number(match?.[2] ?? 0);
        if (match === null || count < 1 || count > REPLICAS_MAX) throw new Error(`--replicas takes role=count (1 to ${REPLICAS_MAX}), such as edge=2; got "${part}".`);
        replicas.set(match[1] ?? '', count);
      }
    } else throw new Error(`Unknown argument ${flag}. Known: --json, --bundled, --replicas role=count.`);
  }
  return { isJson, isBundled, replicas };
}
