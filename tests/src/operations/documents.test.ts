/** What the documents name is there: pages, sections, files, commands, decisions. */
import { expect, test } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
/** Beside the repository's own: what is installed, built, or a store's. */
const isForeign = (name: string): boolean => name === 'node_modules' || name === 'dist' || name.startsWith('.');
const documentsIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => (isForeign(entry.name) ? [] : entry.isDirectory() ? documentsIn(join(folder, entry.name)) : entry.name.endsWith('.md') ? [join(folder, entry.name)] : []));

/** Without its blocks of code. */
const prose = (text: string): string => text.replace(/^```[^]*?^```/gm, '');
/** As a page of GitHub names the sections of a document. */
const sectionsOf = (text: string): ReadonlySet<string> =>
  new Set([...prose(text).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')));

test.each(documentsIn(''))('every link of %s leads to a page, and to a section that it has', (document) => {
  const broken = [...prose(read(document)).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].filter(([, path = '', section]) => {
    const target = path === '' ? document : join(dirname(document), path);
    if (!existsSync(join(ROOT, target))) return true;
    return section !== undefined && target.endsWith('.md') && !sectionsOf(read(target)).has(section);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test.each(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/add-a-provider.md', 'docs/add-a-plugin.md', 'docs/add-a-model.md', 'docs/add-a-service.md'])('every file that %s names is there, and every npm script', (document) => {
  const text = read(document);
  const paths = [...prose(text).matchAll(/`((?:deploy|docs|k8s|libs|proto|scripts|services|sim|tests|training)\/[\w./-]*\w\/?)`/g)].map(([, path = '']) => path);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
  const named = [...text.matchAll(/npm (?:run (?:-s )?)([a-z][\w:-]*)/g)].map(([, name = '']) => name);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

test('the list of decisions has every one, once, under its title', () => {
  const numbers = readdirSync(join(ROOT, 'docs/adr')).filter((name) => /^\d{4}-/.test(name)).sort();
  const listed = [...read('docs/adr/README.md').matchAll(/\[(\d+)\]\((\d{4}-[\w-]+\.md)\) (.+)/g)];
  expect(listed.map(([, , name = '']) => name).sort()).toEqual(numbers);
  expect(listed.filter(([, number = '', name = '']) => Number(number) !== Number(name.slice(0, 4)))).toEqual([]);
  expect(listed.filter(([, number = '', name = '', title = '']) => read(`docs/adr/${name}`).split('\n')[0] !== `# ${number}. ${title}`)).toEqual([]);
});

test('the page of the API has every code of an error', () => {
  const [, table = ''] = /export const API_ERRORS = \{([^]*?)\n\} as const/.exec(read('services/edge/src/wire/errors.ts')) ?? [];
  const ofRefusals = [...table.matchAll(/^ {2}(\w+): \{ [^\n]*?(?:code: (null|'\w+'))?, message/gm)].flatMap(([, name = '', code = `'${name}'`]) => (code === 'null' ? [] : [code.slice(1, -1)]));
  const ofFaults = [...read('libs/kernel/src/fault.ts').matchAll(/publicCode: '(\w+)'/g)].map(([, code = '']) => code);
  const ofBrokenStreams = [...read('services/edge/src/wire/refusals.ts').matchAll(/'(provider_\w+)'/g)].map(([, code = '']) => code);
  const [, classes = ''] = /export type FailureClass =([^;]*);/.exec(read('libs/wires/src/canonical.ts')) ?? [];
  const ofAttempts = [...classes.matchAll(/'(\w+)'/g)].map(([, name = '']) => name.toLowerCase());
  for (const codes of [ofRefusals, ofFaults, ofBrokenStreams, ofAttempts]) expect(codes.length).toBeGreaterThan(2);
  const [, section = ''] = /\n### Error codes\n([^]*?)\n### /.exec(read('docs/api.md')) ?? [];
  const named = new Set([...section.matchAll(/`(\w+)`/g)].map(([, code = '']) => code));
  expect([...ofRefusals, ...ofFaults, ...ofBrokenStreams, ...ofAttempts].filter((code) => !named.has(code))).toEqual([]);
});
