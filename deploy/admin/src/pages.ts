/** Joins paginated lists into one document. */
import type { PagedMember } from './commands.js';

/** Most pages that are fetched; after that, `next` or `has_more` of the document shows that there is more. */
const PAGES_MAX = 200;

type Document = { readonly next?: string | number | null; readonly has_more?: boolean } & Partial<Record<PagedMember, readonly { readonly id?: string }[]>>;

/** Start of the next page: `next` of the answer, or the last id if there is more. */
function afterOf(page: Document, member: PagedMember): string | undefined {
  if (page.next !== undefined && page.next !== null) return String(page.next);
  return page.has_more === true ? page[member]?.at(-1)?.id : undefined;
}

/** JSON text of the last page with the entries of all pages; `ask` fetches the page after a given place. */
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
