import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDirectPorts } from '../activities/episode-ports.ts';
import { createGrounderRouter } from '../agent/grounder.ts';
import { runEpisode } from '../agent/loop.ts';
import type { Planner } from '../agent/planner.ts';
import type { EpisodePorts, StepRequest } from '../agent/ports.ts';
import { createRuleUser } from '../agent/user.ts';
import type { DeviceBackend, DeviceHandle } from '../devices/device.ts';
import { openLeaseTable } from '../devices/leases.ts';
import { asTapwrightError } from '../domain/errors.ts';
import { createRuleJudge } from '../judges/rule.ts';
import { createToyBackend, toySpec, toyTask } from './toy-phone.ts';

/**
 * A device host for the test of the step ledger: one attempt on a phone whose every rollback and action goes to
 * `<home>/device.log` first. `crashing-host.ts <home> <infraTry> <n>` kills itself, by SIGKILL, when the device has
 * performed its n-th action (0: never). A host that comes after another tries to go on with that one's last step first.
 */
const [home, infraTry, dieAt] = [process.argv[2]!, Number(process.argv[3]), Number(process.argv[4])];
const note = (event: object): void => appendFileSync(join(home, 'device.log'), `${JSON.stringify(event)}\n`);

let current: DeviceHandle | null = null;
let performed = 0;
const toy = createToyBackend();
const backend: DeviceBackend = {
  ...toy,
  async open(options) {
    const handle = await toy.open(options);
    return (current = {
      ...handle,
      rollback: () => (note({ event: 'rollback' }), handle.rollback()),
      perform: async (action) => {
        const receipt = await handle.perform(action);
        note({ event: 'action', kind: action.kind });
        if (++performed === dieAt) process.kill(process.pid, 'SIGKILL');
        return receipt;
      },
    });
  },
};
const planner: Planner = {
  async plan() {
    const { intent, reasoning, remaining } = (await current!.expert())!;
    const sample = { promptTokens: [], responseTokens: [], logprobs: [], hidden: null, allowed: null, text: '' };
    return { sample, plan: { reasoning, text: '', intent, remaining } };
  },
};
const leases = await openLeaseTable(join(home, 'devices', 'host.journal'), { devices: 1, ttlMs: 60_000 });
note({ event: 'host', doubtful: leases.steps.doubtful().map(({ t, token, action }) => ({ t, token, action })) });
const ports = createDirectPorts({
  backend,
  leases,
  planner,
  grounder: createGrounderRouter(),
  user: createRuleUser(),
  judge: createRuleJudge(),
  pixels: null,
});

const earlier = process.argv[5];
if (earlier !== undefined) {
  const request = JSON.parse(earlier) as StepRequest;
  await ports.step(request).catch((error: unknown) => note({ event: 'refused', code: asTapwrightError(error).code }));
}
const watched: EpisodePorts = {
  ...ports,
  step: (request) => (note({ event: 'step', request }), ports.step(request)),
};
const episode = await runEpisode(toySpec(toyTask('wifi'), { infraTry }), watched);
note({ event: 'end', outcome: episode.outcome });
leases.close();
