import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import {
  answers,
  askAbout,
  endOf,
  environments,
  journaled,
  notingModel,
  program,
  stepOf,
} from '../../../../test/kit/ask/ask-stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createAsker } from '../../src/create-asker.js';
import type { EnvironmentKind } from '../../src/ports.js';

/** The environments of a tree, from their start to their end. */

/** A folder for temporary files of this test alone: other tests put their own into the system's at the same time. */
const ownTemporaryFolder = (context: TestContext): string => {
  const kept = process.env.TMPDIR;
  const folder = temporaryFolder(context, 'own-temporary');
  process.env.TMPDIR = folder;
  context.after(() => {
    if (kept === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = kept;
  });
  return folder;
};

test('the prompt of a sub-run is its context, and the file that carries it is gone afterwards', async (context) => {
  const folder = ownTemporaryFolder(context);
  const long = 'x'.repeat(5_000);
  const script = {
    replies: [{ text: program(`deep = rlm_query("deep ${long}");`) }, { text: answers('deep') }],
    rules: [{ when: '^deep ', text: answers('[context.length, context.slice(0, 6)].join(" ")') }],
  };
  const { run } = await askAbout(context, 'abc', {
    script,
    options: { settings: { depthMax: 2 } },
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'answered', JSON.stringify(outcome));
  assert.equal(outcome.answer, '5005 deep x');
  await run.close();
  const left = readdirSync(folder).filter((name) => !name.startsWith('pawl-ask-test-'));
  assert.deepEqual(left, []);
});

for (const name of ['javascript', 'quickjs', 'python'] as const) {
  test(`${name}: a program that never ends is ended with its run, and nothing is told of it`, async (context) => {
    const script = {
      replies: [{ text: program(name === 'python' ? 'while True: pass' : 'for (;;) {}') }],
    };
    const asked = await askAbout(context, 'abc', { script, options: { environment: name } });
    await stepOf(asked, ({ actions }) => actions.some(({ type }) => type === 'RunCell'));
    await asked.run.cancel();
    assert.deepEqual(await endOf(asked.run), {
      status: 'cancelled',
      cause: 'user',
      partial: '',
    });
    await asked.run.close();
    const types = (await journaled(asked.journals, asked.run.id)).map(({ type }) => type);
    assert.equal(types.at(-1), 'CancelRequested');
  });
}

const broken = (how: Partial<EnvironmentKind>): EnvironmentKind => ({
  ...environments.quickjs,
  probe: async () => null,
  ...how,
});
const question = { question: 'q', contexts: [] };

test('an environment that can not be started ends the run, which says why', async (context) => {
  const quickjs = broken({ start: () => Promise.reject(new Error('no threads')) });
  const asked = await askAbout(context, '', {});
  const asker = createAsker({
    model: notingModel({ replies: [{ text: program('1') }] }),
    journals: asked.journals,
    environments: { ...environments, quickjs },
  });
  const { workspace } = (await asked.journals.inspect(asked.run.id)).header;
  const run = await asker.ask({ ...question, workspace, environment: 'quickjs' });
  assert.deepEqual(await endOf(run), {
    status: 'failed',
    kind: 'environment',
    message: 'the environment failed: no threads',
    partial: '',
  });
  await run.close();
});

test('an environment that breaks while a cell runs ends the run, which says why', async (context) => {
  const quickjs = broken({
    start: async () => ({
      run: () => Promise.reject(new Error('the wire is cut')),
      read: async () => null,
      close: async () => undefined,
    }),
  });
  const asked = await askAbout(context, '', {});
  const asker = createAsker({
    model: notingModel({ replies: [{ text: program('1') }] }),
    journals: asked.journals,
    environments: { ...environments, quickjs },
  });
  const { workspace } = (await asked.journals.inspect(asked.run.id)).header;
  const run = await asker.ask({ ...question, workspace, environment: 'quickjs' });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'failed' && outcome.kind === 'environment');
  assert.match(outcome.message, /the wire is cut/);
  await run.close();
});
