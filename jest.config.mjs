// Native ESM; workspace packages resolve to src, never to a stale dist.
export default {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  roots: ['<rootDir>/libs', '<rootDir>/services', '<rootDir>/deploy', '<rootDir>/tests', '<rootDir>/bench', '<rootDir>/training', '<rootDir>/sim'],
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/'],
  transform: {
    '^.+\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' }],
  },
  moduleNameMapper: {
    '^@signalbox/([a-z-]+)/(.+)$': ['<rootDir>/libs/$1/src/$2.ts', '<rootDir>/services/$1/src/$2.ts', '<rootDir>/deploy/$1/src/$2.ts'],
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  testTimeout: 20_000,
  maxWorkers: 2,
  // Modules in contexts of their own are never freed: a worker that has run a hundred suites takes eight times as long for the next.
  workerIdleMemoryLimit: '512MB',
};
