// Writes the codecs of proto/: for each area plain functions between the message types and protobuf bytes,
// and the table of its service. Semantics are those of `loaderOptions`: 64-bit integers as strings, enums as names,
// absent fields as their defaults, absent messages as null, oneofs named by their member.
import protobuf from 'protobufjs';
import { join } from 'node:path';

const SCALARS = {
  string: { tag: 2, isSet: (v) => `${v} !== undefined && ${v} !== ''`, write: (v) => `w.string(${v});`, read: 'r.string(end)', copy: (v) => v, fallback: `''`, type: 'string' },
  bytes: { tag: 2, isSet: (v) => `${v} !== undefined && ${v}.length > 0`, write: (v) => `w.bytes(${v});`, read: 'r.bytes(end)', copy: (v) => `copyBytes(${v})`, fallback: 'NO_BYTES', type: 'Buffer' },
  int64: { tag: 0, isSet: (v) => `${v} !== undefined && !isZero(${v})`, write: (v) => `w.int64(${v});`, read: 'r.int64()', copy: (v) => `copyInt64(${v})`, fallback: `'0'`, type: 'string' },
  uint32: { tag: 0, isSet: (v) => `${v} !== undefined && ${v} !== 0`, write: (v) => `w.uint32(${v});`, read: 'r.uint32()', copy: (v) => `${v} >>> 0`, fallback: '0', type: 'number' },
  bool: { tag: 0, isSet: (v) => `${v} === true`, write: (v) => `w.bool(${v});`, read: 'r.bool()', copy: (v) => v, fallback: 'false', type: 'boolean' },
  double: { tag: 1, isSet: (v) => `${v} !== undefined && Number(${v}) !== 0`, write: (v) => `w.double(${v});`, read: 'r.double()', copy: (v) => `Number(${v})`, fallback: '0', type: 'number' },
};

const dotted = (type) => type.fullName.replace(/^\./, '');
const areaOf = (type) => dotted(type).split('.')[1];

/** All messages of one area, and the types that it needs from other areas. */
class Area {
  constructor(name) {
    this.name = name;
    this.types = new Set();
    this.enums = new Set();
    this.imports = new Map();
    this.runtime = new Set(['Reader', 'Writer']);
  }

  use(type, kind) {
    const area = areaOf(type);
    const name = `${kind}${type.name}`;
    if (area !== this.name) {
      if (!this.imports.has(area)) this.imports.set(area, new Set());
      this.imports.get(area).add(name);
    }
    return name;
  }
}

function describeField(area, field) {
  const type = field.resolvedType;
  if (type === null) {
    const scalar = SCALARS[field.type];
    if (scalar === undefined) throw new Error(`${field.fullName}: type ${field.type} has no codec; add it to scripts/generate-codecs.mjs.`);
    if (field.type === 'bytes') area.runtime.add('NO_BYTES');
    if (field.type === 'bytes') area.runtime.add('copyBytes');
    if (field.type === 'int64') for (const name of ['isZero', 'copyInt64']) area.runtime.add(name);
    return { ...scalar, isMessage: false };
  }
  if (type instanceof protobuf.Enum) {
    area.enums.add(type);
    area.use(type, 'names');
    const first = type.valuesById[0];
    return {
      tag: 0,
      isMessage: false,
      isSet: (v) => `${v} !== undefined && ${v} !== '${first}' && ${v} !== 0`,
      write: (v) => `w.uint32(${area.use(type, 'numberOf')}(${v}));`,
      read: `${area.use(type, 'nameOf')}(r.uint32())`,
      copy: (v) => `${area.use(type, 'copy')}(${v})`,
      fallback: `'${first}'`,
      type: `${type.name}Name`,
    };
  }
  return {
    tag: 2,
    isMessage: true,
    isSet: (v) => `${v} !== undefined && ${v} !== null`,
    write: (v) => `{ const at = w.open(); ${area.use(type, 'write')}(w, ${v}); w.close(at); }`,
    read: `${area.use(type, 'read')}(r, r.delimited(end))`,
    copy: (v) => `${area.use(type, 'copy')}(${v})`,
    fallback: 'null',
    type: `${type.name}Out`,
  };
}

function writeFunction(area, type) {
  const lines = [`function write${type.name}(w: Writer, m: ${type.name}): void {`];
  if (type.fieldsArray.length === 0) return [`function write${type.name}(_w: Writer, _m: ${type.name}): void {}`];
  for (const field of [...type.fieldsArray].sort((a, b) => a.id - b.id)) {
    const f = describeField(area, field);
    const v = `m.${field.name}`;
    if (field.repeated) {
      if (f.tag !== 2) {
        lines.push(`  if (${v} !== undefined && ${v}.length > 0) { w.uint32(${(field.id << 3) | 2}); const at = w.open(); for (const one of ${v}) ${f.write('one')} w.close(at); }`);
      } else lines.push(`  if (${v} !== undefined) for (const one of ${v}) { w.uint32(${(field.id << 3) | 2}); ${f.write('one')} }`);
      continue;
    }
    const isExplicit = field.partOf !== null;
    const condition = isExplicit && !f.isMessage ? `${v} !== undefined && ${v} !== null` : f.isSet(v);
    lines.push(`  if (${condition}) { w.uint32(${(field.id << 3) | f.tag}); ${f.write(v)} }`);
  }
  return [...lines, '}'];
}

