import type { z } from 'zod';

/** Walks of the schema and of plain values, for the loader's errors. */

export type Plain = Record<string, unknown>;

export function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Inner = { def?: { innerType?: z.ZodType }; shape?: Record<string, z.ZodType> };

function shapeOf(schema: z.ZodType): Record<string, z.ZodType> | null {
  let inner = schema as unknown as Inner;
  while (inner.shape === undefined && inner.def?.innerType !== undefined)
    inner = inner.def.innerType as unknown as Inner;
  return inner.shape ?? null;
}

/** Keys that may stand in the section at `path`; empty when it is no section. */
export function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let shape = shapeOf(schema);
  for (const part of path) {
    const next: z.ZodType | undefined = shape?.[String(part)];
    shape = next === undefined ? null : shapeOf(next);
  }
  return Object.keys(shape ?? {});
}

/** Every key of the schema, as a dotted path. */
export function allKeys(schema: z.ZodType, prefix = ''): string[] {
  return Object.entries(shapeOf(schema) ?? {}).flatMap(([key, inner]) => {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    return [path, ...allKeys(inner, path)];
  });
}

/**
 * The key that was probably meant by `wrong` in the section `path`: the closest one there, else the same name in another
 * section. Null when nothing is close.
 */
export function closestKey(schema: z.ZodType, path: readonly PropertyKey[], wrong: string): string | null {
  const here = path.map(String).join('.');
  const full = (key: string): string => (here === '' ? key : `${here}.${key}`);
  const same = (key: string): string => key.toLowerCase().replace(/[^a-z0-9]/g, '');
  const ranked = knownKeys(schema, path)
    .map((key) => ({ key, distance: same(key) === same(wrong) ? 0 : editDistance(key, wrong) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best !== undefined && best.distance <= Math.max(2, Math.floor(wrong.length / 3))) return full(best.key);
  return allKeys(schema).find((key) => same(key.split('.').at(-1)!) === same(wrong)) ?? null;
}

/** Fewest insertions, deletions and substitutions (Levenshtein). */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substitute));
    }
    row = next;
  }
  return row[b.length]!;
}
