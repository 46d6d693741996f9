import { describe, expect, it } from 'vitest';
import { createDirectPorts } from '../activities/episode-ports.ts';
import { createLeaseTable } from '../devices/leases.ts';
import type { Episode, EpisodeSpec } from '../domain/index.ts';
import { TapwrightError } from '../domain/index.ts';
import { createRuleJudge } from '../judges/rule.ts';
import { createToyBackend, TOY_WORDS, toySpec, toyTask, type ToyOptions } from '../test/toy-phone.ts';
import { createGrounderRouter } from './grounder.ts';
import { runEpisode } from './loop.ts';
import { outcomeOfClaim } from './outcome.ts';
import { createPlanner, type SamplerPort } from './planner.ts';
import type { EpisodePorts } from './ports.ts';
import { createTokenizer } from './tokenizer.ts';
import { createRuleUser } from './user.ts';

const tokenizer = createTokenizer({ words: TOY_WORDS });
const plan = (step: string, reasoning = ''): string => `${reasoning} <do> ${step} <rest> <end>`;

/** An engine that says `script`, then its last line for ever. */
function world(script: string[], options: ToyOptions = {}) {
  let asked = 0;
  const prompts: string[] = [];
  const engine: SamplerPort = {
    sample({ prompt }) {
      prompts.push(tokenizer.decode(prompt, new Map()).join(' '));
      const tokens = tokenizer.encode((script[asked++] ?? script.at(-1)!).split(' ').filter(Boolean)).ids;
      return Promise.resolve({ tokens, logprobs: tokens.map(() => -1), hidden: null });
    },
  };
  const backend = createToyBackend(options);
  const leases = createLeaseTable({ devices: 1, ttlMs: 60_000 });
  const ports = createDirectPorts({
    backend,
    leases,
    planner: createPlanner({ engine, tokenizer, historySteps: 3 }),
    grounder: createGrounderRouter(),
    user: createRuleUser(),
    judge: createRuleJudge(),
    pixels: null,
  });
  const givenBack = (): void => {
    expect(leases.status()).toMatchObject({ free: 1, leased: 0 });
    expect(backend.inUse()).toBe(0);
  };
  return { ports, backend, prompts, givenBack };
}

async function run(script: string[], spec: EpisodeSpec): Promise<Episode> {
  const { ports, givenBack } = world(script);
  const episode = await runEpisode(spec, ports);
  givenBack();
  return episode;
}
const brief = (episode: Episode): unknown[] => [
  episode.outcome,
  episode.claim,
  episode.terminal,
  episode.steps.map((s) => `${s.dense} ${s.why}`),
];

const wifi = toySpec(toyTask('wifi'));