function readFunction(area, type) {
  const fields = [...type.fieldsArray].sort((a, b) => a.id - b.id);
  const lines = [`function read${type.name}(r: Reader, end: number): ${type.name}Out {`];
  const local = (field) => `v${field.id}`;
  const oneofs = type.oneofsArray.filter((oneof) => !oneof.fieldsArray.every((field) => field.options?.proto3_optional));
  const isOptional = (field) => field.partOf !== null;
  for (const field of fields) {
    const f = describeField(area, field);
    if (field.repeated) lines.push(`  const ${local(field)}: ${f.type.includes('|') ? `(${f.type})` : f.type}[] = [];`);
    else if (isOptional(field)) lines.push(`  let ${local(field)}: ${f.type} | undefined;`);
    else lines.push(`  let ${local(field)}: ${f.type}${f.isMessage ? ' | null' : ''} = ${f.fallback};`);
  }
  for (const oneof of oneofs) lines.push(`  let ${oneof.name}: ${type.name}Out['${oneof.name}'];`);
  lines.push('  while (r.at < end) {', '    const tag = r.uint32();', '    switch (tag) {');
  for (const field of fields) {
    const f = describeField(area, field);
    const oneof = oneofs.find((one) => one.fieldsArray.includes(field));
    const told = oneof === undefined ? '' : ` ${oneof.name} = '${field.name}';`;
    if (field.repeated && f.tag !== 2) {
      lines.push(`      case ${(field.id << 3) | 2}: { const stop = r.delimited(end); while (r.at < stop) ${local(field)}.push(${f.read}); r.check(stop); break; }`);
      lines.push(`      case ${(field.id << 3) | f.tag}: ${local(field)}.push(${f.read}); break;`);
    } else if (field.repeated) lines.push(`      case ${(field.id << 3) | 2}: ${local(field)}.push(${f.read}); break;`);
    else lines.push(`      case ${(field.id << 3) | f.tag}: ${local(field)} = ${f.read};${told} break;`);
  }
  lines.push('      default: r.skip(tag, end);', '    }', '  }', '  r.check(end);');
  const members = [...fields.map((field) => `${field.name}: ${local(field)}`), ...oneofs.map(({ name }) => name)];
  // Absent optional members are set to `undefined`, which their types permit without exactOptionalPropertyTypes.
  lines.push(`  return { ${members.join(', ')} } as ${type.name}Out;`, '}');
  return lines;
}

/** Generates a copy function: the same result as `read` of the bytes of `write`, without the bytes. */
function copyFunction(area, type) {
  const fields = [...type.fieldsArray].sort((a, b) => a.id - b.id);
  if (fields.length === 0) return [`function copy${type.name}(_m: ${type.name}): ${type.name}Out { return {} as ${type.name}Out; }`];
  const oneofs = type.oneofsArray.filter((oneof) => !oneof.fieldsArray.every((field) => field.options?.proto3_optional));
  const lines = [`function copy${type.name}(m: ${type.name}): ${type.name}Out {`];
  const isGiven = (v) => `${v} !== undefined && ${v} !== null`;
  for (const field of fields) {
    const f = describeField(area, field);
    const v = `m.${field.name}`;
    const absent = field.partOf !== null ? 'undefined' : f.fallback;
    const value = field.repeated ? `${v} === undefined ? [] : ${f.copy('one') === 'one' ? `${v}.slice()` : `${v}.map((one) => ${f.copy('one')})`}` : `${isGiven(v)} ? ${f.copy(v)} : ${absent}`;
    lines.push(`  const v${field.id} = ${value};`);
  }
  for (const { name, fieldsArray } of oneofs) {
    // The last one on the wire wins.
    const last = [...fieldsArray].sort((a, b) => b.id - a.id);
    lines.push(`  const ${name} = ${last.map((field) => `v${field.id} !== undefined ? '${field.name}' : `).join('')}undefined;`);
  }
  const members = [...fields.map((field) => `${field.name}: v${field.id}`), ...oneofs.map(({ name }) => name)];
  return [...lines, `  return { ${members.join(', ')} } as ${type.name}Out;`, '}'];
}

