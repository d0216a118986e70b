/** What `help` says beside a command's words. */

/** What each command does, in a line. */
export const ABOUT: Readonly<Record<string, string>> = {
  'account create': 'makes an account and a first key, whose secret is printed once',
  'account set': 'changes what is named; `none` goes back to the term of the tier, `=false` takes a switch off',
  'account show': 'one account with its limits',
  'account list': 'all accounts',
  'account suspend': 'refuses all keys of the account at once; what runs is finished',
  'account resume': 'lets them in again',
  'key create': 'makes a key, whose secret is printed once',
  'key set': 'changes what is named and keeps the rest; `none` takes a limit off, `--disabled=false` lets the key in again',
  'key rotate': 'prints a new secret; the old one works until the grace ends',
  'key list': 'keys of the account, never their secrets',
  'key revoke': 'refuses the key for ever; with --compromised what runs with it is cut',
  'byok set': "keeps an account's own credential for a provider, read from standard input",
  'byok list': "accounts' own credentials, by their last four characters",
  'byok remove': 'forgets one',
  quota: 'what is spent, held and left of the limits of an account, now',
  usage: 'who or what costs how much, the dearest first; days (whole ones, UTC) newest first',
  request: 'one request of any account: its attempts, what each cost and what was charged',
  ledger: 'rows of the ledger of an account, with their hashes',
  'ledger verify': 'reads the ledger again and compares all sums; ends with 1 where something is wrong',
  'ledger recount': 'writes sums that differ from the rows anew; with --closed also those of closed periods; ends with 1 where some are left',
  'ledger cost': 'books that a provider billed an attempt differently',
  'search add': 'adds a text file to the index of web-search',
  'search list': 'what is in that index',
  'search remove': 'takes out the document of that URL',
  'book import': 'adds a plain-text book to the index of gutenberg',
  'book list': 'what is in that index',
  'book remove': 'takes out a book',
  reconcile: 'compares ledger, sums, counters and the reports of providers, now',
  'reconcile import': "reads a provider's own report of usage, CSV or JSON",
  statement: 'the bill of an account for a period, named as in the ledger: 2026-11',
  'period close': 'closes periods that are over, or says what stands in the way',
  'dead list': 'usage that was not booked, and why',
  'dead resolve': 'notes that somebody has looked at it; books nothing',
  watermarks: "how far each worker's log is booked",
  'writer lost': "declares that a worker's log will not come back; kept for ever",
  providers: 'which providers are served, with what traffic has shown of each endpoint',
  decision: 'why a request went where it went, and whether it would again',
  'what-if': 'recorded decisions beside those of another policy or catalog',
  'quality show': 'the artefacts by which `auto` judges',
  'quality rollback': 'takes the canary away, or brings the artefact before back',
  'catalog show': 'the catalog in force',
  'catalog check': 'what is wrong with the catalog on disk, and prices that moved',
  'catalog reload': 'takes the catalog on disk into use, if it is sound; with --take-prices also prices that moved by more than 2×',
};

const VALUES: Readonly<Record<string, string>> = {
  by: 'account|day|model|provider|key', model: 'MODEL', key: 'ID', from: 'TIME', to: 'TIME', limit: 'N',
  tier: 'free|team|business|enterprise|pro', 'cost-cap-period': 'day|week|month|total', variant: 'A|B', mode: 'quality|balanced|economy', account: 'ID', provider: 'ID', request: 'ID', attempt: 'N', file: 'PATH', catalog: 'current|file',
  'expires-in': 'SECONDS', 'grace-seconds': 'SECONDS', url: 'URL', 'base-url': 'URL', period: 'PERIOD', 'baseline-model': 'MODEL',
};
const OF_KIND: Readonly<Record<string, string>> = { usd: 'USD', count: 'N', big: 'N', list: 'A,B', time: 'TIME' };

/** What stands for a flag's value, such as `USD`. */
export const valueWord = (flag: string, kind: string): string => VALUES[flag] ?? OF_KIND[kind] ?? 'TEXT';
