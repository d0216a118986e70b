/** Joins the parts of a verification into one answer, and tells meanwhile how far it is. */
import { Refusal } from './door.js';

const EXAMPLES_MAX = 20;

interface Check {
  readonly invariant: string;
  readonly description: string;
  readonly violations: number;
  readonly examples: readonly string[];
}

interface Part {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  /** Accounts verified. */
  readonly accounts?: number;
  /** The last of them; null = none is left; absent = the server knows no parts and has verified all. */
  readonly next?: string | null;
}

function joined(known: readonly Check[], more: readonly Check[]): readonly Check[] {
  const checks = new Map(known.map((check) => [check.invariant, check]));
  for (const check of more) {
    const { violations = 0, examples = [] } = checks.get(check.invariant) ?? {};
    checks.set(check.invariant, { ...check, violations: violations + check.violations, examples: [...examples, ...check.examples].slice(0, EXAMPLES_MAX) });
  }
  return [...checks.values()];
}

/**
 * JSON text of one answer for all accounts behind `from` ('' = all). `ask` fetches the part behind an account. `tell` gets a line after
 * each part but the last. A Refusal amid the parts says how to go on.
 */
export async function gatherParts(from: string, ask: (after: string) => Promise<string>, tell: (line: string) => void): Promise<string> {
  let [after, accounts, ok] = [from, 0, true];
  let checks: readonly Check[] = [];
  for (;;) {
    const { next, ...part } = JSON.parse(await askFor(after)) as Part;
    accounts += part.accounts ?? 0;
    ok &&= part.ok;
    checks = joined(checks, part.checks);
    if (next === undefined || next === null) return JSON.stringify({ ...part, ok, checks, accounts: part.accounts === undefined ? undefined : accounts });
    if (next === after) throw new Refusal('A part of the answer does not go on from the one before.');
    after = next;
    tell(`${accounts} accounts verified, up to ${after}: ${wrongIn(checks)}`);
  }

  async function askFor(place: string): Promise<string> {
    try {
      return await ask(place);
    } catch (error) {
      if (!(error instanceof Refusal) || accounts === 0) throw error;
      throw new Refusal(`${error.message} ${accounts} accounts were verified before: ${wrongIn(checks)}. To go on: ledger verify --after ${place}`);
    }
  }
}

function wrongIn(checks: readonly Check[]): string {
  const wrong = checks.filter(({ violations }) => violations > 0).map(({ invariant, violations }) => `${violations} of ${invariant}`);
  return wrong.length === 0 ? 'nothing is wrong' : `violations: ${wrong.join(', ')}`;
}