function enumTable(type) {
  const names = Object.entries(type.values);
  const first = type.valuesById[0];
  return [
    `type ${type.name}Name = ${names.map(([name]) => `'${name}'`).join(' | ')};`,
    `const names${type.name}: Readonly<Record<number, ${type.name}Name>> = { ${names.map(([name, id]) => `${id}: '${name}'`).join(', ')} };`,
    `const numbers${type.name}: Readonly<Record<string, number>> = { ${names.map(([name, id]) => `${name}: ${id}`).join(', ')} };`,
    `/** A number of a newer peer reads as ${first}. */`,
    `export function nameOf${type.name}(id: number): ${type.name}Name { return names${type.name}[id] ?? '${first}'; }`,
    `export function copy${type.name}(name: ${type.name}Name | number): ${type.name}Name { return nameOf${type.name}(numberOf${type.name}(name)); }`,
    `export function numberOf${type.name}(name: ${type.name}Name | number): number { return typeof name === 'number' ? name : (numbers${type.name}[name] ?? 0); }`,
  ];
}

/** Text of `codec/<area>.ts` by area. (libs/rpc has a hand-written codec for batches of the Link; the one generated here is for comparison.) */
export function generateCodecs(protoDir, areas, header) {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => join(protoDir, target);
  root.loadSync(areas.map((area) => `${area}/v1/${area}.proto`)).resolveAll();
  const files = {};
  const tables = areas.map((name) => [name, root.lookup(`signalbox.${name}.v1`)]);
  for (const [name, namespace] of tables) {
    const area = new Area(name);
    const types = namespace.nestedArray.filter((one) => one instanceof protobuf.Type);
    const enums = namespace.nestedArray.filter((one) => one instanceof protobuf.Enum);
    const service = namespace.nestedArray.find((one) => one instanceof protobuf.Service);
    const body = [];
    for (const type of enums) body.push(...enumTable(type), '');
    for (const type of types) {
      body.push(`export ${writeFunction(area, type).join('\n')}`, `export ${readFunction(area, type).join('\n')}`, `export ${copyFunction(area, type).join('\n')}`, '');
    }
    body.push(`export const codecs = {`, ...types.map((type) => `  ${type.name}: messageCodec(write${type.name}, read${type.name}, copy${type.name}),`), '};', '');
    if (service !== undefined) {
      body.push('/** RPCs of the area but Link, by name. */', 'export const rpcs: Readonly<Record<string, Rpc>> = {');
      for (const method of service.methodsArray.filter((one) => one.name !== 'Link')) {
        const codecOf = (type) => (areaOf(type) === name ? `codecs.${type.name}` : `${areaOf(type)}Codecs.${type.name}`);
        for (const type of [method.resolvedRequestType, method.resolvedResponseType]) if (areaOf(type) !== name) area.use({ fullName: type.fullName, name: `codecs as ${areaOf(type)}Codecs` }, '');
        body.push(`  ${method.name}: rpc('/${dotted(service)}/${method.name}', ${codecOf(method.resolvedRequestType)}, ${codecOf(method.resolvedResponseType)}, ${method.responseStream === true}),`);
      }
      body.push('};');
    }
    const outs = new Set();
    const text = body.join('\n');
    const imports = [];
    // Types of other areas that appear by name.
    for (const [otherName, other] of tables) {
      const own = other.nestedArray.filter((one) => one instanceof protobuf.Type && (otherName === name || new RegExp(`\\b${one.name}Out\\b`).test(text)));
      for (const type of own) {
        outs.add(`import type { ${otherName === name ? `${type.name}, ` : ''}${type.name}__Output as ${type.name}Out } from '../signalbox/${otherName}/v1/${type.name}.js';`);
      }
      const used = [...(area.imports.get(otherName) ?? [])].filter((one) => otherName !== name && !one.startsWith('names'));
      const enumTypes = otherName === name ? [] : other.nestedArray.filter((one) => one instanceof protobuf.Enum && new RegExp(`\\b${one.name}Name\\b`).test(text));
      for (const type of enumTypes) used.push(`nameOf${type.name}`);
      if (used.length > 0) imports.push(`import { ${[...new Set(used)].sort().join(', ')} } from './${otherName}.js';`);
      for (const type of enumTypes) imports.push(`type ${type.name}Name = ReturnType<typeof nameOf${type.name}>;`);
    }
    const runtime = [...area.runtime].filter((one) => new RegExp(`\\b${one}\\b`).test(text));
    imports.unshift(`import { ${['messageCodec', ...(service === undefined ? [] : ['rpc', 'type Rpc']), ...runtime.map((one) => (one === 'Reader' || one === 'Writer' ? `type ${one}` : one))].join(', ')} } from '../../wire.js';`);
    const order = (line) => (line.startsWith('type ') ? 1 : 0);
    files[`${name}.ts`] = `${header}/** Codecs of proto/${name}/v1. */\n${[...imports.sort((a, b) => order(a) - order(b)), ...outs].sort((a, b) => order(a) - order(b)).join('\n')}\n\n${text}\n`;
  }
  return files;
}
