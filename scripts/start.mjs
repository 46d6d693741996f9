// `npm start [-- tapwright options]`: the set-up, then the quickstart run.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectDir } from './lib/places.mjs';
import { printFailure, setup } from './setup.mjs';

try {
  await setup();
  const run = ['run', join('configs', 'quickstart.yaml'), ...process.argv.slice(2)];
  const child = spawn(process.execPath, [join('bin', 'tapwright.mjs'), ...run], { cwd: projectDir, stdio: 'inherit' });
  // A terminal sends Ctrl-C to the child as well (twice would mean "at once"); it cleans up and this process waits.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`tapwright did not start: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 143);
  });
} catch (error) {
  printFailure(error);
  process.exitCode = 1;
}
