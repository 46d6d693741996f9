import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { guestState } from '../../devices/vnc/guest-link.ts';
import type { GuestState } from '../../devices/vnc/guest-link.ts';
import type { VncSnapshot } from '../../devices/vnc/oracle.ts';
import type { Intent, OutlineElement, TaskInstance } from '../../domain/index.ts';

const GUEST = fileURLToPath(new URL('../../devices/vnc/guest', import.meta.url));

/** Instead of the guest's `init`: gestures and keys come as lines too. */
const MAIN = `
#include <stdio.h>
#include <string.h>
#include "phone.h"
static void answer(const char *text) { puts(text); fflush(stdout); }
int main(void) {
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) {
    int x, y;
    line[strcspn(line, "\\n")] = 0;
    if (sscanf(line, "tap %d %d", &x, &y) == 2) tap(x, y);
    else if (sscanf(line, "swipe %d", &y) == 1) swipe(y);
    else if (strcmp(line, "home") == 0) key_home();
    else if (strncmp(line, "type ", 5) == 0) { select_all(); for (char *c = line + 5; *c != 0; c++) key_char(*c); }
    else serve(line, answer);
  }
}`;

/** The guest's phone as an ordinary program: its state and its pages are the real ones, only nobody draws them. */
export interface HostPhone {
  start(task: TaskInstance): Promise<void>;
  state(): Promise<GuestState>;
  outline(): Promise<OutlineElement[]>;
  act(intent: Intent): Promise<void>;
  close(): void;
}

export const hasCompiler = (): boolean => {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

export function startHostPhone(): HostPhone {
  const folder = mkdtempSync(join(tmpdir(), 'tapwright-phone-'));
  const program = join(folder, 'phone');
  const units = ['phone.c', 'contents.c', 'serial.c'].map((name) => join(GUEST, name));
  execFileSync('gcc', ['-std=gnu11', '-I', GUEST, '-o', program, '-x', 'c', ...units, '-'], { input: MAIN });
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  const ask = async (command: string): Promise<unknown> => {
    const answer = new Promise<string>((resolve) => waiting.push(resolve));
    child.stdin.write(`1 ${command}\n`);
    const value = JSON.parse((await answer).slice(2)) as unknown;
    if (typeof value === 'object' && value !== null && 'error' in value)
      throw new Error(`${command}: ${String(value.error)}`);
    return value;
  };
  const outline = async (): Promise<OutlineElement[]> => (await ask('outline')) as OutlineElement[];
  return {
    start: async (task) => {
      const { seed, set } = JSON.parse(task.snapshot) as VncSnapshot;
      await ask(`reset ${seed}`);
      for (const line of set) await ask(`set ${line}`);
    },
    state: async () => guestState.parse(await ask('state')),
    outline,
    act: async (intent) => {
      if (intent.kind === 'tap') {
        const box = (await outline()).find(({ label }) => label === intent.target)?.box;
        if (box === undefined) throw new Error(`${intent.target} is not on the screen`);
        child.stdin.write(`tap ${box.x + Math.floor(box.width / 2)} ${box.y + Math.floor(box.height / 2)}\n`);
      } else if (intent.kind === 'swipe') child.stdin.write(`swipe ${intent.direction === 'up' ? -300 : 300}\n`);
      else if (intent.kind === 'text_entry') child.stdin.write(`type ${intent.text}\n`);
      else if (intent.kind === 'navigate_home') child.stdin.write('home\n');
      else throw new Error(`no gesture for ${intent.kind}`);
    },
    close: () => {
      child.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
