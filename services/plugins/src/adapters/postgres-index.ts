/** Documents and books, with Postgres full-text search. */
import { sql, type Kysely } from 'kysely';
import type { KnownSource, Passage, PassageIndex } from '../domain/ports.js';
import { hostOf, oneSourceAtMost, QUESTION_CHARS_MAX } from '../domain/passages.js';

export interface PluginsSchema {
  readonly source: object;
}

/** Rows read per row wanted, since one source alone may fill the first rows. */
const SPREAD = 5;
/** Passages written per statement. */
const BATCH = 500;

/** Joins the words of a question with "or", since a question rarely uses only words of the passage. */
const anyWord = (text: string) => sql`replace(plainto_tsquery('english'::regconfig, ${text.slice(0, QUESTION_CHARS_MAX)})::text, '&', '|')::tsquery`;

export function createPostgresIndex(db: Kysely<PluginsSchema>): PassageIndex {
  return {
    put: async ({ corpus, key, title, author, url, language, passages }) => {
      await db.transaction().execute(async (transaction) => {
        await sql`delete from plugins.source where corpus = ${corpus} and key = ${key}`.execute(transaction);
        const { rows } = await sql<{ id: bigint }>`insert into plugins.source (corpus, key, title, author, url, host, language, passages)
          values (${corpus}, ${key}, ${title}, ${author}, ${url}, ${hostOf(url)}, ${language}, ${passages.length}) returning id`.execute(transaction);
        const id = String(rows[0]?.id ?? 0);
        for (let from = 0; from < passages.length; from += BATCH) {
          const batch = passages.slice(from, from + BATCH);
          await sql`insert into plugins.passage (source_id, ordinal, heading, body, tsv)
            select ${id}::bigint, ${from}::integer + (at - 1)::integer, heading, body,
              setweight(to_tsvector('english'::regconfig, ${`${title} ${author}`} || ' ' || heading), 'B') || setweight(to_tsvector('english'::regconfig, body), 'A')
            from unnest(${batch.map((one) => one.heading)}::text[], ${batch.map((one) => one.body)}::text[]) with ordinality as given (heading, body, at)`.execute(transaction);
        }
      });
    },
    search: async ({ corpus, text, limit, perSourceMax, keys = [], language = '', includeDomains = [], excludeDomains = [] }) => {
      const { rows } = await sql<Passage>`
        with asked as (select ${anyWord(text)} as query)
        select s.key, s.title, s.author, s.url, p.heading, p.body, p.ordinal
        from asked, plugins.passage p join plugins.source s on s.id = p.source_id
        where s.corpus = ${corpus} and p.tsv @@ asked.query
          and (cardinality(${keys}::text[]) = 0 or s.key = any (${keys}::text[]))
          and (${language} = '' or s.language = ${language})
          and (cardinality(${includeDomains}::text[]) = 0 or exists (select from unnest(${includeDomains}::text[]) d where s.host = d or right(s.host, length(d) + 1) = '.' || d))
          and not exists (select from unnest(${excludeDomains}::text[]) d where s.host = d or right(s.host, length(d) + 1) = '.' || d)
        order by ts_rank(p.tsv, asked.query, 1) desc, p.source_id, p.ordinal
        limit ${limit * SPREAD}`.execute(db);
      return oneSourceAtMost(rows, perSourceMax, limit);
    },
    list: async (corpus) => {
      const { rows } = await sql<KnownSource>`select key, title, author, url, language, passages from plugins.source where corpus = ${corpus} order by id limit 10000`.execute(db);
      return rows;
    },
    remove: async (corpus, key) => {
      const { numAffectedRows = 0n } = await sql`delete from plugins.source where corpus = ${corpus} and key = ${key}`.execute(db);
      return Number(numAffectedRows);
    },
  };
}
