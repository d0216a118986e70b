// The import rule of ARCHITECTURE.md: each layer imports only from layers below it. Tests beside the code may use testkit and local-stores.
// Tests, and the support code that stands beside them in a folder named for it.
const TESTS = '(\\.(test|battery)\\.ts|-suite\\.ts)$|/test/|/testing/';

// Lowest first; `also` names peers of the same layer that may be imported.
const layers = [
  ['kernel'],
  ['runtime', 'contracts', 'ledger-core', 'router-core'],
  ['wires', 'rpc', 'bus', 'sql', 'net-guard'],
  ['worker-kit', 'plugin-kit'],
];
const libs = (names) => `^libs/(${names.join('|')})/`;
const upTo = (index) => layers.slice(0, index).flat();

const layerRules = layers.flatMap((names, index) =>
  names.map((name) => ({
    name: `layer-of-${name}`,
    comment: 'A library imports only from the layers below it.',
    severity: 'error',
    from: { path: `^libs/${name}/src/`, pathNot: TESTS },
    to: { path: '^(libs|services|deploy|tests|bench)/', pathNot: [`^libs/(${[name, ...upTo(index)].join('|')})/`] },
  })),
);

module.exports = {
  forbidden: [
    ...layerRules,
    { name: 'no-cycles', severity: 'error', from: { pathNot: '^libs/contracts/src/gen/' }, to: { circular: true, viaOnly: { pathNot: '^libs/contracts/src/gen/' } } },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'services-use-libraries',
      comment: 'Services import libraries and themselves; never deploy, tests, bench, and local-stores or testkit only in tests.',
      severity: 'error',
      from: { path: '^services/', pathNot: TESTS },
      to: { path: '^(deploy|tests|bench)/|^libs/(testkit|local-stores)/' },
    },
    {
      name: 'no-service-imports-another',
      severity: 'error',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^services/', pathNot: '^services/$1/' },
    },
    {
      name: 'services-from-outside-by-compose',
      comment: 'deploy, tests and bench take services by their composition root, its config and tables of what hosts are like.',
      severity: 'error',
      from: { path: '^(deploy|tests|bench)/' },
      to: { path: '^services/', pathNot: '^services/[^/]+/(src|dist)/(compose|config|presets|host-limits)\\.ts$' },
    },
    {
      name: 'domain-is-pure',
      comment: 'domain/ imports kernel, the cores, plugin-kit, contract types, Secret (a pure value) and itself.',
      severity: 'error',
      from: { path: '^services/([^/]+)/src/domain/', pathNot: TESTS },
      to: {
        path: '^(libs|services|deploy|tests|bench)/',
        pathNot: [libs(['kernel', 'ledger-core', 'router-core', 'contracts', 'plugin-kit']), '^libs/runtime/src/secret\\.ts$', '^services/$1/src/domain/'],
      },
    },
    {
      name: 'cores-and-wires-do-no-io',
      severity: 'error',
      from: { path: '^libs/(kernel|ledger-core|router-core|wires|plugin-kit)/src/', pathNot: TESTS },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|buffer|util|string_decoder|zlib)$' },
    },
    {
      name: 'simulation-by-proof',
      comment: 'The simulation takes of a service what its proof.ts names, and nobody else does.',
      severity: 'error',
      from: { path: '^sim/' },
      to: { path: '^services/', pathNot: '^services/[^/]+/(src|dist)/proof\\.ts$' },
    },
    { name: 'proof-for-the-simulation', severity: 'error', from: { path: '^(services|libs|deploy|bench)/' }, to: { path: '/src/proof\\.ts$' } },
    { name: 'nats-in-one-place', severity: 'error', from: { pathNot: '^libs/bus/src/jetstream(-streams|\\.test)?\\.ts$' }, to: { path: '(^|/)node_modules/nats/' } },
    {
      name: 'store-clients-in-adapters',
      severity: 'error',
      from: { path: '^services/', pathNot: [TESTS, '/adapters/', '/compose\\.ts$'] },
      to: { path: '(^|/)node_modules/(pg|ioredis)/', dependencyTypesNot: ['type-only'] },
    },
    { name: 'development-stores-stay-out', severity: 'error', from: { pathNot: ['^libs/(local-stores|testkit)/', '^(deploy|tests|bench)/', TESTS] }, to: { path: '^libs/(local-stores|testkit)/' } },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '/dist/'] },
    exclude: { path: '(/dist/.*\\.(map|tsbuildinfo)$|/dist/)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: '.dependency-cruiser.tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default', 'types'], extensions: ['.ts', '.js', '.mjs', '.json'] },
  },
};
