import { readdir, readFile } from 'node:fs/promises';

/** Temporal's server is a program of its own, measured by nobody here. */
const NOT_OURS = /temporal/;

/**
 * Resident memory of a process and all that descend from it, but Temporal's server, in bytes; a page that several share
 * counts in parts. Linux only: 0 elsewhere.
 */
export async function familyMemory(pid: number): Promise<number> {
  const all = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(
    all.map(async (name) => {
      // A process may end while it is looked at.
      const status = await readFile(`/proc/${name}/status`, 'utf8').catch(() => '');
      const read = (key: string): string => new RegExp(`^${key}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? '';
      return { pid: Number(name), parent: Number(read('PPid')), name: read('Name') };
    }),
  );
  const family = new Set([pid]);
  // Parents have smaller numbers than their children, but for a wrap-around; a few passes settle that.
  for (let before = 0; before !== family.size;) {
    before = family.size;
    for (const one of stats) if (family.has(one.parent)) family.add(one.pid);
  }
  const ours = stats.filter((one) => family.has(one.pid) && !NOT_OURS.test(one.name));
  const sizes = await Promise.all(
    ours.map(async (one) => {
      const maps = await readFile(`/proc/${one.pid}/smaps_rollup`, 'utf8').catch(() => '');
      return Number(/^Pss:\s+(\d+)/m.exec(maps)?.[1] ?? 0);
    }),
  );
  return 1024 * sizes.reduce((sum, kilobytes) => sum + kilobytes, 0);
}
