// Writes docs/configuration.md and the names of libs/runtime/src/setting-names.ts from the schemas in each config.ts and the presets of providers; with --check fails when they differ.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = new URL('..', import.meta.url).pathname;
const target = join(root, 'docs/configuration.md');
const namesTarget = join(root, 'libs/runtime/src/setting-names.ts');
const EVERYWHERE = ['HOST', 'GRPC_PORT', 'METRICS_PORT', 'LOG_LEVEL', 'NATS_URL', 'BILLING_PERIOD_SECONDS'];

const read = (path) => ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true);

/** Text of the comment directly before a node, without asterisks. */
function commentOf(node, source) {
  const range = (ts.getLeadingCommentRanges(source.text, node.getFullStart()) ?? []).at(-1);
  if (range === undefined) return '';
  const text = source.text.slice(range.pos, range.end);
  return text.startsWith('/**') ? text.replace(/^\/\*\*|\*\/$/g, '').replace(/^\s*\*\s?/gm, '').replace(/\s+/g, ' ').trim() : '';
}

/** Named number constants of a file. */
function constantsOf(source) {
  const constants = new Map();
  for (const statement of source.statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      const value = initializer === undefined ? undefined : numberOf(initializer, constants);
      if (value !== undefined && ts.isIdentifier(name)) constants.set(name.text, value);
    }
  }
  return constants;
}

function numberOf(node, constants) {
  if (ts.isNumericLiteral(node)) return Number(node.text.replaceAll('_', ''));
  if (ts.isIdentifier(node)) return constants.get(node.text);
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.AsteriskToken) return undefined;
  const [left, right] = [numberOf(node.left, constants), numberOf(node.right, constants)];
  return left === undefined || right === undefined ? undefined : left * right;
}

/** The calls of `a(1).b(2).c(3)`, outermost last. */
function chainOf(node) {
  if (!ts.isCallExpression(node)) return ts.isPropertyAccessExpression(node) ? [...chainOf(node.expression), { name: node.name.text, args: [] }] : [{ name: node.getText(), args: [] }];
  const callee = node.expression;
  if (ts.isPropertyAccessExpression(callee)) return [...chainOf(callee.expression), { name: callee.name.text, args: [...node.arguments] }];
  return [{ name: callee.getText(), args: [...node.arguments] }];
}

const KINDS = { addressesField: '`host:port`, …', workersField: '`provider=host:port`, …', feesField: '`plugin=usd`, …', allowListField: 'list', listField: 'list', addressField: 'URL', secretField: 'secret', url: 'URL' };
const EMPTY_BY_DEFAULT = new Set(['feesField', 'allowListField', 'listField', 'addressField']);

function settingOf({ name, initializer }, source, constants) {
  const chain = chainOf(initializer);
  const call = (wanted) => chain.find((link) => link.name === wanted);
  const count = (argument) => String(numberOf(argument, constants) ?? argument.getText());
  const [first] = chain.filter((link) => link.name !== 'z');
  let kind = KINDS[first.name] ?? 'text';
  let fallback;
  if (first.name === 'portField') [kind, fallback] = ['port', count(first.args[0])];
  else if (first.name === 'wholeNumberField') [kind, fallback] = [`${count(first.args[0])} to ${count(first.args[1])}`, count(first.args[2])];
  else if (first.name === 'optionalWholeNumberField') [kind, fallback] = [`${count(first.args[0])} to ${count(first.args[1])}`, ''];
  else if (first.name === 'shareField') [kind, fallback] = ['0 to 1', count(first.args[0])];
  else if (first.name === 'logLevelField') [kind, fallback] = ['`fatal`, `error`, `warn`, `info`, `debug`, `trace`, `silent`', 'info'];
  else if (first.name === 'enum') kind = first.args[0].elements.map((element) => `\`${element.text}\``).join(', ');
  else if (first.name === 'addressesField' && first.args.length > 0) fallback = first.args[0].text;
  if (initializer.getText().includes('new Secret(')) kind = 'secret';
  const given = call('default')?.args[0];
  if (given !== undefined) fallback = ts.isStringLiteral(given) ? given.text : count(given);
  const isOptional = call('optional') !== undefined || EMPTY_BY_DEFAULT.has(first.name) || fallback === '';
  return { name: name.getText(), kind, fallback: isOptional ? 'none' : fallback === undefined ? '**required**' : `\`${fallback}\``, text: commentOf(initializer.parent, source) };
}

