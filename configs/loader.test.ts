import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDocument, stringify } from 'yaml';
import { readFileSync } from 'node:fs';
import { loadConfig } from './loader.ts';
import { nfpChoices } from './nfp.ts';
import { allKeys, closestKey, editDistance } from './paths.ts';
import { runConfigSchema } from './schema.ts';

const suites = [
  { id: 'sim-phones', splits: ['train', 'validation', 'heldout-params', 'heldout-skin'] },
  { id: 'miniwob', splits: ['train', 'validation', 'heldout-params', 'heldout-tasks'] },
  { id: 'vnc-phones', splits: ['train', 'validation', 'heldout-params', 'heldout-skin'] },
];
const folder = mkdtempSync(join(tmpdir(), 'tapwright-config-'));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const good = 'name: a\nseed: 1\nsuite: sim-phones\n';

/** The message that a config is refused with. */
const refusal = (text: string, sets: string[] = []): string => {
  try {
    loadConfig({ path: file('bad.yaml', text), sets, suites });
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_config' });
    return (error as Error).message.replaceAll(`${folder}/`, '');
  }
  throw new Error('it was accepted');
};

describe('the presets', () => {
  const presets = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.yaml'));
  it.each(presets)('%s loads, with a seed of its own', (name) => {
    const path = join(import.meta.dirname, name);
    expect(loadConfig({ path, suites }).seed).toBeTypeOf('number');
    expect(parseDocument(readFileSync(path, 'utf8')).has('seed')).toBe(true);
  });

  it.each(['paper', 'paper-ppo', 'paper-gigppo'])('%s is the published scale', (name) => {
    const { learn, rollout, evaluation } = loadConfig({ path: join(import.meta.dirname, `${name}.yaml`), suites });
    expect([learn.tasks, learn.attempts, learn.warmup, learn.updates, rollout.maxSteps]).toEqual([16, 8, 15, 336, 30]);
    expect(evaluation.instances).toMatchObject({ 'heldout-params': 400, 'heldout-skin': 200, train: 200 });
  });

  it('of a comparison share their warm start, and differ in what they compare', () => {
    const load = (name: string) =>
      loadConfig({ path: join(import.meta.dirname, `${name}.yaml`), sets: ['scale=quick'], suites });
    const base = load('comparison');
    for (const name of [
      'paper-ppo',
      'terminal-only',
      'grpo',
      'rloo',
      'dapo',
      'gigpo',
      'grpo-cautionary',
      'grounder-small',
    ]) {
      const { sft, engine, tasks, agent, rollout, evaluation, learn } = load(name);
      expect({ sft, engine, tasks, rollout, evaluation }).toEqual({
        ...{ sft: base.sft, engine: base.engine, tasks: base.tasks },
        ...{ rollout: base.rollout, evaluation: base.evaluation },
      });
      expect({ ...agent, grounder: 'hybrid' }).toEqual(base.agent);
      expect([learn.learningRate, learn.minibatch, learn.beta2]).toEqual([4e-4, 256, 0.99]);
    }
    expect(load('grounder-small').learn.updates).toBe(0);
  });
});

