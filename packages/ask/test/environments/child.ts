import { python } from '../../src/environments/python.js';
import { javascript } from '../../src/environments/sandboxed-node.js';

/**
 * A process of its own, to be killed: starts an environment, prints a line when it is there, and then
 *
 * idle LANGUAGE    does nothing
 * busy LANGUAGE    runs a cell that never ends, which prints a line when it runs
 * leave LANGUAGE   exits without closing the environment
 */
const [how, language] = process.argv.slice(2);
const kind = language === 'python' ? python : javascript;
const loop =
  language === 'python' ? 'llm_query("up")\nwhile True: pass' : 'llm_query("up"); for (;;);';

const environment = await kind.start({
  contexts: [],
  names: [],
  outputMax: 1_000,
  memoryMax: 128 * 1024 * 1024,
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
if (how === 'busy') {
  const cell = {
    cellId: 'c',
    code: loop,
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
