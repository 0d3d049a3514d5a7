import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  collect,
  command,
  hang,
  ok,
  play,
  rawCall,
  say,
  settle,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import type { Settings } from '../../src/machine/settings.js';
import type { HookReport } from '../../src/ports/hooks.js';
import {
  ALL,
  CHANGED,
  COMMIT,
  eventsOf,
  hooksOf,
  lastTexts,
  look,
  make,
  type Phases,
  playWith,
  QUIET,
  reopenWith,
  shownIn,
} from './hooks.js';

test('each phase is given the calls that changed something and what the phases before it reported', async () => {
  const hooks = hooksOf({
    CheckingGitCommits: () => ({ ...CHANGED, commits: [COMMIT], note: 'one commit' }),
    RunningAutoformatters: () => ({ ...CHANGED, note: 'formatted a.ts' }),
    AutoCommitting: () => ({ ...QUIET, commits: [COMMIT], warning: 'b.ts was left' }),
  });
  const on = await playWith(hooks);
  await on.say('go');
  await on.rest();
  assert.deepEqual(hooks.log, [
    'before 1',
    'after 1',
    'CheckingGitCommits 1',
    'RunningAutoformatters 1',
    'AutoCommitting 1',
  ]);
  const reports = [...hooks.contexts.values()].map((context) =>
    context.reports.map(({ note }) => note),
  );
  assert.deepEqual(reports, [[], ['one commit'], ['one commit', 'formatted a.ts']]);
  assert.deepEqual(lastTexts(on), ['one commit', 'formatted a.ts']);
  assert.deepEqual(shownIn(on), [
    'commits: new commit abcdef01 Add a',
    'formatted: formatted a.ts',
    'commits: committed abcdef01 Add a',
    'hook: b.ts was left',
  ]);
  assert.deepEqual((await on.state()).session.unaccounted, []);
});

test('a second batch begins without the reports of the first', async () => {
  const hooks = hooksOf();
  const model = testModel(
    callTools(rawCall('1', 'make')),
    callTools(rawCall('2', 'make')),
    say('done'),
  );
  const on = await playWith(hooks, { model });
  await on.say('go');
  await on.rest();
  assert.deepEqual(hooks.log, [
    'before 1',
    'after 1',
    'CheckingGitCommits 1',
    'before 2',
    'after 2',
    'CheckingGitCommits 2',
  ]);
  assert.deepEqual(hooks.contexts.get('CheckingGitCommits')?.reports, []);
});

test('a call takes effect when the hooks have looked; without hooks nobody looks', async () => {
  const order: string[] = [];
  let letGo = (): void => undefined;
  const hooks = hooksOf({}, () => {
    return new Promise<void>((resolve) => {
      letGo = () => {
        order.push('looked');
        resolve();
      };
    });
  });
  const slow = tool(
    'make',
    () => {
      order.push('made');
      return ok('made');
    },
    command,
  );
  const on = await playWith(hooks, { tools: [slow, look] });
  await on.say('go');
  await settle();
  assert.deepEqual(order, []);
  letGo();
  await on.rest();
  assert.deepEqual(order, ['looked', 'made']);

  const unwatched = hooksOf();
  const off = await playWith(unwatched, { settings: { hooks: 'never' } });
  await off.say('go');
  await off.rest();
  assert.deepEqual(unwatched.log, []);
});

test('a cancel does not wait for a hook that looks, and the call does not take effect', async () => {
  const hooks = hooksOf({}, () => new Promise(() => undefined));
  let made = 0;
  const counted = tool(
    'make',
    () => {
      made += 1;
      return ok('');
    },
    command,
  );
  const on = await playWith(hooks, { tools: [counted, look] });
  await on.say('go');
  await settle();
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  await on.rest();
  assert.equal(made, 0);
  assert.deepEqual(hooks.log, ['before 1', 'after 1'], 'what follows is not its work');
});

test('the hooks look once a cancelled call has ended, and after each call with auto-commit or formatters', async () => {
  const hooks = hooksOf();
  let end = (): void => undefined;
  const slow = tool(
    'make',
    () =>
      new Promise((resolve) => {
        end = () => resolve({ status: 'cancelled', text: 'half' });
      }),
    command,
  );
  const on = await playWith(hooks, { tools: [slow, look] });
  await on.say('go');
  await settle();
  await on.runtime.send(on.id, { type: 'CancelTurn' });
  await settle();
  assert.deepEqual(hooks.log, ['before 1'], 'the call has not ended');
  end();
  await on.rest();
  await settle();
  assert.deepEqual(hooks.log, ['before 1', 'after 1']);
  const settings: readonly Partial<Settings>[] = [
    { autoCommit: 'on', formatter: 'off' },
    { autoCommit: 'off', formatter: 'onChanges' },
    { autoCommit: 'off', formatter: 'off' },
  ];
  for (const setting of settings) {
    const other = hooksOf();
    const done = await playWith(other, { settings: { ...ALL, ...setting } });
    await done.say('go');
    await done.rest();
    assert.deepEqual(
      other.log.filter((line) => line.startsWith('after')),
      setting.autoCommit === 'on' || setting.formatter === 'onChanges' ? ['after 1'] : [],
    );
  }
});

