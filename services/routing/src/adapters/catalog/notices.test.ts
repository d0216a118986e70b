import { expect, test } from '@jest/globals';
import { createCatalogFiles } from './files.js';

const PROVIDERS = ['moonshot', 'groq', 'deepinfra', 'anthropic', 'openrouter', 'openai'];
const source = createCatalogFiles({ directory: '', withSimulator: false, terms: { managedProviders: new Set(PROVIDERS), byokProviders: new Set(), zdrAgreements: new Set(), offeredModels: new Map() } });

const dayAfter = (day: string, days: number): string => new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);

test.each(['2026-05-24', '2026-05-25', '2026-11-28', '2027-10-01'])('as of %s those that are told to be shut down, or to be so within a month, are those that serve no more by then', async (today) => {
  const [now, later] = await Promise.all([source.read(today), source.read(dayAfter(today, 30))]);
  const goneIn = (read: typeof now): readonly string[] => read.loaded?.catalog.endpoints.filter(({ sunsetDate, isServable }) => sunsetDate !== null && sunsetDate <= (read === now ? today : dayAfter(today, 30)) && !isServable).map(({ id }) => id) ?? [];
  const [gone, goneLater] = [goneIn(now), goneIn(later)];
  const told = (what: string): { readonly count: number; readonly names: readonly string[] } => {
    const line = now.loaded?.notices.find((notice) => notice.includes(what)) ?? '';
    return { count: Number(line.split(' ')[0] ?? 0), names: line === '' ? [] : line.slice(line.indexOf(':') + 2, -1).replace(/ and \d+ more$/, '').split(', ') };
  };
  const soon = goneLater.filter((id) => !gone.includes(id));
  for (const [{ count, names }, ids] of [[told('shut down by their date'), gone], [told('shut down within'), soon]] as const) {
    expect(names.filter((id) => !ids.includes(id))).toEqual([]);
    expect(count).toBe(ids.length);
  }
});

test('a host that goes on with open weights is not told to be shut down with their maker', async () => {
  const { loaded } = await source.read('2026-11-28');
  const line = loaded?.notices.find((notice) => notice.includes('shut down by their date')) ?? '';
  expect(line).toContain('moonshot:moonshotai/kimi-k2-0905');
  expect(line).not.toContain('groq:moonshotai/kimi-k2-0905');
  expect(loaded?.catalog.endpoints.find(({ id }) => id === 'groq:moonshotai/kimi-k2-0905')?.isServable).toBe(true);
});
