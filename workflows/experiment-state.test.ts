import { describe, expect, it } from 'vitest';
import type { RunConfig } from '../configs/schema.ts';
import { ExperimentState } from './experiment-state.ts';
import type { ExperimentUnit } from './types.ts';

const unit = (run: string, from: string | null = 'sft'): ExperimentUnit => ({ run, from, config: {} as RunConfig });
const sft = unit('sft', null);

describe('the runs of an experiment', () => {
  it('begin in order, each after the one whose policy it begins with', () => {
    const state = new ExperimentState([sft, unit('a'), unit('b')]);
    expect(state.take()?.run).toBe('sft');
    expect([state.take(), state.ready, state.over]).toEqual([null, false, false]);
    state.done('sft');
    expect([state.take()?.run, state.take()?.run, state.take()]).toEqual(['a', 'b', null]);
    state.done('a');
    state.done('b');
    expect(state.over).toBe(true);
  });

  it('do not begin when what they begin with has failed; the others do', () => {
    const state = new ExperimentState([sft, unit('a'), unit('other', null)]);
    state.take();
    state.failed('sft', 'disk_full: no space');
    expect(state.take()?.run).toBe('other');
    state.done('other');
    expect(state.view('x').units).toEqual([
      { run: 'sft', state: 'failed', why: 'disk_full: no space' },
      { run: 'a', state: 'failed', why: 'the run sft that it begins with has failed' },
      { run: 'other', state: 'done' },
    ]);
    expect(state.over).toBe(true);
  });

  it('can be asked for anew: new ones come, those that wait and are not wanted go', () => {
    const state = new ExperimentState([sft, unit('a'), unit('b')]);
    state.take();
    state.want([sft, unit('a'), unit('c')]);
    expect(state.view('x').units.map(({ run }) => run)).toEqual(['sft', 'a', 'c']);
    // What was made before need not be asked for again.
    const later = new ExperimentState([unit('d')]);
    expect(later.take()?.run).toBe('d');
  });

  it('stand after a continue-as-new as before', () => {
    const state = new ExperimentState([sft, unit('a'), unit('b')]);
    state.take();
    state.done('sft');
    state.take();
    state.failed('a', 'why');
    const { units, states } = JSON.parse(JSON.stringify(state.carried())) as ReturnType<typeof state.carried>;
    const next = new ExperimentState(units, states);
    expect(next.view('x')).toEqual(state.view('x'));
    expect(next.take()?.run).toBe('b');
  });
});