describe('outcomes (algorithms.md, 1)', () => {
  it('success: the goal holds and the agent says so', async () => {
    const script = [plan('tap settings', 'see settings'), plan('tap wifi', 'see wifi'), plan('done', 'all set')];
    const episode = await run(script, wifi);
    expect(brief(episode)).toEqual([
      'success',
      'done',
      'success',
      ['success progress', 'success goal_reached', 'success finished'],
    ]);
    expect(episode).toMatchObject({ id: 'u0001/t02/a3', key: wifi.key, policy: wifi.policy, task: wifi.task });
    expect(episode.steps.map((step) => step.t)).toEqual([0, 1, 2]);
    // Each step starts where the last one ended.
    expect(episode.steps[1]!.before).toEqual(episode.steps[0]!.after);
    expect(JSON.parse(JSON.stringify(episode))).toEqual(episode);
  });

  it('false completion: said too early', async () => {
    expect(brief(await run([plan('tap settings'), plan('done')], wifi))).toEqual([
      'false_completion',
      'done',
      'fail',
      ['success progress', 'fail false_completion'],
    ]);
  });

  it('false completion: `blocked` of a task that can be done, and `done` of one that cannot', async () => {
    expect(brief(await run([plan('blocked')], wifi)).slice(0, 3)).toEqual(['false_completion', 'blocked', 'fail']);
    const radar = toySpec(toyTask('radar'));
    const said = await run([plan('tap settings'), plan('done')], radar);
    expect(brief(said).slice(0, 3)).toEqual(['false_completion', 'done', 'fail']);
  });

  it('blocked complete: the evidence was seen; not before', async () => {
    const radar = toySpec(toyTask('radar'));
    expect(brief(await run([plan('tap settings'), plan('blocked', 'not here')], radar))).toEqual([
      'blocked_complete',
      'blocked',
      'blocked_complete',
      ['success goal_reached', 'success finished'],
    ]);
    expect((await run([plan('blocked')], radar)).outcome).toBe('false_completion');
  });

  it('step limit: whatever the screen shows', async () => {
    const spec = toySpec(toyTask('wifi', 3));
    const episode = await run([plan('tap settings'), plan('tap wifi'), plan('wait')], spec);
    expect(brief(episode)).toEqual([
      'step_limit',
      null,
      null,
      ['success progress', 'success goal_reached', 'overcomplete goal_already_held'],
    ]);
  });

  it('a claim at the last step still counts', async () => {
    const script = [plan('tap settings'), plan('tap wifi'), plan('done')];
    expect((await run(script, toySpec(toyTask('wifi', 3)))).outcome).toBe('success');
  });

  it('unparseable: after as many as the spec allows; each is a fail', async () => {
    expect(brief(await run(['tap tap'], wifi))).toEqual(['unparseable', null, null, ['fail unparseable']]);
    const patient = await run(['', plan('tap settings'), 'wifi'], { ...wifi, maxUnparseable: 2 });
    expect(brief(patient)).toEqual([
      'unparseable',
      null,
      null,
      ['fail unparseable', 'success progress', 'fail unparseable'],
    ]);
  });

  it('of every claim and verdict', () => {
    const table = (['done', 'blocked'] as const).map((claim) =>
      (['success', 'fail', 'blocked_complete'] as const).map((verdict) => outcomeOfClaim(claim, verdict)),
    );
    expect(table).toEqual([
      ['success', 'false_completion', 'false_completion'],
      ['false_completion', 'false_completion', 'blocked_complete'],
    ]);
  });
});

describe('steps', () => {
  it('tells the planner what came of each, and keeps the user’s answer', async () => {
    const script = [
      plan('ask name', 'need name'),
      plan('tap radar'),
      plan('tap settings'),
      plan('wait'),
      plan('type alice', 'write it'),
      plan('done'),
    ];
    const { ports, prompts, backend } = world(script);
    const episode = await runEpisode(toySpec(toyTask('message')), ports);
    expect(episode.outcome).toBe('success');
    expect(episode.steps.map((step) => step.answer)).toEqual(['alice', null, null, null, null, null]);
    expect(prompts.at(-1)).toContain('<said> alice <hist> tap settings <ok> wait <same> type alice <ok>');
    expect(prompts[2]).toContain('<hist> ask name <ok> tap radar <no>');
    // A refusal, a question and a claim touch no device.
    expect(backend.log.map((action) => action.kind)).toEqual(['tap', 'wait', 'text_entry']);
    expect(episode.steps[1]).toMatchObject({ grounding: { kind: 'refused' }, receipt: null, dense: 'fail' });
  });

  it('judges false reasoning and repeats as fails', async () => {
    const script = [plan('tap settings', 'see radar'), plan('wait'), plan('wait'), plan('tap wifi'), plan('done')];
    expect((await run(script, wifi)).steps.map((step) => step.why)).toEqual([
      'hallucinated_reasoning',
      'no_progress',
      'repeated_failure',
      'goal_reached',
      'finished',
    ]);
  });

  it('uses the goal that only the device knew', async () => {
    const { ports, prompts } = world([plan('done')], { instruction: 'write the name' });
    const episode = await runEpisode(wifi, ports);
    expect(episode.task.goal).toBe('write the name');
    expect(prompts[0]).toContain('<task> write the name <hist>');
  });
});

