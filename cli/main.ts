import { main } from './program.ts';

/** The command line's entry; bin/tapwright.mjs imports it. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  // Nobody reads on (`| head`): a run that is being kept stops in order, anything else is simply over.
  if (process.listenerCount('SIGTERM') === 0) process.exit(0);
  process.emit('SIGTERM', 'SIGTERM');
});
process.exitCode = await main(process.argv.slice(2));
