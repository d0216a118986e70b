/** Joins paginated lists into one document. */
import type { PagedMember } from './commands.js';
import { Refusal } from './door.js';

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

/**
 * The same document as one of all pages, however many: each page is written before the next is asked for, since a month of a large
 * account is more than one text can hold. Throws if a page does not go on from the one before.
 */
export async function writePages(first: string, member: PagedMember, ask: (after: string) => Promise<string>, write: (text: string) => void): Promise<void> {
  let page = JSON.parse(first) as Document;
  const names = Object.keys(page);
  const at = names.indexOf(member);
  const membersOf = (of: Document, some: readonly string[]): string[] => some.map((name) => `${JSON.stringify(name)}:${JSON.stringify((of as Readonly<Record<string, unknown>>)[name])}`);
  write(`{${[...membersOf(page, names.slice(0, at)), `${JSON.stringify(member)}:[`].join(',')}`);
  let isFirst = true;
  for (let before: string | undefined; ; ) {
    for (const entry of page[member] ?? []) {
      write(`${isFirst ? '' : ','}${JSON.stringify(entry)}`);
      isFirst = false;
    }
    const after = afterOf(page, member);
    if (after === undefined) break;
    if (after === before) throw new Refusal('A page of the answer does not go on from the one before.');
    page = JSON.parse(await ask((before = after))) as Document;
  }
  write(`${[']', ...membersOf(page, names.slice(at + 1))].join(',')}}`);
}
