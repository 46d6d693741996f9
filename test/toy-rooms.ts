import { createHash } from 'node:crypto';
import { createDirectPorts } from '../activities/episode-ports.ts';
import { asActivity } from '../activities/heartbeat.ts';
import { createGrounderRouter } from '../agent/grounder.ts';
import type { Planner } from '../agent/planner.ts';
import { createRuleUser } from '../agent/user.ts';
import { createLeaseTable } from '../devices/leases.ts';
import type { EpisodeResult, Intent } from '../domain/index.ts';
import { createRuleJudge } from '../judges/rule.ts';
import { canonicalJson } from '../store/canonical-json.ts';
import { fakes } from './fake-run.ts';
import type { Fakes } from './fake-run.ts';
import { createToyBackend, toyTask } from './toy-phone.ts';

export interface ToyRooms {
  activities: Fakes;
  /** Hash of what was recorded, by episode. */
  records: Map<string, string>;
  /** Lets the leases' time go by. */
  pass: (ms: number) => void;
}

/** Toy phones that are driven step by step, and what is recorded of them. */
export function toyRooms(devices = 2): ToyRooms {
  let time = 0;
  const records = new Map<string, string>();
  const results: string[] = [];
  const intentOf = (app: string, wifi: boolean): Intent => {
    if (app === 'phone') return { kind: 'tap', target: 'settings' };
    return wifi ? { kind: 'task_complete', claim: 'done' } : { kind: 'tap', target: 'wifi' };
  };
  const planner: Planner = {
    plan: async (spec, _t, _task, screen) => {
      const on = screen.outline!.some((element) => element.label === 'wifi' && element.value === 'on');
      // Every other attempt gives up at once, so that records differ.
      const lazy: Intent = { kind: 'task_complete', claim: 'done' };
      const intent = spec.key.attempt % 2 === 1 ? lazy : intentOf(screen.app ?? '', on);
      const sample = { promptTokens: [1], responseTokens: [2], logprobs: [-1], hidden: null, allowed: null, text: '' };
      return { sample, plan: { reasoning: '', text: JSON.stringify(intent), intent, remaining: '' } };
    },
  };
  const ports = createDirectPorts({
    backend: createToyBackend(),
    leases: createLeaseTable({ devices, ttlMs: 1000, now: () => time }),
    planner,
    grounder: createGrounderRouter(),
    user: createRuleUser(),
    judge: createRuleJudge(),
    pixels: null,
  });
  const activities = fakes();
  activities.device = {
    ...activities.device,
    tasks: async ({ indices }) => indices.map((seed) => ({ ...toyTask('wifi'), id: `toy/wifi/${seed}`, seed })),
    openEpisode: asActivity(ports.open),
    stepEpisode: asActivity(ports.step),
    judgeStep: asActivity(ports.judgeStep),
    judgeOutcome: asActivity(ports.judgeOutcome),
    closeEpisode: asActivity(ports.close),
    recordEpisode: async (episode): Promise<EpisodeResult> => {
      const bytes = canonicalJson({ ...episode, key: { ...episode.key, run: '' } });
      const ref = createHash('sha256').update(bytes).digest('hex');
      records.set(episode.id, ref);
      const dense = { success: 0, fail: 0, overcomplete: 0 };
      for (const step of episode.steps) dense[step.dense] += 1;
      const { id, outcome, steps } = episode;
      return { kind: 'finished', id, ref, outcome, steps: steps.length, dense };
    },
  };
  const { learn } = activities.learn;
  activities.learn.learn = async (request) => {
    results.push(canonicalJson(request.results));
    return learn(request);
  };
  activities.learn.report = async () => ({
    path: '',
    digest: createHash('sha256').update(results.join('\n')).digest('hex'),
  });
  return { activities, records, pass: (ms) => void (time += ms) };
}
