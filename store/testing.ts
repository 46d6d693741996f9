import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checkpoint } from '../domain/checkpoint.ts';
import type { Episode, JudgedStep } from '../domain/episode.ts';
import type { Screen } from '../domain/screen.ts';

/** Values for tests of what reads and writes runs. */

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'tapwright-store-'));
}

function screen(frame: number, elements = 10): Screen {
  return {
    png: null,
    width: 360,
    height: 720,
    scale: 1,
    space: 'pixel',
    frame,
    hash: frame.toString(16).padStart(16, '0'),
    degenerate: false,
    app: 'settings',
    outline: Array.from({ length: elements }, (_, i) => ({
      role: 'row' as const,
      label: `row ${i}`,
      value: 'off',
      box: { x: 0, y: 60 * i, width: 360, height: 56 },
    })),
  };
}

export function sampleStep(t: number): JudgedStep {
  const truth = (distance: number): JudgedStep['truthBefore'] => ({
    key: `state-${t}`,
    goalHolds: distance === 0,
    distance,
    needsFact: null,
  });
  return {
    t,
    sample: {
      promptTokens: Array.from({ length: 60 }, (_, i) => (i * 7 + t) % 300),
      responseTokens: [5, 6, 7, 8, 2],
      logprobs: [-0.1, -0.25, -1.5, -0.0625, -0.5],
      hidden: Buffer.from(new Float32Array(64).fill(t / 7).buffer).toString('base64'),
      allowed: { labels: [[3, 4], [5]], words: [6] },
      text: 'tap row 1',
    },
    plan: { reasoning: 'row is off', text: 'tap row 1', intent: { kind: 'tap', target: 'row 1' }, remaining: 'done' },
    grounding: { kind: 'action', action: { kind: 'tap', at: { x: 180, y: 88 } }, grounder: 'small' },
    receipt: { verified: true, strategy: 'tap' },
    answer: null,
    before: screen(t),
    truthBefore: truth(2),
    after: screen(t + 1),
    truthAfter: truth(1),
    dense: t % 3 === 2 ? 'fail' : 'success',
    why: t % 3 === 2 ? 'no_progress' : 'progress',
  };
}

export function sampleEpisode(update: number, draw: number, attempt: number, steps = 12): Episode {
  return {
    id: `u${String(update).padStart(4, '0')}/t${String(draw).padStart(2, '0')}/a${attempt}`,
    key: { run: 'r', phase: 'train', update, draw, attempt },
    task: {
      id: `sim-phones/switch/${draw}`,
      suite: 'sim-phones',
      template: 'switch',
      split: 'train',
      goal: 'turn on row one',
      params: { row: 'row 1' },
      apps: ['settings'],
      category: 'toggle',
      tags: [],
      snapshot: '{}',
      stepBudget: 30,
      optimalSteps: 3,
      userFacts: {},
      possible: true,
      seed: draw,
    },
    policy: 'tinker://model/sampler_weights/u0001',
    steps: Array.from({ length: steps }, (_, t) => sampleStep(t)),
    claim: 'done',
    terminal: 'success',
    outcome: 'success',
  };
}

export function sampleManifest(stage: Checkpoint['stage'], k: number): Omit<Checkpoint, 'files'> {
  return {
    version: 1,
    run: 'r',
    stage,
    sftChunks: stage === 'sft' ? k : 8,
    warmup: stage === 'warmup' ? k : stage === 'train' ? 15 : 0,
    update: stage === 'train' ? k : 0,
    weights: `tinker://model/weights/${stage}-${k}`,
    sampler: `tinker://model/sampler_weights/${stage}-${k}`,
    config: 'c'.repeat(64),
    producer: { node: process.versions.node },
  };
}
