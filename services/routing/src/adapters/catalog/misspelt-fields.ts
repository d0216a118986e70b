/**
 * Finds fields of a catalog file whose names are nearly those of fields that routing reads. Others may stand there, for people
 * and other programs; a misspelt price or policy would be taken for one of them, and the default for what was meant.
 */
import { isObject } from '@signalbox/kernel/json-object';
import { isSlip } from '@signalbox/kernel/slip';
import { z } from 'zod';

/** Shorter names are near to too many others. */
const NAME_MIN = 5;
/** Names that begin otherwise put a field aside, such as `_vision`. */
const LETTER_FIRST = /^[a-z]/;

const withoutDigits = (name: string): string => name.replaceAll(/\d/g, '');

/** Names that differ by their digits are of two things that differ by a number, such as `ttft_ms_p95` and `ttft_ms_p75`. */
function isMisspelt(name: string, known: string): boolean {
  return name === known || (LETTER_FIRST.test(name) && isSlip(name, known) && withoutDigits(name) !== withoutDigits(known));
}

export interface MisspeltField {
  readonly path: readonly PropertyKey[];
  readonly meant: string;
}

/** The known names that a name may be a slip of, found once: a thousand records have the same names. */
class NearNames {
  private readonly byName = new Map<string, readonly string[]>(); // kept: while one file is read.

  constructor(private readonly known: readonly string[]) {}

  of(name: string): readonly string[] {
    let near = this.byName.get(name);
    if (near === undefined) this.byName.set(name, (near = this.known.filter((known) => isMisspelt(name.toLowerCase(), known))));
    return near;
  }
}

/** What of a schema is looked into; undefined = a value without fields. */
type Shape = { readonly kind: 'list'; readonly item: Shape } | { readonly kind: 'record'; readonly fields: ReadonlyMap<string, Shape>; readonly near: NearNames } | undefined;

function shapeOf(schema: unknown): Shape {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return shapeOf(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const item = shapeOf(schema.element);
    return item === undefined ? undefined : { kind: 'list', item };
  }
  if (!(schema instanceof z.ZodObject)) return undefined;
  const fields = new Map(Object.entries(schema.shape as Readonly<Record<string, unknown>>).map(([name, field]) => [name, shapeOf(field)]));
  return { kind: 'record', fields, near: new NearNames([...fields.keys()].filter((name) => name.length >= NAME_MIN)) };
}

/** In the order of the file. Nothing is said where the field that is probably meant is there too. */
export function misspeltFields(schema: unknown, json: unknown): MisspeltField[] {
  const found: MisspeltField[] = [];
  const read = (shape: Shape, value: unknown, path: readonly PropertyKey[]): void => {
    if (shape?.kind === 'list') {
      if (Array.isArray(value)) for (const [index, item] of value.entries()) read(shape.item, item, [...path, index]);
    } else if (shape !== undefined && isObject(value)) {
      for (const name of Object.keys(value)) {
        if (shape.fields.has(name)) {
          const field = shape.fields.get(name);
          if (field !== undefined) read(field, value[name], [...path, name]);
          continue;
        }
        const meant = shape.near.of(name).find((known) => !Object.hasOwn(value, known));
        if (meant !== undefined) found.push({ path: [...path, name], meant });
      }
    }
  };
  read(shapeOf(schema), json, []);
  return found;
}