describe('the scale of a config', () => {
  const learnOf = (text: string, sets: string[] = []) =>
    loadConfig({ path: file('scaled.yaml', `${good}${text}`), sets, suites }).learn;
  it('says what the config does not, and nothing when it has none', () => {
    expect(learnOf('scale: paper\n')).toMatchObject({ updates: 336, warmup: 15, tasks: 16, attempts: 8 });
    expect(learnOf('scale: paper\nlearn: {updates: 7}\n')).toMatchObject({ updates: 7, warmup: 15 });
    expect(learnOf('scale: paper\n', ['scale=quick'])).toMatchObject({ updates: 24, warmup: 4 });
    expect(learnOf('scale: short\n', ['learn.updates=9'])).toMatchObject({ updates: 9 });
    expect(learnOf('scale: short\nlearn: {estimator: rloo}\n')).toMatchObject({ updates: 100, warmup: 0 });
    expect(loadConfig({ path: file('plain.yaml', good), suites })).toEqual(
      runConfigSchema.parse({ name: 'a', seed: 1, suite: 'sim-phones' }),
    );
    expect(refusal(`${good}scale: huge\n`)).toMatch(/^bad.yaml:4:1: scale: expected one of "quick"\|"short"\|"paper"/);
  });
  it('can be made in part, and a resolved config means the same again', () => {
    expect(learnOf('scale: paper\nlearn: {fraction: 0.5}\n').updates).toBe(168);
    const half = loadConfig({ path: join(import.meta.dirname, 'paper-gigppo-half.yaml'), suites });
    expect([half.learn.updates, half.learn.estimator, half.evaluation.every]).toEqual([168, 'gigppo', 84]);
    expect(loadConfig({ path: file('again.yaml', stringify(half)), suites })).toEqual(half);
    expect(refusal(`${good}learn: {fraction: 0.5}\n`)).toMatch(/learn.fraction: it is a fraction of the updates of a/);
  });
  it('gives a suite only the splits that it has', () => {
    const path = file('web.yaml', 'name: a\nseed: 1\nsuite: miniwob\nscale: quick\n');
    expect(loadConfig({ path, suites }).evaluation.instances).toEqual({
      validation: 20,
      'heldout-params': 60,
      train: 30,
    });
  });
});

describe('a config', () => {
  it('has defaults, takes from the file it extends, and is overruled by --set in order', () => {
    file('base.yaml', `${good}learn:\n  updates: 7\n  tasks: 3\n`);
    const path = file('child.yaml', 'extends: base.yaml\nname: b\nlearn:\n  tasks: 4\n');
    const config = loadConfig({ path, sets: ['learn.attempts=2', 'learn.attempts=5', 'critic.hidden=[8, 8]'], suites });
    expect(config).toMatchObject({ name: 'b', seed: 1, learn: { updates: 7, tasks: 4, attempts: 5, epochs: 1 } });
    expect(config.critic.hidden).toEqual([8, 8]);
  });

  it('types --set values as YAML does', () => {
    const path = file('sets.yaml', good);
    const config = loadConfig({ path, sets: ['agent.decodeMask=none', 'learn.dualClip=null', 'name=x=y', 'seed=7'] });
    expect(config).toMatchObject({ agent: { decodeMask: 'none' }, learn: { dualClip: null }, name: 'x=y', seed: 7 });
  });
});

