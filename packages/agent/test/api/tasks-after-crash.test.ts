import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Answer, callTools, hang, rawCall, say } from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { markPath } from '../../src/journal/state-folder.js';
import { openSession } from '../../src/session/create-agent.js';
import {
  CALL_USD,
  crashedCopy,
  listed,
  open,
  resultIn,
  startTask,
  twoSided,
  until,
} from './task-stage.js';

/** Tasks whose session was killed, and goes on. */

/** Leaves a session as a crash does while its task does what its last answer says. */
const crash = async (t: TestContext, ofTask: readonly Answer[]) => {
  const folder = temporaryFolder(t, 'state');
  const { model, requests } = twoSided([callTools(startTask())], [...ofTask]);
  const { session, workspace } = await open(t, { model, journals: fileJournals({ folder }) });
  const prompted = session.prompt('find out');
  await until(session, () => requests.filter(({ task }) => task).length === ofTask.length);
  const copy = await crashedCopy(t, folder);
  await session.close();
  await prompted;
  return { session, workspace, copy };
};

for (const { when, ofTask, requestsAgain } of [
  { when: 'was waiting for its model', ofTask: [hang()], requestsAgain: 1 },
  {
    when: 'had read a file',
    ofTask: [callTools(rawCall('r', 'read', { path: 'a.txt' })), hang()],
    requestsAgain: 1,
  },
]) {
  test(`after a crash the session goes on with a task that ${when}`, async (t) => {
    const { session, workspace, copy } = await crash(t, ofTask);
    const later = twoSided([say('done')], [say('42, as before')]);
    const journals = fileJournals({ folder: copy });
    const again = await openSession({
      journals,
      workspace,
      tasks: true,
      model: later.model,
      resume: session.id,
    });
    const state = await again.idle();
    await again.close();
    assert.match(resultIn(state), /^42, as before\n\[task/);
    assert.equal(later.requests.filter(({ task }) => task).length, requestsAgain);
    const tasks = (await listed(journals)).filter(({ startedBy }) => startedBy !== undefined);
    assert.equal(tasks.length, 1, 'no second task was started');
  });
}

test('after a crash the answer of a task that had ended is not asked for again', async (t) => {
  const folder = temporaryFolder(t, 'state');
  const { model } = twoSided([callTools(startTask()), say('done')], [say('It says 42.')]);
  const { session, workspace } = await open(t, { model, journals: fileJournals({ folder }) });
  await session.prompt('find out');
  await session.close();
  const journal = path.join(folder, 'sessions', `${session.id}.jsonl`);
  const lines = (await readFile(journal, 'utf8')).split('\n');
  const ended = lines.findIndex((line) => line.includes('"type":"ToolCompleted"'));
  await writeFile(
    journal,
    lines.slice(0, ended).map((line) => `${line}\n`),
  );
  await rm(markPath(journal), { force: true });

  const later = twoSided([say('done')], []);
  const again = await openSession({
    journals: fileJournals({ folder }),
    workspace,
    tasks: true,
    model: later.model,
    resume: session.id,
  });
  const state = await again.idle();
  await again.close();
  assert.match(resultIn(state), /^It says 42\.\n\[task/);
  assert.ok(!later.requests.some(({ task }) => task));
});

test('a session that is closed as it finds its task again ends it before, and counts its cost', async (t) => {
  const ofTask = [callTools(rawCall('r', 'read', { path: 'a.txt' })), hang()];
  const { session, workspace, copy } = await crash(t, ofTask);
  const later = twoSided([], [hang()]);
  const journals = fileJournals({ folder: copy });
  const again = await openSession({
    journals,
    workspace,
    tasks: true,
    model: later.model,
    resume: session.id,
  });
  await again.close();
  const [task] = (await listed(journals)).filter(({ startedBy }) => startedBy !== undefined);
  const stored = await journals.peek(task?.sessionId ?? '');
  assert.equal(stored.state.name, 'ShuttingDown');
  const own = await journals.peek(session.id);
  assert.equal(stored.state.session.usage.costUsd, CALL_USD);
  assert.equal(own.state.session.usage.costUsd, 2 * CALL_USD);
});
