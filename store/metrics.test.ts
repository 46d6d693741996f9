import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFiles } from './files.ts';
import { createMetricsLog } from './metrics.ts';
import { temporaryFolder } from './testing.ts';

const log = () => {
  const path = join(temporaryFolder(), 'metrics.jsonl');
  return { path, metrics: createMetricsLog({ path, files: createFiles() }) };
};

describe('metrics', () => {
  it('hold one row a stage and update, in order', async () => {
    const { metrics } = log();
    await metrics.append({ stage: 'train', update: 2, 'success/rate': 0.5 });
    await metrics.append({ stage: 'train', update: 1, 'success/rate': 0.25 });
    await metrics.append({ stage: 'sft', update: 1, loss: NaN });
    expect(await metrics.read()).toEqual([
      { stage: 'sft', update: 1, loss: null },
      { stage: 'train', update: 1, 'success/rate': 0.25 },
      { stage: 'train', update: 2, 'success/rate': 0.5 },
    ]);
  });

  it('take a repeat that differs in times only, and no other', async () => {
    const { path, metrics } = log();
    await metrics.append({ stage: 'train', update: 1, x: 1, 'time/learn': 3 });
    await metrics.append({ stage: 'train', update: 1, 'time/learn': 4, x: 1 });
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(2);
    await expect(metrics.append({ stage: 'train', update: 1, x: 2 })).rejects.toMatchObject({
      code: 'determinism_broken',
      message: expect.stringContaining('train 1 was done again and came out different (x)') as string,
    });
    await metrics.append({ stage: 'train', update: 1, x: 2 }, { conflict: 'keep' });
    expect((await metrics.read())[0]).toMatchObject({ x: 1, 'time/learn': 3 });
  });

  it('survive a line that was cut off', async () => {
    const { path, metrics } = log();
    await metrics.append({ stage: 'train', update: 1, x: 1 });
    appendFileSync(path, '{"stage":"train","upd');
    expect(await metrics.read()).toHaveLength(1);
    await metrics.append({ stage: 'train', update: 2, x: 2 });
    expect((await metrics.read()).map((row) => row.update)).toEqual([1, 2]);
  });

  it('appended all at once come out one a line', async () => {
    const { metrics } = log();
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => metrics.append({ stage: 'train', update: i % 10, x: i % 10 })),
    );
    expect(await metrics.read()).toHaveLength(10);
  });
});
