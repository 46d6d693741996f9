import type { DeviceBackend } from '../devices/device.ts';
import { TapwrightError } from '../domain/errors.ts';
import type { Suite } from '../suites/suite.ts';
import { remember } from './remember.ts';

/** Suites and backends by name, loaded when they are first asked for: a run on simulated phones opens no browser. */
export const SUITES = ['sim-phones', 'miniwob'] as const;

export interface Rooms {
  /** Errors: `not_found`, with the names there are. */
  suite(id: string): Promise<Suite>;
  /** The one backend of a kind on this host. */
  backend(suite: Suite): Promise<DeviceBackend>;
  close(): Promise<void>;
}

export function createRooms(): Rooms {
  const open: DeviceBackend[] = [];
  const backends = remember(async (kind: string) => {
    const backend = await loadBackend(kind);
    open.push(backend);
    return backend;
  });
  return {
    suite: remember(loadSuite),
    backend: (suite) => backends(suite.backend),
    close: async () => {
      await Promise.all(open.map((backend) => backend.close()));
    },
  };
}

async function loadSuite(id: string): Promise<Suite> {
  switch (id) {
    case 'sim-phones':
      return (await import('../suites/sim/suite.ts')).createSimSuite();
    case 'miniwob':
      return (await import('../suites/miniwob/suite.ts')).createMiniwobSuite();
    default:
      throw new TapwrightError('not_found', `there is no suite "${id}": there are ${SUITES.join(', ')}`);
  }
}

async function loadBackend(kind: string): Promise<DeviceBackend> {
  if (kind === 'sim') return (await import('../devices/sim/backend.ts')).createSimBackend();
  const { createBrowserBackend } = await import('../devices/browser/backend.ts');
  const { createMiniwobOracle } = await import('../suites/miniwob/suite.ts');
  const { miniwobPages } = await import('../suites/miniwob/pages.ts');
  return createBrowserBackend({ pages: miniwobPages(), oracle: createMiniwobOracle() });
}
