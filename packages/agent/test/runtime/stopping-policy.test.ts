import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callTools, rawCall, say, testModel } from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { State, WaitReason } from '../../src/machine/state.js';
import { toolsMode } from '../../src/machine/tools-mode.js';
import { openSession, type SessionOptions } from '../../src/session/create-agent.js';

// The user's stopping policy: asked before every model call, held back where it can't be asked.

const reasonOf = (state: State): WaitReason | null =>
  state.name === 'WaitingForUserInput' ? state.reason : null;

const look = callTools(rawCall('1', 'read', { path: 'none.txt' }));

const open = async (
  t: TestContext,
  options: Partial<SessionOptions>,
  ...answers: ReturnType<typeof say>[]
) => {
  const workspace = temporaryFolder(t, 'policy');
  const model = testModel(...answers);
  const journals = memoryJournals();
  const session = await openSession({ workspace, journals, model, ...options });
  t.after(() => session.close());
  const ask = async (): Promise<State> => {
    await session.send({ type: 'UserInput', text: 'look', mode: 'steer' });
    return session.idle();
  };
  return { workspace, model, journals, session, ask };
};

test('asked before every model call, the first included, and its word is what the user reads', async (t) => {
  const asked: number[] = [];
  const notices: string[] = [];
  const { model, ask } = await open(
    t,
    {
      stoppingPolicy: ({ session }) => {
        asked.push(session.turn.rounds);
        return session.turn.rounds === 1 ? 'one look is enough' : null;
      },
      watcher: ({ actions }) => {
        for (const action of actions)
          if (action.type === 'DisplayNotice') notices.push(action.text);
      },
    },
    look,
    say('not asked for'),
  );
  const state = await ask();
  assert.deepEqual(reasonOf(state), { kind: 'cancelled', cause: 'policy' });
  assert.deepEqual(asked, [0, 1]);
  assert.equal(model.requests.length, 1);
  assert.ok(notices.includes('one look is enough'));
});

test('one that throws holds the call back, and says so', async (t) => {
  const notices: string[] = [];
  const { model, ask } = await open(
    t,
    {
      stoppingPolicy: () => {
        throw new Error('no idea');
      },
      watcher: ({ actions }) => {
        for (const action of actions)
          if (action.type === 'DisplayNotice') notices.push(action.text);
      },
    },
    say('never'),
  );
  assert.deepEqual(reasonOf(await ask()), { kind: 'cancelled', cause: 'policy' });
  assert.equal(model.requests.length, 0);
  assert.ok(notices.includes('the stopping policy failed: no idea'));
});

test('a turn that is cancelled while it thinks sends nothing when it has thought', async (t) => {
  let answer = (_why: string | null): void => undefined;
  const thinking = new Promise<string | null>((resolve) => {
    answer = resolve;
  });
  const { model, session } = await open(t, { stoppingPolicy: () => thinking }, say('never'));
  await session.send({ type: 'UserInput', text: 'look', mode: 'steer' });
  await session.cancel();
  answer(null);
  await thinking;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(reasonOf(await session.state()), { kind: 'cancelled', cause: 'user' });
  assert.equal(model.requests.length, 0);
});

test('a session that is resumed without its policy asks nobody: the policy is gone with the settings', async (t) => {
  const { model, session, journals, workspace } = await open(
    t,
    { stoppingPolicy: () => 'no' },
    say('hello'),
  );
  await session.close();
  const again = await openSession({ workspace, journals, model, resume: session.id });
  await again.send({ type: 'UserInput', text: 'look', mode: 'steer' });
  assert.deepEqual(reasonOf(await again.idle()), { kind: 'endOfTurn', cause: 'answer' });
  await again.close();
});

test('at the limit of rounds the model is told that no tool runs, and offered none', async (t) => {
  const settings = { ...toolsMode, limits: { ...toolsMode.limits, rounds: 1 } };
  const { model, ask } = await open(t, { settings }, look, say('there is none'));
  assert.deepEqual(reasonOf(await ask()), { kind: 'endOfTurn', cause: 'answer' });
  assert.deepEqual(
    model.requests.map(({ toolChoice }) => toolChoice),
    [undefined, 'none'],
  );
});
