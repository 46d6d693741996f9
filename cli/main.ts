import { main } from './program.ts';

/** The command line's entry; bin/tapwright.mjs imports it. */
process.exitCode = await main(process.argv.slice(2));
