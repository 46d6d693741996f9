import { hashSeed } from '../../rl/random.ts';
import type { Params, Template } from './template.ts';

type Pool = Record<'train' | 'validation' | 'heldout-params', Params[]>;

const cache = new WeakMap<Template, Pool>();

function product(params: Template['params']): Params[] {
  return Object.entries(params).reduce<Params[]>(
    (rows, [key, values]) => rows.flatMap((row) => values.map((value) => ({ ...row, [key]: value }))),
    [{}],
  );
}

/**
 * A template's parameter combinations by split: a fifth is never trained on, a tenth is for tuning. By a hash, so the
 * split is the same for every seed. Two states of a switch: every second switch keeps one of them out of training.
 */
export function combinations(template: Template): Pool {
  const known = cache.get(template);
  if (known) return known;
  const all = product(template.params).filter((params) =>
    (template.differ ?? []).every(([a, b]) => params[a] !== params[b]),
  );
  const order = all
    .map((params) => ({ params, h: hashSeed('split', template.name, ...Object.values(params)) }))
    .sort((a, b) => a.h - b.h)
    .map(({ params }) => params);
  let [held, tune] = [Math.floor(all.length / 5), Math.floor(all.length / 10)];
  if (all.length === 2) {
    const turn = hashSeed('pair', template.name) % 4;
    [held, tune] = [turn < 2 ? 1 : 0, turn === 2 ? 1 : 0];
  } else if (all.length >= 6) tune = Math.max(1, tune);
  const pool = {
    'heldout-params': order.slice(0, held),
    validation: order.slice(held, held + tune),
    train: order.slice(held + tune),
  };
  cache.set(template, pool);
  return pool;
}
