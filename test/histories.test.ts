import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Worker, bundleWorkflowCode } from '@temporalio/worker';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowBundle } from '../workers/bundle.ts';
import { HISTORIES, historyFile, readHistory } from './fake-run.ts';

/**
 * Saved histories hold the workflows of today to the runs that are open (CONTRIBUTING.md). They are written by the tests
 * of live control and orchestration with TAPWRIGHT_SAVE_HISTORIES=1.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tapwright-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What each history says of a bundle: null, or why it does not replay. */
async function replay(
  workflowBundle: { codePath: string } | WorkflowBundleWithSourceMap,
  files: string[],
): Promise<Record<string, string | null>> {
  const histories = async function* (): AsyncGenerator<{ workflowId: string; history: unknown }> {
    for (const file of files) yield { workflowId: basename(file), history: await readHistory(file) };
  };
  const said: Record<string, string | null> = {};
  // A break is reported, not thrown.
  for await (const result of Worker.runReplayHistories({ workflowBundle }, histories())) {
    said[result.workflowId] = result.error === undefined ? null : `${result.error.name}: ${result.error.message}`;
  }
  return said;
}

/** A copy of the workflows in which pieces of training-run.ts read otherwise, as a bundle. */
async function changed(...edits: [from: string, to: string][]): Promise<WorkflowBundleWithSourceMap> {
  const copy = await mkdtemp(join(folder, 'copy-'));
  for (const room of ['workflows', 'domain', 'rl', 'agent'])
    await cp(join(ROOT, room), join(copy, room), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(copy, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const path = join(copy, 'workflows', 'training-run.ts');
  let text = await readFile(path, 'utf8');
  for (const [from, to] of edits) {
    expect(text.split(from).length, `there once: ${from}`).toBe(2);
    text = text.replace(from, () => to);
  }
  await writeFile(path, text);
  return bundleWorkflowCode({
    workflowsPath: join(copy, 'workflows', 'index.ts'),
    logger: new DefaultLogger('WARN'),
  });
}

describe('saved histories', () => {
  it('replay with the workflows of today', async () => {
    const files = (await readdir(HISTORIES)).sort();
    const said = await replay(
      { codePath: await workflowBundle(folder) },
      files.map((file) => join(HISTORIES, file)),
    );
    expect(said).toEqual(Object.fromEntries(files.map((file) => [file, null])));
    const runs = ['training-run', 'continue-as-new', 'pause-resume', 'policy-update-paused', 'episode-paused'];
    for (const scenario of [...runs, 'replay']) expect(files).toContain(basename(historyFile(scenario)));
  }, 180_000);

  // The worked example of CONTRIBUTING.md.
  const report = '    report: (id) => learnActivities(site).report(id, control.ends()),';
  const probing = (condition: string): string => `    report: async (id) => {
      ${condition}await learnActivities(site).openRun(id);
      return learnActivities(site).report(id, control.ends());
    },`;

  it('do not replay with a workflow that does something more', async () => {
    const broken = await changed([report, probing('')]);
    expect(await replay(broken, [historyFile('training-run')])).toEqual({
      [basename(historyFile('training-run'))]: expect.stringMatching(/^DeterminismViolationError/) as string,
    });
  }, 180_000);

  it('replay when the new step stands behind patched()', async () => {
    const mended = await changed(
      ['  setHandler,\n', '  patched,\n  setHandler,\n'],
      [report, probing(`if (patched('probe-before-report')) `)],
    );
    expect(await replay(mended, [historyFile('training-run')])).toEqual({
      [basename(historyFile('training-run'))]: null,
    });
  }, 180_000);
});
