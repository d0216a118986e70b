/** Texts of `help` besides the commands' words. */

/** One line about each command. */
export const ABOUT: Readonly<Record<string, string>> = {
  'account create': 'creates an account and its first key; prints the secret once',
  'account set': "changes only the options given; `none` restores the tier's value, `=false` turns a switch off",
  'account show': 'shows an account and its limits',
  'account list': 'lists all accounts',
  'account suspend': 'refuses all keys of the account at once; running requests finish',
  'account resume': 'accepts the keys of a suspended account again',
  'key create': 'creates a key; prints the secret once',
  'key set': 'changes only the options given; `none` removes a limit, `--disabled=false` enables the key again',
  'key rotate': 'prints a new secret; the old one works until the grace period ends',
  'key list': 'lists the keys of an account, without their secrets',
  'key revoke': 'revokes a key for good; running requests finish, unless --compromised cuts them',
  'byok set': "stores an account's own credential for a provider, read from standard input",
  'byok list': "lists accounts' own credentials, by their last four characters",
  'byok remove': "deletes an account's own credential",
  quota: 'shows what an account has spent, holds and has left of its limits',
  usage: 'shows cost by account, model, provider or key, highest first, or by UTC day, newest first',
  request: 'shows a request of any account: its attempts, their costs and the charge',
  ledger: 'lists the ledger rows of an account, with their hashes',
  'ledger verify': 'verifies the ledger and all its sums; exits with 1 if anything is wrong',
  'ledger recount': 'rewrites sums that differ from their rows, with --closed also those of closed periods; exits with 1 if any are left',
  'ledger cost': 'corrects the cost of an attempt that the provider billed differently',
  'search add': 'adds a text file to the index of web-search',
  'search list': 'lists the index of web-search',
  'search remove': 'removes a document, by its URL',
  'book import': 'adds a plain-text book to the index of gutenberg',
  'book list': 'lists the index of gutenberg',
  'book remove': 'removes a book',
  reconcile: 'compares ledger, sums, counters and provider reports now',
  'reconcile import': "imports a provider's usage report, CSV or JSON",
  statement: 'shows the bill of an account for a period, such as 2026-11',
  'period close': 'closes periods that are over, or says what blocks them',
  'dead list': 'lists usage that was not booked, and why',
  'dead resolve': 'marks a dead event as handled; books nothing',
  watermarks: "shows how far each worker's log is booked, and which workers have ended or are lost",
  'writer lost': "declares a worker's log lost for good; cannot be undone",
  providers: 'lists providers, with the health of each endpoint as seen in traffic',
  decision: 'explains a routing decision, and whether it would be the same now',
  'what-if': 'compares recorded decisions with those under another policy or catalog',
  'quality show': 'shows the quality artefacts that `auto` uses',
  'quality rollback': 'removes the canary, or restores the previous artefact',
  'catalog show': 'shows the catalog in use',
  'catalog check': 'lists errors in the catalog on disk, and changed prices',
  'catalog reload': 'loads the catalog from disk if it is valid; --take-prices also accepts prices that changed by more than 2×',
};

const VALUES: Readonly<Record<string, string>> = {
  by: 'account|day|model|provider|key', model: 'MODEL', key: 'ID', from: 'TIME', to: 'TIME', limit: 'N',
  tier: 'free|team|business|enterprise|pro', 'cost-cap-period': 'day|week|month|total', variant: 'A|B', mode: 'quality|balanced|economy', account: 'ID', provider: 'ID', request: 'ID', attempt: 'N', file: 'PATH', catalog: 'current|file',
  'expires-in': 'SECONDS', 'grace-seconds': 'SECONDS', url: 'URL', 'base-url': 'URL', period: 'PERIOD', 'baseline-model': 'MODEL',
};
const OF_KIND: Readonly<Record<string, string>> = { usd: 'USD', count: 'N', big: 'N', list: 'A,B', time: 'TIME' };

/** Placeholder of a flag's value, such as `USD`. */
export const valueWord = (flag: string, kind: string): string => VALUES[flag] ?? OF_KIND[kind] ?? 'TEXT';
