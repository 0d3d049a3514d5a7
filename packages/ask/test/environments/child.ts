import { python } from '../../src/environments/python.js';

/**
 * A process of its own, to be killed: starts an environment, prints a line when it is there, and then
 *
 * idle    does nothing
 * busy    runs a cell that never ends, which prints a line when it runs
 * leave   exits without closing the environment
 */
const [how] = process.argv.slice(2);

const environment = await python.start({
  contexts: [],
  names: [],
  outputMax: 1_000,
  memoryMax: 128 * 1024 * 1024,
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
if (how === 'busy') {
  const cell = {
    cellId: 'c',
    code: 'llm_query("up")\nwhile True: pass',
    deadlineMs: 600_000,
    signal: new AbortController().signal,
  };
  void environment.run(cell, async () => {
    say('up');
    return ['go on'];
  });
} else say('up');
if (how === 'leave') process.exit(0);
setInterval(() => undefined, 1_000);