test('a phase that is too slow is aborted, has failed, and what it says later is not heard', async () => {
  let late = (_report: HookReport): void => undefined;
  const hooks = hooksOf({
    CheckingGitCommits: () => CHANGED,
    RunningAutoformatters: () =>
      new Promise((resolve) => {
        late = resolve;
      }),
  });
  const on = await playWith(hooks);
  await on.say('go');
  await on.until(({ path }) => path.some(({ as }) => as === 'RunningAutoformatters'));
  await settle();
  on.clock.advance(1_999);
  await settle();
  assert.equal((await on.state()).name, 'PostToolsHook');
  on.clock.advance(1);
  await on.rest();
  assert.equal(hooks.contexts.get('RunningAutoformatters')?.signal.aborted, true);
  assert.deepEqual(hooks.log.at(-1), 'AutoCommitting 1');
  assert.match(
    shownIn(on).join('\n'),
    /formatting the changed files failed: it took longer than 2 s/,
  );
  late({ ...QUIET, note: 'too late' });
  await settle();
  assert.deepEqual(await eventsOf(on, 'HookFailed').then((events) => events.length), 1);
  assert.equal(on.clock.waiting(), 0);
});

test('a phase that rejects is a warning, and the turn goes on', async () => {
  const on = await playWith(
    hooksOf({ CheckingGitCommits: () => Promise.reject(new Error('git is not well')) }),
  );
  await on.say('go');
  const state = await on.rest();
  assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'endOfTurn');
  assert.deepEqual(shownIn(on), ['hook: looking for new commits failed: git is not well']);
});

test('without connected hooks a phase that is wanted has failed', async () => {
  const on = await play({
    tools: [make],
    model: testModel(callTools(rawCall('1', 'make')), say('done')),
    settings: ALL,
  });
  await on.say('go');
  await on.rest();
  assert.deepEqual(shownIn(on), ['hook: looking for new commits failed: no hook is connected']);
});

test('closing aborts the phase and waits for its end', async () => {
  let ended = false;
  const hooks = hooksOf({
    CheckingGitCommits: ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          setImmediate(() => {
            ended = true;
            resolve(QUIET);
          });
        });
      }),
  });
  const on = await playWith(hooks);
  await on.say('go');
  await on.until(({ state }) => state.name === 'PostToolsHook');
  await on.runtime.close(on.id);
  assert.equal(ended, true);
  assert.equal(on.clock.waiting(), 0);
});

test('a hook that hangs does not outlive its session for more than the grace time', async () => {
  const on = await playWith(hooksOf({ CheckingGitCommits: () => new Promise(() => undefined) }), {
    model: testModel(callTools(rawCall('1', 'make')), hang()),
  });
  await on.say('go');
  await on.until(({ state }) => state.name === 'PostToolsHook');
  const closing = on.runtime.close(on.id);
  await settle();
  on.clock.advance(5_000);
  await closing;
});

test('after a crash the phase is run again with the same calls and reports, a commit too', async () => {
  const phases: Phases = {
    CheckingGitCommits: () => ({ ...CHANGED, note: 'looked' }),
    RunningAutoformatters: ({ files }) => {
      files.set('/workspace/a.ts', 'hash after formatting');
      return { ...CHANGED, note: 'formatted' };
    },
  };
  const first = hooksOf(phases);
  const on = await playWith(first);
  await on.say('go');
  await on.rest();
  const entries = await collect(on.journals.read(on.id));
  const hookEnds = entries
    .filter(({ event }) => event.type === 'HookCompleted')
    .map(({ seq }) => seq);
  assert.equal(hookEnds.length, 3);
  const [checked = 0, formatted = 0, committed = 0] = hookEnds;
  const remembered: (string | undefined)[] = [];
  const reader = tool('look', (_input, { files }) => {
    remembered.push(files.get('/workspace/a.ts'));
    return ok('');
  });
  const cases = [
    {
      at: checked - 1,
      runs: ['CheckingGitCommits 1', 'RunningAutoformatters 1', 'AutoCommitting 1'],
    },
    { at: checked, runs: ['RunningAutoformatters 1', 'AutoCommitting 1'] },
    { at: formatted, runs: ['AutoCommitting 1'] },
    { at: committed, runs: [] },
  ];
  for (const { at, runs } of cases) {
    const hooks = hooksOf(phases);
    const model = testModel(callTools(rawCall('3', 'look')), say('done'));
    const again = await reopenWith(on, at, { tools: [make, reader], model, hooks });
    await again.rest();
    assert.deepEqual(hooks.log, runs, `cut after ${at}`);
    const given = hooks.contexts.get('RunningAutoformatters')?.reports.map(({ note }) => note);
    assert.deepEqual(given, runs.length > 1 ? ['looked'] : undefined, `cut after ${at}`);
    const [first = ''] = runs;
    for (const [phase, { interrupted }] of hooks.contexts)
      assert.deepEqual(
        interrupted,
        first.startsWith(phase) ? [] : null,
        `${phase}, cut after ${at}`,
      );
  }
  assert.deepEqual(remembered, Array(4).fill('hash after formatting'));
});

test('calls of a batch that was cut in the middle are known to the hooks, those from before the crash too', async () => {
  const model = testModel(callTools(rawCall('1', 'make'), rawCall('2', 'make')), say('done'));
  const on = await playWith(hooksOf(), { model });
  await on.say('go');
  await on.rest();
  const entries = await collect(on.journals.read(on.id));
  const firstEnd = entries.find(({ event }) => event.type === 'ToolCompleted')?.seq ?? 0;
  const hooks = hooksOf();
  const again = await reopenWith(on, firstEnd, {
    tools: [make],
    model: testModel(say('done')),
    hooks,
  });
  await again.rest();
  assert.deepEqual(hooks.log, ['before 2', 'after 2', 'CheckingGitCommits 1,2']);
});