describe('judging beside the next step', () => {
  const script = [
    plan('tap settings', 'see radar'),
    plan('home'),
    plan('tap settings'),
    plan('tap wifi'),
    plan('done'),
  ];
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  /** Judges that answer only after `late` turns; steps that take `slow`. Notes the order of what ends. */
  async function timed(late: number, slow: number): Promise<{ bytes: string; order: string[] }> {
    const { ports } = world(script);
    const order: string[] = [];
    const after = async <T>(turns: number, name: string, work: () => Promise<T>): Promise<T> => {
      for (let i = 0; i < turns; i++) await turn();
      const value = await work();
      order.push(name);
      return value;
    };
    const slowPorts: EpisodePorts = {
      ...ports,
      step: (request) => after(slow, `step ${request.t}`, () => ports.step(request)),
      judgeStep: (spec, evidence, memory) =>
        after(late, `judge ${evidence.t}`, () => ports.judgeStep(spec, evidence, memory)),
      judgeOutcome: (spec, evidence) => after(0, 'outcome', () => ports.judgeOutcome(spec, evidence)),
    };
    return { bytes: JSON.stringify(await runEpisode(wifi, slowPorts)), order };
  }

  it('gives the same record whichever is first, and the terminal judge is last', async () => {
    const [prompt, tardy] = [await timed(0, 5), await timed(20, 0)];
    expect(prompt.bytes).toBe(tardy.bytes);
    expect(prompt.order.indexOf('judge 0')).toBeLessThan(prompt.order.indexOf('step 1'));
    expect(tardy.order.indexOf('step 4')).toBeLessThan(tardy.order.indexOf('judge 0'));
    for (const { order } of [prompt, tardy]) {
      expect(order.filter((name) => name.startsWith('judge'))).toEqual([0, 1, 2, 3, 4].map((t) => `judge ${t}`));
      expect(order.at(-1)).toBe('outcome');
    }
  });

  it('hands what was judged from step to step', async () => {
    const { ports } = world(script);
    const best: (number | null)[] = [];
    await runEpisode(wifi, {
      ...ports,
      judgeStep: (spec, evidence, memory) => {
        best.push(memory.best);
        return ports.judgeStep(spec, evidence, memory);
      },
    });
    expect(best).toEqual([null, 1, 1, 1, 0]);
  });

  it('shows the terminal judge the last three screens and all verdicts', async () => {
    const { ports } = world(script);
    let seen: Parameters<EpisodePorts['judgeOutcome']>[1] | null = null;
    const episode = await runEpisode(wifi, {
      ...ports,
      judgeOutcome: (spec, evidence) => ports.judgeOutcome(spec, (seen = evidence)),
    });
    expect(seen!.screens).toEqual(episode.steps.slice(-3).map((step) => step.after));
    expect(seen!.verdicts).toEqual(episode.steps.map((step) => step.dense));
    expect(seen!.actions).toEqual(['tap settings', 'home', 'tap settings', 'tap wifi', 'done']);
  });
});

describe('failures', () => {
  const script = [plan('tap settings'), plan('tap wifi'), plan('done')];

  it.each(['step', 'judgeStep', 'judgeOutcome'] as const)(
    'of %s end the attempt and give the device back',
    async (port) => {
      const { ports, givenBack } = world(script);
      const fail = (): Promise<never> => Promise.reject(new TapwrightError('judge_unavailable', `no ${port}`));
      await expect(runEpisode(wifi, { ...ports, [port]: fail })).rejects.toThrow(`no ${port}`);
      givenBack();
    },
  );

  it('of open leave nothing to close', async () => {
    const { ports, givenBack } = world(script, { staleSnapshot: true });
    let closed = 0;
    const counting = { ...ports, close: () => Promise.resolve(void closed++) };
    await expect(runEpisode(wifi, counting)).rejects.toMatchObject({ code: 'rollback_unverified' });
    expect(closed).toBe(0);
    givenBack();
  });

  it('keep their own reason when the device cannot be given back either', async () => {
    const { ports } = world(script);
    const step = (): Promise<never> => Promise.reject(new TapwrightError('device_hung', 'hung'));
    const close = (): Promise<never> => Promise.reject(new TapwrightError('connection_dropped', 'gone'));
    await expect(runEpisode(wifi, { ...ports, step, close })).rejects.toMatchObject({ code: 'device_hung' });
  });

  it('of a judge at an early step are not lost behind a later one', async () => {
    const { ports } = world(script);
    const judgeStep: EpisodePorts['judgeStep'] = (_, { t }) =>
      Promise.reject(new TapwrightError('judge_unavailable', `step ${t}`));
    await expect(runEpisode(wifi, { ...ports, judgeStep })).rejects.toThrow('step 0');
  });
});
