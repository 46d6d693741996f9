import { parseArgs } from 'node:util';
import { runWorker } from './worker.ts';

/** A worker's process: `--role workflow|device|learn --slots N`, the rest from the environment (settings.ts). */
const { values } = parseArgs({
  options: { role: { type: 'string', default: '' }, slots: { type: 'string', default: '128' } },
});
runWorker(values.role, Number(values.slots)).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
