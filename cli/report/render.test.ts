import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runConfigSchema } from '../../configs/schema.ts';
import { createRun } from '../../store/index.ts';
import { temporaryFolder } from '../../store/testing.ts';
import { sampleRun } from '../sample-run.ts';
import { lineChart, movingMean, niceTicks, short } from './charts.ts';
import { writeReport } from './command.ts';
import { renderReport } from './render.ts';

describe('the report', () => {
  it('has results with intervals and the paired test, curves, episodes and NFP choices', async () => {
    const { run } = await sampleRun();
    const html = await renderReport(run);
    for (const title of [
      'Success',
      'Return by channel',
      'Explained variance',
      'Clip fraction',
      'Entropy',
      'Masked attempts',
    ]) {
      expect(html).toContain(`<b>${title}</b>`);
    }
    expect(html).toContain('McNemar p');
    expect(html).toContain('device_hung 1');
    expect(html).toContain('learn.clipLow');
    expect(html).toContain('u0040/t00/a0: turn on row one: success in 4 steps');
    expect(html).toContain(await run.digest());
  });

  it('stands alone: nothing is loaded and no script runs', async () => {
    const html = await renderReport((await sampleRun()).run);
    expect(html).not.toMatch(/<script|<link|<img|src=|href=|@import|url\(|https?:/);
    expect(html).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('of a run that has done nothing says so', async () => {
    const config = runConfigSchema.parse({ name: '<b>', seed: 1, suite: '<script>' });
    const html = await renderReport(await createRun(temporaryFolder(), 'new', config, { '<i>': '<u>' }));
    expect(html).toContain('No updates yet');
    expect(html).not.toMatch(/<script|<u>|<i>/);
  });

  it('is written with TensorBoard events, the same bytes twice', async () => {
    const { run } = await sampleRun({ updates: 3 });
    const path = await writeReport(run);
    const first = readFileSync(path, 'utf8');
    expect(await writeReport(run)).toBe(path);
    expect(readFileSync(path, 'utf8')).toBe(first);
    expect(existsSync(join(run.dir, 'tb', 'train', 'events.out.tfevents.0.tapwright'))).toBe(true);
  });
});

describe('charts', () => {
  it('have round ticks around the data', () => {
    expect(niceTicks(0, 1)).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(niceTicks(-15, 40)).toEqual([-20, 0, 20, 40]);
    for (const [low, high] of [
      [0.013, 0.0271],
      [-3, 1e6],
      [5, 5],
      [0, 0],
    ] as const) {
      const ticks = niceTicks(low, high);
      expect(ticks[0]).toBeLessThanOrEqual(low);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(high);
      expect(ticks.length).toBeLessThanOrEqual(7);
    }
  });

  it('leave gaps where there is no value, and are left out without any', () => {
    const options = { title: 't', note: '', x: [1, 2, 3], xName: 'update' };
    expect(lineChart({ ...options, series: [{ name: 'a', values: [1, null, 2] }] })).toMatch(/d="M[\d. ]+M[\d. ]+"/);
    expect(lineChart({ ...options, series: [{ name: 'a', values: [null, null, null] }] })).toBe('');
    expect(movingMean([1, null, 3, 5], 3)).toEqual([1, null, 4, 4]);
    expect([short(0.123456), short(1e-5), short(NaN), short(0)]).toEqual(['0.123', '1.0e-5', '-', '0']);
  });
});
