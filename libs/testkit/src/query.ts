/** SQL as a given role, for what tests prepare and look at. */
import pg from 'pg';

/** Rows of the last statement. Rejects with the driver's error. */
export async function query<Row = Readonly<Record<string, unknown>>>(url: string, text: string): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const answers = (await client.query(text)) as unknown as { readonly rows: readonly Row[] } | readonly { readonly rows: readonly Row[] }[];
    return (Array.isArray(answers) ? (answers as readonly { readonly rows: readonly Row[] }[]).at(-1)?.rows : (answers as { readonly rows: readonly Row[] }).rows) ?? [];
  } finally {
    await client.end();
  }
}
