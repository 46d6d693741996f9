import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Rooms whose code can be in the bundle (design.md, 2). */
const ROOMS = ['workflows', 'domain', 'rl', 'agent', 'judges', 'activities'];

async function sources(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { recursive: true });
  return entries.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')).sort();
}

/** Path of the workflow bundle, built at most once for each content of its sources; kept under `<home>/cache`. */
export async function workflowBundle(home: string): Promise<string> {
  const hash = createHash('sha256');
  hash.update(
    String((createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string }).version),
  );
  for (const room of ROOMS) {
    for (const name of await sources(join(ROOT, room))) {
      hash.update(`${room}/${name}\0`);
      hash.update(await readFile(join(ROOT, room, name)));
    }
  }
  const cache = join(home, 'cache');
  const path = join(cache, `workflows-${hash.digest('hex').slice(0, 16)}.js`);
  if (existsSync(path)) return path;
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(ROOT, 'workflows', 'index.ts'),
    logger: new DefaultLogger('WARN'),
  });
  await mkdir(cache, { recursive: true });
  const part = `${path}.${process.pid}.part`;
  await writeFile(part, code);
  await rename(part, path);
  return path;
}
