import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import { makeServed, uniqueSleep } from './pawl.js';
import { openReady } from './window.js';

/** A command that users type themselves (`!command`) is theirs, as in a terminal: it ends with Pawl. */

test('!command ends when Pawl is killed, with its children, also if it ignores every request to end', async (context) => {
  const mark = uniqueSleep(context);
  const window = await openReady(context, await makeServed(context, []));
  window.press(`!trap "" TERM HUP INT; sleep ${mark} & sleep ${mark}; echo late\r`);
  await until(
    'both sleep',
    () => processesWith(mark).filter((line) => line.startsWith('sleep')).length === 2,
  );
  process.kill(window.pid, 'SIGKILL');
  await until('nothing of it runs', () => processesWith(mark).length === 0);
});
