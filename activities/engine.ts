import { join } from 'node:path';
import { decodeConstraint } from '../agent/constraint.ts';
import type { SamplerPort } from '../agent/planner.ts';
import type { Tokenizer } from '../agent/tokenizer.ts';
import { hasCritic } from '../configs/schema.ts';
import type { RunConfig } from '../configs/schema.ts';
import { TapwrightError } from '../domain/errors.ts';
import { createEngineClient } from '../engine/client.ts';
import type { ClientDatum, EngineClient } from '../engine/client.ts';
import { probeEngine } from '../engine/probe.ts';
import type { PlainDatum } from './datums.ts';
import type { SavedPolicy, TrainingEngine } from './policy-trainer.ts';

/** Where a run's engine is: the one its host was started with, or the one its config names. */
export interface EnginePlace {
  home: string;
  engineUrl: string | null;
}

function connect(place: EnginePlace, config: RunConfig, tokenizer: Tokenizer): EngineClient {
  const url = config.engine.url === 'embedded' ? place.engineUrl : config.engine.url;
  if (url === null) {
    throw new TapwrightError(
      'invalid_config',
      'this process does not know where the embedded engine is: start it by `tapwright run`, or set TAPWRIGHT_ENGINE_URL',
    );
  }
  return createEngineClient({
    url,
    token: process.env['TAPWRIGHT_TOKEN'] ?? null,
    requestTimeoutMs: config.engine.requestTimeoutMs,
    vocabulary: tokenizer.size,
  });
}

/** The engine as a planner sees it. */
export function createSampler(
  place: EnginePlace,
  config: RunConfig,
  tokenizer: Tokenizer,
): SamplerPort & { close(): Promise<void> } {
  return connect(place, config, tokenizer);
}

/** The engine as the learner sees it. */
export interface LearnerEngine {
  training: TrainingEngine;
  /** Probes it with a known row and says what the run's header will say of it. Errors: `engine_refused`. */
  probe(): Promise<Record<string, unknown>>;
  /** Versions of what produces checkpoints. */
  producer(): Promise<Record<string, string>>;
  /** Files behind a saved policy, absolute; none when the engine keeps them on another machine. */
  filesOf(saved: SavedPolicy): string[];
  close(): Promise<void>;
}

export function createTrainingEngine(place: EnginePlace, config: RunConfig, tokenizer: Tokenizer): LearnerEngine {
  const client = connect(place, config, tokenizer);
  const baseModel = sized(config, tokenizer);
  let last: string | null = null;
  const datum = ({ allowed, ...row }: PlainDatum): ClientDatum => ({
    ...row,
    constraint: decodeConstraint(tokenizer, config.agent.decodeMask, allowed),
  });
  const training: TrainingEngine = {
    createModel: async () => {
      // One live model: the one before it may go.
      if (last !== null) client.release(last);
      last = await client.createModel({ baseModel, seed: config.seed });
      return last;
    },
    loadWeights: (model, path, optimizer) => client.loadWeights(model, path, optimizer),
    forwardBackward: (model, data, loss, settings) => client.forwardBackward(model, data.map(datum), loss, settings),
    optimStep: (model, adam) => client.optimStep(model, adam),
    saveWeights: (model, name) => client.saveWeights(model, name),
    saveSampler: (model, name) => client.saveForSampler(model, name),
  };
  return {
    training,
    probe: async () => {
      const report = await probeEngine({
        client,
        baseModel,
        hiddenStates: hasCritic(config),
        constraint: config.agent.decodeMask !== 'none',
      });
      return { ...report.capabilities, reduction: report.reduction, baseModel, tokenizer: tokenizer.version };
    },
    producer: async () => {
      const { backend } = (await client.capabilities()) as { backend?: unknown };
      return { node: process.version, backend: typeof backend === 'string' ? backend : 'unknown', baseModel };
    },
    filesOf: ({ weights, sampler }) =>
      config.engine.url === 'embedded'
        ? [weights, sampler].map((path) => join(place.home, 'engine', `${path.slice('tinker://'.length)}.safetensors`))
        : [],
    close: () => client.close(),
  };
}

/** The embedded engine's model name with the tokenizer's vocabulary in it, where the config leaves it open. */
function sized(config: RunConfig, tokenizer: Tokenizer): string {
  const { url, baseModel } = config.engine;
  if (url !== 'embedded' || /-v\d+/.test(baseModel)) return baseModel;
  const parts = /^(.*?)(-copy)?$/.exec(baseModel)!;
  return `${parts[1]!}-v${tokenizer.size}${parts[2] ?? ''}`;
}
