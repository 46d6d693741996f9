import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A Python process that answers each line of JSON with one. */
export interface PythonPeer {
  /** What it said when it was ready. */
  hello: Record<string, unknown>;
  ask(request: Record<string, unknown>): Promise<Record<string, unknown>>;
  close(): void;
}

/** The interpreter to measure against: `TAPWRIGHT_BENCH_PYTHON`, else python3. */
export const pythonPath = (): string => process.env['TAPWRIGHT_BENCH_PYTHON'] ?? 'python3';

/** Null when `module` can be imported, else a sentence that says what is missing. */
export function missingModule(module: string, packages: string): string | null {
  const tried = spawnSync(pythonPath(), ['-c', `import ${module}`], { encoding: 'utf8' });
  if (tried.status === 0) return null;
  return (
    `not measured: ${pythonPath()} cannot import ${module}. Make a venv with \`pip install ${packages}\` and name its ` +
    `python in TAPWRIGHT_BENCH_PYTHON`
  );
}

/** Starts `bench/python/<script>`; resolves when its first line is there. */
export async function startPython(script: string, args: readonly string[]): Promise<PythonPeer> {
  const path = fileURLToPath(new URL(`../python/${script}`, import.meta.url));
  const child = spawn(pythonPath(), [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.resolve(line));
  child.once('close', (code) => {
    for (const one of waiting.splice(0)) one.reject(new Error(`${script} ended with ${String(code)}`));
  });
  const answer = (): Promise<Record<string, unknown>> =>
    new Promise<string>((resolve, reject) => waiting.push({ resolve, reject })).then(
      (line) => JSON.parse(line) as Record<string, unknown>,
    );
  const hello = await answer();
  return {
    hello,
    ask: (request) => {
      const reply = answer();
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return reply;
    },
    close: () => child.kill(),
  };
}
