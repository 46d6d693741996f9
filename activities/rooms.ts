import type { DeviceBackend } from '../devices/device.ts';
import type { RunConfig } from '../configs/schema.ts';
import type { TaskInstance } from '../domain/index.ts';
import type { getSuite } from '../suites/index.ts';
import type { Suite } from '../suites/suite.ts';
import { remember } from './remember.ts';

/** A suite that may keep tasks of its own for demonstrations (narrower than training's, so that RL has more to learn). */
export type TrainingSuite = Suite & { demonstration?(seed: number, index: number): TaskInstance };

/** Suites and backends by name, loaded when they are first asked for: a run on simulated phones opens no browser. */
export interface Rooms {
  /** A suite, its training draws mixed as a config says. Errors: `not_found`, with the names there are. */
  suite(id: string, config: RunConfig): Promise<TrainingSuite>;
  /** The one backend of a kind on this host; how many devices it has is said by the first config that asks. */
  backend(suite: Suite, config: RunConfig): Promise<DeviceBackend>;
  close(): Promise<void>;
}

export function createRooms(): Rooms {
  const open: DeviceBackend[] = [];
  let devices = 1;
  const backends = remember(async (kind: string) => {
    const backend = await loadBackend(kind, devices);
    open.push(backend);
    return backend;
  });
  const suites = remember(async (key: string) => {
    const [id, options] = JSON.parse(key) as [string, Parameters<typeof getSuite>[1]];
    return (await import('../suites/index.ts')).getSuite(id, options);
  });
  return {
    suite: (id, { learn, tasks }) =>
      suites(JSON.stringify([id, { wideSkinFraction: learn.curriculum.wideSkinFraction, ...tasks }])),
    backend: (suite, config) => {
      devices = config.devices.count;
      return backends(suite.backend);
    },
    close: async () => {
      await Promise.all(open.map((backend) => backend.close()));
    },
  };
}

async function loadBackend(kind: string, devices: number): Promise<DeviceBackend> {
  if (kind === 'sim') return (await import('../devices/sim/backend.ts')).createSimBackend();
  if (kind === 'vnc') {
    const { createVncBackend } = await import('../devices/vnc/backend.ts');
    const { createPhoneOracle } = await import('../suites/vnc/suite.ts');
    const log = (line: string): void => void process.stderr.write(`${line}\n`);
    return createVncBackend({ oracle: createPhoneOracle(), maxMachines: devices, log });
  }
  const { createBrowserBackend } = await import('../devices/browser/backend.ts');
  const { createMiniwobOracle } = await import('../suites/miniwob/suite.ts');
  const { miniwobPages } = await import('../suites/miniwob/pages.ts');
  return createBrowserBackend({ pages: miniwobPages(), oracle: createMiniwobOracle() });
}
