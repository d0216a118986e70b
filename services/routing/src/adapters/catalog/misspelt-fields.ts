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

/** In the order of the file. Nothing is said where the field that is probably meant is there too. */
export function misspeltFields(schema: unknown, json: unknown, path: readonly PropertyKey[] = []): MisspeltField[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return misspeltFields(schema.unwrap(), json, path);
  if (schema instanceof z.ZodArray) return Array.isArray(json) ? json.flatMap((item, index) => misspeltFields(schema.element, item, [...path, index])) : [];
  if (!(schema instanceof z.ZodObject) || !isObject(json)) return [];
  const shape: Readonly<Record<string, unknown>> = schema.shape;
  const absent = Object.keys(shape).filter((known) => known.length >= NAME_MIN && !Object.hasOwn(json, known));
  return Object.entries(json).flatMap(([name, value]): MisspeltField[] => {
    if (Object.hasOwn(shape, name)) return misspeltFields(shape[name], value, [...path, name]);
    const meant = absent.find((known) => isMisspelt(name.toLowerCase(), known));
    return meant === undefined ? [] : [{ path: [...path, name], meant }];
  });
}
