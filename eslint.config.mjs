// Errors only: a rule is worth failing for, or it is not here. A disabled line carries its reason.
import tseslint from 'typescript-eslint';
import { keptCollections } from './scripts/lint/kept-collections.mjs';

const restricted = {
  environment: { selector: "MemberExpression[object.name='process'][property.name='env']", message: 'Read the environment in config.ts only.' },
  now: { selector: "MemberExpression[object.name='Date'][property.name='now']", message: 'Take a Clock.' },
  newDate: { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'Take a Clock.' },
  timers: { selector: "CallExpression[callee.name=/^set(Timeout|Interval)$/]", message: 'Take a Clock.' },
  random: { selector: "MemberExpression[object.name='Math'][property.name='random']", message: 'Take RandomBytes.' },
  enums: { selector: 'TSEnumDeclaration', message: 'Use a union of literals.' },
  defaults: { selector: 'ExportDefaultDeclaration', message: 'Use a named export.' },
};
const all = Object.values(restricted);
const without = (...left) => ['error', ...all.filter((rule) => !left.includes(rule))];
const { environment, now, newDate, timers, random } = restricted;

// How code is written: what a reader would otherwise stumble over in a change. Lines break where their author breaks them.
// ESLint keeps these rules for their users' sake and adds none: without them they would be its stylistic plugin's.
const style = {
  semi: 'error',
  quotes: ['error', 'single', { avoidEscape: true, allowTemplateLiterals: true }],
  'comma-dangle': ['error', 'only-multiline'],
  'object-curly-spacing': ['error', 'always'],
  'no-multiple-empty-lines': ['error', { max: 1, maxBOF: 0, maxEOF: 0 }],
  ...Object.fromEntries(['arrow-parens', 'arrow-spacing', 'block-spacing', 'comma-spacing', 'eol-last', 'key-spacing', 'keyword-spacing', 'linebreak-style', 'no-tabs', 'no-trailing-spaces', 'space-before-blocks', 'space-infix-ops'].map((rule) => [rule, 'error'])),
};

const outside = ['**/*.test.ts', '**/test/**', '**/testing/**', 'tests/**', 'bench/**', 'sim/**', 'deploy/**', 'libs/testkit/**', 'libs/local-stores/**', 'services/dashboard/**'];

// Every request goes through these: what lives on in them is looked at by `kept-collections` (ADR 86).
const hot = ['libs/{kernel,ledger-core,router-core,rpc,runtime,worker-kit}/src/**/*.ts', 'libs/contracts/src/*.ts', 'services/edge/src/{adapters,domain}/**/*.ts', 'services/edge/src/routes/chat-completions/**/*.ts', 'services/edge/src/*.ts', 'services/{quota,routing}/src/**/*.ts'];

export default tseslint.config(
  { ignores: ['**/dist/**', '**/node_modules/**', '**/coverage/**', '**/*.mjs', '**/*.cjs', '**/*.js', '**/*.d.mts', '**/*.d.ts', 'libs/contracts/src/gen/**', 'dashboard/**'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { '@typescript-eslint': tseslint.plugin },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false, attributes: false } }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      'no-console': 'error',
      'no-restricted-syntax': without(),
      eqeqeq: 'error',
      ...style,
    },
  },
  { files: ['**/config.ts', '**/main.ts'], rules: { 'no-restricted-syntax': without(environment) } },
  { files: ['libs/runtime/**'], rules: { 'no-restricted-syntax': without(now, newDate, timers, random) } },
  // Outside the services: real time and the environment are what these are about.
  { files: outside, rules: { 'no-restricted-syntax': without(environment, now, newDate, timers, random) } },
  {
    files: hot,
    ignores: ['**/*.test.ts', '**/*-suite.ts', '**/testing/**', '**/config.ts'],
    plugins: { signalbox: { rules: { 'kept-collections': keptCollections } } },
    rules: { 'signalbox/kept-collections': 'error' },
  },
  // A test's JSON and fakes may be looser about promises that a matcher awaits.
  { files: ['**/*.test.ts', '**/*-suite.ts'], rules: { '@typescript-eslint/no-misused-promises': 'off' } },
);
