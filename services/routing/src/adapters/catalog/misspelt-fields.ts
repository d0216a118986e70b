/**
 * Finds fields of a catalog file whose names are nearly those of fields that routing reads. Others may stand there, for people
 * and other programs; a misspelt price or policy would be taken for one of them, and the default for what was meant.
 */
import { isObject } from '@signalbox/kernel/json-object';
import { isSlip } from '@signalbox/kernel/slip';
import { z } from 'zod';

/** Shorter names are near to too many others. */
const NAME_MIN = 5;

export interface MisspeltField {
  readonly path: readonly PropertyKey[];
  readonly meant: string;
}

/** In the order of the file. Nothing is said where the field that is probably meant is there too. */
export function misspeltFields(schema: unknown, json: unknown, path: readonly PropertyKey[] = []): MisspeltField[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return misspeltFields(schema.unwrap(), json, path);
  if (schema instanceof z.ZodArray) return Array.isArray(json) ? json.flatMap((item, index) => misspeltFields(schema.element, item, [...path, index])) : [];
  if (!(schema instanceof z.ZodObject) || !isObject(json)) return [];
  const shape: Readonly<Record<string, unknown>> = schema.shape;
  const absent = Object.keys(shape).filter((known) => known.length >= NAME_MIN && !Object.hasOwn(json, known));
  return Object.entries(json).flatMap(([name, value]): MisspeltField[] => {
    if (Object.hasOwn(shape, name)) return misspeltFields(shape[name], value, [...path, name]);
    const meant = absent.find((known) => isSlip(name.toLowerCase(), known));
    return meant === undefined ? [] : [{ path: [...path, name], meant }];
  });
}
