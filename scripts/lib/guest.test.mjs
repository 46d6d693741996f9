import { describe, expect, it } from 'vitest';
import { cpio } from './guest.mjs';

/** Reads an archive back as the kernel does: header fields in hex, names and bodies padded to four bytes. */
function entries(archive) {
  const found = [];
  for (let at = 0; ;) {
    expect(archive.toString('latin1', at, at + 6)).toBe('070701');
    const field = (i) => Number.parseInt(archive.toString('latin1', at + 6 + 8 * i, at + 14 + 8 * i), 16);
    const name = archive.toString('utf8', at + 110, at + 110 + field(11) - 1);
    const body = (at + 110 + field(11) + 3) & ~3;
    if (name === 'TRAILER!!!') return found;
    found.push({ name, mode: field(1), body: archive.toString('utf8', body, body + field(6)) });
    at = (body + field(6) + 3) & ~3;
  }
}

describe('the first file system of the guest', () => {
  it('holds every file with its mode, after the folder it lies in', () => {
    const files = [
      { name: 'modules/a.ko', mode: 0o100644, body: Buffer.from('abc') },
      { name: 'init', mode: 0o100755, body: Buffer.from('run me') },
    ];
    const found = entries(cpio(files));
    expect(found.map(({ name }) => name)).toEqual(['dev', 'sys', 'modules', 'modules/a.ko', 'init']);
    expect(found[3]).toEqual({ name: 'modules/a.ko', mode: 0o100644, body: 'abc' });
    expect(found[4]).toEqual({ name: 'init', mode: 0o100755, body: 'run me' });
    expect(cpio(files)).toEqual(cpio(files));
  });
});