/** Settings in the zod objects of a file, in order. */
function settingsOf(path) {
  const source = read(path);
  const constants = constantsOf(source);
  const settings = [];
  const visit = (node) => {
    const isObject = ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === 'object' && node.expression.expression.getText() === 'z' && node.arguments[0] !== undefined && ts.isObjectLiteralExpression(node.arguments[0]);
    if (isObject) for (const property of node.arguments[0].properties) if (ts.isPropertyAssignment(property) && /^[A-Z][A-Z0-9_]*$/.test(property.name.getText())) settings.push(settingOf(property, source, constants));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return settings;
}

/** Rows of a file's PRESETS. */
function presetsOf(path) {
  const rows = [];
  const textsOf = (node) => (ts.isArrayLiteralExpression(node) ? node.elements : [node]).filter((element) => ts.isStringLiteral(element)).map((element) => element.text);
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === 'PRESETS') {
      let table = node.initializer;
      while (!ts.isObjectLiteralExpression(table)) table = table.expression;
      for (const row of table.properties) {
        const fields = new Map(row.initializer.properties.filter(ts.isPropertyAssignment).map((field) => [field.name.getText(), field.initializer]));
        const credentials = textsOf(fields.get('credentials') ?? fields.get('credential'));
        rows.push({ id: row.name.getText().replace(/'/g, ''), credentials, baseUrlVariable: textsOf(fields.get('baseUrlVariable'))[0], baseUrl: textsOf(fields.get('baseUrl'))[0] ?? '' });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(read(path));
  return rows;
}

const cell = (text) => text.replaceAll('|', '\\|');
const table = (settings) => ['| Variable | Value | Default | Meaning |', '|---|---|---|---|', ...settings.map(({ name, kind, fallback, text }) => `| \`${name}\` | ${cell(kind)} | ${cell(fallback)} | ${cell(text)} |`)].join('\n');

const described = new Map();
const sections = [];
const services = readdirSync(join(root, 'services')).filter((name) => existsSync(join(root, 'services', name, 'src/config.ts'))).sort();
const files = [...services.filter((name) => !name.startsWith('worker-')).map((name) => [name, `services/${name}/src/config.ts`]), ['every worker', 'libs/worker-kit/src/config.ts'], ...services.filter((name) => name.startsWith('worker-')).map((name) => [name, `services/${name}/src/config.ts`])];
for (const [name, path] of files) {
  const settings = settingsOf(path);
  for (const setting of settings) if (EVERYWHERE.includes(setting.name) && !described.has(setting.name)) described.set(setting.name, setting);
  const own = settings.filter((setting) => !EVERYWHERE.includes(setting.name) && !(path.startsWith('libs/') && ['API_KEYS', 'BASE_URL'].includes(setting.name)));
  if (own.length > 0) sections.push(`## ${name[0].toUpperCase()}${name.slice(1)}\n\n${table(own)}`);
}

const SHARED = {
  HOST: 'Address to listen on. Beyond loopback, the ports between services need certificates (`RPC_TLS_DIR`).',
  GRPC_PORT: 'Port for other services; 0 = any free port.',
  METRICS_PORT: 'Port of `/livez`, `/readyz` and `/metrics`; 0 = any free port. `npm start`: one port for all services, none unless set.',
  LOG_LEVEL: 'Level of the JSON log on stderr, which never contains a secret, a prompt or a completion. Default of `npm start`: `warn`.',
  NATS_URL: 'Event bus, several servers with commas. May contain a password: never logged. Without it, routing hears nothing of the attempts of others. Not used by `npm start`, plugins and sandbox.',
  BILLING_PERIOD_SECONDS: 'Length of month and plan periods, for tests; absent = calendar months.',
};
const everywhere = EVERYWHERE.map((name) => ({ ...described.get(name), name, fallback: name === 'NATS_URL' ? '**required** by accounts, edge and quota; none at routing; `nats://127.0.0.1:4222` at billing and workers' : (described.get(name)?.fallback ?? 'none'), text: SHARED[name] }));

/** Settings that only the launchers and the admin command line read. */
const launchers = [
  { name: 'DATA_DIR', kind: 'text', fallback: '`.data`', text: 'Data folder: created secrets, write-ahead logs and private stores. The admin command line finds the token of the admin port in it.' },
  { name: 'DATABASE_URL', kind: 'text', fallback: 'none', text: 'Absent = `npm start` runs a Postgres of its own in DATA_DIR, and `npm run start:split` runs private stores, with their data in DATA_DIR, from programs found on this machine, else downloaded.' },
  { name: 'REDIS_URL', kind: 'text', fallback: 'none', text: 'Only `npm run start:split`, as NATS_URL; absent = as DATABASE_URL.' },
  { name: 'OLLAMA', kind: '`on`, `off`', fallback: '`on`', text: '`off` = an Ollama on its usual port is not looked for. One at OLLAMA_BASE_URL is used in any case.' },
  { name: 'ADMIN_URL', kind: 'URL', fallback: '`http://127.0.0.1:<ADMIN_PORT>`', text: 'Only the admin command line: address of the admin port, if it is elsewhere. ADMIN_TOKEN then has its token.' },
  { name: 'NODE_EXTRA_CA_CERTS', kind: 'text', fallback: 'none', text: "Node's own: file of further certificate authorities, for providers and stores. Set it in the environment: Node has read it before `.env` is. Services of `npm run start:split` get it too, and SSL_CERT_FILE and SSL_CERT_DIR." },
];

/** Settings of the migration jobs. */
const schemaJob = settingsOf('libs/runtime/src/schema-job.ts');

/** Settings read once per process, by every service. */
const processWide = ['tracing', 'tls-files'].flatMap((name) => settingsOf(`libs/runtime/src/${name}.ts`));

const presets = [...presetsOf('services/worker-openai-compatible/src/presets.ts'), ...presetsOf('services/worker-anthropic/src/presets.ts')].sort((a, b) => (a.id < b.id ? -1 : 1));
const providers = ['| Provider | Credential | Address | Default address |', '|---|---|---|---|', ...presets.map(({ id, credentials, baseUrlVariable, baseUrl }) => `| ${id} | ${credentials.map((name) => `\`${name}\``).join(' or ')} | \`${baseUrlVariable}\` | ${baseUrl === '' ? '**required**' : baseUrl} |`)].join('\n');

const text = `# Configuration

Generated by \`npm run generate\` from the schemas in each \`config.ts\`. Do not edit.

Settings are environment variables, read once at start. \`npm start\` and \`npm run start:split\` also read \`.env\`.

- An empty or blank variable counts as absent.
- A process with wrong or missing settings prints one line for each and exits with 1. \`npm start\` and \`npm run start:split\` check all of them before anything starts.
- \`npm start\` and \`npm run start:split\` print a line for each variable that is a letter away from a setting, or has LiteLLM's name of it. A service that is started by itself logs a warning for each that is so near to a setting of its own. Any other unknown name is ignored.
- Whole numbers are decimal digits only. Lists are separated by commas; an entry that does not exist is an error.
- \`npm start\` and \`npm run start:split\` set addresses and ports between services themselves, and create \`KEY_PEPPER\`, \`SECRETS_KEY\` and \`ADMIN_TOKEN\` in the data folder if they are not set.

## Every service

${table([...everywhere, ...processWide])}

## Providers

A provider is enabled by setting its credential and whatever else it requires. If only a part is set, it stays off, and \`npm start\` and
\`npm run start:split\` print what is missing. Several keys, separated by commas, are used in turn; a key that the
provider refuses is taken out of use for a while. Not in the table: OpenAI (\`OPENAI_API_KEY\`, \`OPENAI_BASE_URL\`), Cohere (\`COHERE_API_KEY\` or
\`CO_API_KEY\`, \`COHERE_BASE_URL\`), Google (\`GEMINI_API_KEY\` or \`GOOGLE_API_KEY\`, \`GEMINI_BASE_URL\`), Vertex
(\`VERTEX_ACCESS_TOKEN\` or \`GOOGLE_APPLICATION_CREDENTIALS\`, with \`GOOGLE_VERTEX_PROJECT\` and \`GOOGLE_VERTEX_LOCATION\`
or \`VERTEX_BASE_URL\`), Azure (\`AZURE_API_KEY\` with \`AZURE_RESOURCE_NAME\` or \`AZURE_BASE_URL\`), Bedrock (\`AWS_BEARER_TOKEN_BEDROCK\` or a key
pair; \`BEDROCK_BASE_URL\`), Ollama (\`OLLAMA_BASE_URL\`). An address of \`…_BASE_URL\` replaces the provider's own.

worker-anthropic, worker-google and worker-openai-compatible serve one of several providers: started by themselves, they read its id
from \`PROVIDER\` (worker-anthropic: \`anthropic\` by default). The launchers, compose and Kubernetes set it.

${providers}

## Launchers and the admin command line

\`npm start\`, \`npm run start:split\` and \`npm run admin\` read these beside the settings of the services. All three read \`.env\`.

${table(launchers)}

${sections.join('\n\n')}

## Migrations

For \`node services/<accounts|billing|plugins>/dist/main.js migrate\`, which migrates the schema of that service and exits.

${table(schemaJob)}
`;

/** Names of variables in a file's texts: those that a worker reads for its provider. */
function namesIn(path) {
  const names = [];
  const visit = (node) => {
    if (ts.isStringLiteral(node) && /^(?:PROVIDER|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)$/.test(node.text)) names.push(node.text);
    ts.forEachChild(node, visit);
  };
  if (existsSync(join(root, path))) visit(read(path));
  return names;
}

/** Names of settings by what reads them: each service, and `process`, which is every service. */
const workerNames = settingsOf('libs/worker-kit/src/config.ts').map(({ name }) => name).filter((name) => !['API_KEYS', 'BASE_URL'].includes(name));
const migrated = new Set(['accounts', 'billing', 'plugins']);
const readBy = Object.fromEntries([
  ['process', processWide.map(({ name }) => name)],
  ...services.map((service) => {
    const ofWorker = service.startsWith('worker-') ? [...workerNames, ...namesIn(`services/${service}/src/config.ts`), ...namesIn(`services/${service}/src/presets.ts`)] : [];
    return [service, [...settingsOf(`services/${service}/src/config.ts`).map(({ name }) => name), ...ofWorker, ...(migrated.has(service) ? schemaJob.map(({ name }) => name) : [])]];
  }),
  ['launchers', launchers.map(({ name }) => name)],
]);
const namesText = `/** Names of all settings, by what reads them. Generated by \`npm run generate\` from the schemas in each \`config.ts\`. Do not edit. */
export const SETTING_NAMES: Readonly<Record<string, readonly string[]>> = {
${Object.entries(readBy).map(([name, names]) => `  '${name}': [${[...new Set(names)].sort().map((setting) => `'${setting}'`).join(', ')}],`).join('\n')}
};
`;

const unexplained = text.split('\n').filter((line) => /^\| `[A-Z_]+` \|.*\|  \|$/.test(line));
if (unexplained.length > 0) {
  console.error(`These settings have no comment in their config.ts that says what they do:\n${unexplained.join('\n')}`);
  process.exit(1);
}

for (const [name, path, written] of [['docs/configuration.md', target, text], ['libs/runtime/src/setting-names.ts', namesTarget, namesText]]) {
  if (!process.argv.includes('--check')) {
    writeFileSync(path, written);
    console.log(`Generated ${name}.`);
  } else if (existsSync(path) && readFileSync(path, 'utf8') === written) console.log(`${name} agrees with the schemas.`);
  else {
    console.error(`${name} differs from the schemas: run npm run generate.`);
    process.exit(1);
  }
}
