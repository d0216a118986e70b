/** Lists that come in pages, as one document. */
import type { PagedMember } from './commands.js';

/** Followed at most; beyond, `next` or `has_more` of the document says that there is more. */
const PAGES_MAX = 200;

type Document = { readonly next?: string | number | null; readonly has_more?: boolean } & Partial<Record<PagedMember, readonly { readonly id?: string }[]>>;

/** Where the next page begins: told as `next`, or behind the last id where there is more. */
function afterOf(page: Document, member: PagedMember): string | undefined {
  if (page.next !== undefined && page.next !== null) return String(page.next);
  return page.has_more === true ? page[member]?.at(-1)?.id : undefined;
}

/** JSON text of the last page with the entries of all of them; `ask` gives the page behind a place. */
export async function gatherPages(first: string, member: PagedMember, ask: (after: string) => Promise<string>): Promise<string> {
  let page = JSON.parse(first) as Document;
  let after = afterOf(page, member);
  if (after === undefined) return first;
  let entries = page[member] ?? [];
  for (let count = 1; after !== undefined && count < PAGES_MAX; count += 1) {
    page = JSON.parse(await ask(after)) as Document;
    entries = entries.concat(page[member] ?? []);
    after = afterOf(page, member);
  }
  return JSON.stringify({ ...page, [member]: entries });
}