describe('a bad config says where and what', () => {
  it('unknown keys, with the one that was meant', () => {
    expect(refusal(`${good}learn:\n  attempt: 8\n`)).toBe(
      'bad.yaml:5:3: learn.attempt: unknown key; did you mean learn.attempts?',
    );
    expect(refusal(`${good}attempts: 8\n`)).toBe('bad.yaml:4:1: attempts: unknown key; did you mean learn.attempts?');
    expect(refusal(`${good}judge: {xyzzyplugh: 1}\n`)).toContain('unknown key; known keys: dense, terminal');
  });

  it('a fault that nothing injects, a parcel too large for the devices, a secret in an address', () => {
    expect(refusal(`${good}devices:\n  faults: {hangg: 1}\n`)).toContain(
      'devices.faults.hangg: there is no such fault; there are crash, hang, frozen_frame',
    );
    expect(refusal(good, ['devices.count=4', 'rollout.parcel=8'])).toContain(
      'rollout.parcel: expected at most devices.count (4)',
    );
    expect(refusal(good, ['engine.url=http://user:secret@host:1'])).toContain('expected no user or password in it');
  });

  it('values out of range or of another type', () => {
    expect(refusal(`${good}learn:\n  attempts: -8\n`)).toBe(
      'bad.yaml:5:3: learn.attempts: expected number to be >=1, got -8',
    );
    expect(refusal(`${good}learn:\n  tasks: many\n`)).toBe('bad.yaml:5:3: learn.tasks: expected number, got "many"');
    expect(refusal(`${good}learn: 3\n`)).toBe('bad.yaml:4:1: learn: expected object, got 3');
    expect(refusal(`${good}learn:\n  estimator: a2c\n`)).toMatch(/expected one of "ppo"\|.*"dapo", got "a2c"/);
    expect(refusal(`${good}critic:\n  hidden: [8, 0]\n`)).toMatch(/^bad.yaml:5:3: critic.hidden.1: .* got 0$/);
  });

  it('missing keys and a missing suite', () => {
    expect(refusal('name: a\nseed: 1\n')).toBe('bad.yaml:1:1: suite: expected string, it is missing');
    expect(refusal('name: a\nseed: 1\nsuite: atari\n')).toBe(
      'bad.yaml:3:1: suite: there is no suite "atari"; known suites: sim-phones, miniwob, vnc-phones',
    );
  });

  it('several problems at once, a line each', () => {
    expect(refusal(`${good}learn:\n  tasks: 0\n  epochs: 0\n`).split('\n')).toHaveLength(2);
  });

  it('--set by name', () => {
    expect(refusal(good, ['learn.attempts=-1'])).toBe(
      '--set learn.attempts=-1: learn.attempts: expected number to be >=1, got -1',
    );
    expect(refusal(good, ['learn.atempts=1'])).toMatch(/^--set learn.atempts=1: .*did you mean learn.attempts/);
    expect(refusal(good, ['learn'])).toMatch(/^--set learn: expected key=value/);
    expect(refusal(good, ['name=[1'])).toMatch(/^--set name=\[1: the value is no YAML/);
  });

  it('YAML that is none, with its place', () => {
    expect(refusal('name: "a\nseed: 1\n')).toMatch(/^bad.yaml:\d+:\d+: /);
    expect(refusal(`${good}seed: 2\n`)).toMatch(/^bad.yaml:4:1: Map keys must be unique/);
    expect(refusal('')).toBe('bad.yaml:1:1: a config is a map of keys, like "seed: 1"');
    expect(() => loadConfig({ path: join(folder, 'none.yaml') })).toThrow(
      /none.yaml: the config cannot be read: there is no such/,
    );
  });

  it('files that extend themselves or nothing', () => {
    expect(refusal('extends: bad.yaml\n')).toMatch(/extends itself: .*bad.yaml -> .*bad.yaml/);
    expect(refusal('extends: gone.yaml\n')).toMatch(/gone.yaml: the config cannot be read \(extended by .*bad.yaml\)/);
    file('broken.yaml', `${good}learn:\n  tasks: 0\n`);
    expect(refusal('extends: broken.yaml\n')).toMatch(/^broken.yaml:5:3: learn.tasks/);
  });

  it('keys that do not fit together', () => {
    expect(refusal(`${good}learn: {updates: 0, warmup: 0}\nsft: {steps: 0}\n`)).toMatch(
      /learn.updates: there is nothing/,
    );
    expect(refusal(`${good}learn: {estimator: gigppo, attempts: 1}\n`)).toMatch(/learn.attempts: gigppo compares/);
    expect(refusal(`${good}learn: {estimator: rloo}\n`)).toMatch(/learn.warmup: rloo has no critic/);
    expect(refusal('name: a\nseed: 1\nsuite: miniwob\n')).toMatch(
      /evaluation.instances.heldout-skin: miniwob has no such/,
    );
    expect(refusal(`${good}rollout: {deadlineMs: 10}\n`)).toMatch(/rollout.judgeTimeoutMs: expected at most/);
  });
});

describe('helpers', () => {
  it('every NFP key is a key of the schema', () => {
    const keys = allKeys(runConfigSchema);
    const config = runConfigSchema.parse({ name: 'a', seed: 1, suite: 'sim-phones' });
    for (const { key, value } of nfpChoices(config)) {
      expect(keys).toContain(key);
      expect(value).not.toBeUndefined();
    }
  });

  it('edit distance and closest key', () => {
    expect(editDistance('kitten', 'sitting')).toBe(3);
    expect(closestKey(runConfigSchema, ['rewards', 'dense'], 'sucess')).toBe('rewards.dense.success');
    expect(closestKey(runConfigSchema, [], 'qqqqqqqqq')).toBeNull();
  });
});
