import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import '../../../../test/own-process.js';
import {
  callTools,
  hang,
  rawCall,
  say,
  testModel,
  typesOf,
  watchedStore,
} from '../../../../test/kit/runtime/stage.js';
import { fillFolder } from '../../../../test/made-folder.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { type Clock, systemClock } from '../../src/platform/clock.js';
import {
  type AgentOptions,
  createAgent,
  type Session,
  type SessionOptions,
} from '../../src/session/create-agent.js';
import { readTimeline } from '../../src/session/rewind.js';

const git = (folder: string, ...words: readonly string[]): string =>
  execFileSync('git', [...words], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...process.env,
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@example.com',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@example.com',
    },
  });

/** A repository with a clean file, a dirty one and an untracked one. */
const makeRepository = (folder: string): void => {
  mkdirSync(path.join(folder, 'src'), { recursive: true });
  writeFileSync(path.join(folder, 'src', 'clean.ts'), 'clean\n');
  writeFileSync(path.join(folder, 'src', 'dirty.ts'), 'before\n');
  git(folder, 'init', '-q');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'begin');
  writeFileSync(path.join(folder, 'src', 'dirty.ts'), 'dirty\n');
  writeFileSync(path.join(folder, 'precious.txt'), 'precious\n');
};

type Stage = { readonly session: Session; readonly workspace: string };

const open = (context: TestContext, ...answers: Parameters<typeof testModel>): Promise<Stage> =>
  openWith(context, { sandbox: 'off' }, answers);

const openWith = async (
  context: TestContext,
  options: Partial<SessionOptions>,
  answers: Parameters<typeof testModel>,
  more: Partial<AgentOptions> = {},
): Promise<Stage> => {
  const folder = realpathSync(temporaryFolder(context, 'rewind'));
  const [workspace, state] = [path.join(folder, 'work'), path.join(folder, 'state')];
  mkdirSync(workspace);
  process.env.XDG_STATE_HOME = state;
  fillFolder(workspace, 'a repository', makeRepository);
  await wait(50); // longer than a tick of the times of files
  const agent = createAgent({
    model: testModel(...answers),
    journals: fileJournals({ folder: path.join(state, 'pawl') }),
    ...more,
  });
  const session = await agent.open({ workspace, ...options });
  context.after(() => session.close().catch(() => undefined)); // a test may have ended it
  return { session, workspace };
};

const text = (workspace: string, name: string): string | null =>
  existsSync(path.join(workspace, name)) ? readFileSync(path.join(workspace, name), 'utf8') : null;

const bash = (command: string) => callTools(rawCall('1', 'bash', { command }));

test('files that a command deleted come back, and go again', async (context) => {
  const { session, workspace } = await open(context, bash('rm -rf src precious.txt'), say('gone'));
  await session.prompt('clean up');
  assert.equal(text(workspace, 'precious.txt'), null);
  const points = await session.timeline();
  assert.deepEqual(
    points.map(({ kind, title, changes }) => [kind, title, changes?.deleted]),
    [
      ['turn', 'clean up', 3],
      ['calls', 'bash rm -rf src precious.txt', 3],
    ],
  );
  const back = await session.rewind({ at: points[0]?.seq ?? 0 });
  assert.deepEqual(back.left, []);
  assert.equal(text(workspace, 'precious.txt'), 'precious\n');
  assert.equal(text(workspace, 'src/clean.ts'), 'clean\n');
  assert.equal(text(workspace, 'src/dirty.ts'), 'dirty\n');
  assert.equal(messagesOf((await session.state()).session.conversation).length, 0);
  await session.redo();
  assert.equal(text(workspace, 'precious.txt'), null);
  assert.equal(text(workspace, 'src/clean.ts'), null);
  assert.equal(messagesOf((await session.state()).session.conversation).length, 4);
});

test('a file that somebody else changed since is left, unless it is forced', async (context) => {
  const { session, workspace } = await open(
    context,
    bash("sed -i 's/dirty/agent/' src/dirty.ts; echo new > new.txt"),
    say('done'),
  );
  await session.prompt('change');
  await session.timeline(); // the checkpoint is taken
  writeFileSync(path.join(workspace, 'new.txt'), 'mine\n');
  const back = await session.rewind({ at: 0 });
  assert.deepEqual(back.left, [{ path: 'new.txt', why: 'somebody else changed it since' }]);
  assert.equal(text(workspace, 'new.txt'), 'mine\n');
  assert.equal(text(workspace, 'src/dirty.ts'), 'dirty\n');
  await session.redo();
  assert.equal(text(workspace, 'src/dirty.ts'), 'agent\n');
  await session.rewind({ at: 0, force: true });
  assert.equal(text(workspace, 'new.txt'), null);
  await session.redo();
  assert.equal(text(workspace, 'new.txt'), 'mine\n', 'what was forced is kept');
});

test('a rewind that failed as a whole tells of no branch that it moved', async (context) => {
  const commit = 'git -c user.name=a -c user.email=a@b commit -qam agent';
  const { session, workspace } = await open(context, bash(commit), say('done'));
  await session.prompt('commit');
  const head = git(workspace, 'rev-parse', 'HEAD');
  assert.match((await session.planRewind({ at: 0, refs: true })).text, /branch/);
  session.watch(({ event }) => {
    const store = path.join(process.env.XDG_STATE_HOME ?? '', 'pawl', 'checkpoints');
    if (event.type === 'RewindRequested') rmSync(store, { recursive: true });
  });
  const { refs, left, text } = await session.rewind({ at: 0, refs: true });
  assert.deepEqual([refs, left.map(({ path }) => path)], [[], ['.']]);
  assert.doesNotMatch(text, /branch/);
  assert.equal(git(workspace, 'rev-parse', 'HEAD'), head);
});

test('a rewind with nothing to take back is no step for redo', async (context) => {
  const { session, workspace } = await open(context, bash('rm precious.txt'), say('gone'));
  await session.prompt('clean up');
  await session.rewind({ at: 0 });
  assert.equal((await session.rewind({ at: 0 })).text, 'nothing changed since');
  await session.redo();
  assert.equal(text(workspace, 'precious.txt'), null);
});

/** Waits until a call runs, then types a text for the turn after this one. */
const typeMeanwhile = async (
  session: Session,
  first: string,
  later: string,
  typed: () => void | Promise<void>,
): Promise<void> => {
  const started = new Promise<void>((resolve) => {
    session.watch(({ event }) => {
      if (event.type === 'ToolStarted') resolve();
    });
  });
  await session.send({ type: 'UserInput', text: first, mode: 'steer' });
  await started;
  await session.send({ type: 'UserInput', text: later, mode: 'followUp' });
  await typed();
  await session.idle();
};

const resultsIn = async (session: Session): Promise<readonly string[]> =>
  messagesOf((await session.state()).session.conversation).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'result' ? [part.text] : [])),
  );

test('a turn that was typed while another ran begins behind that one', async (context) => {
  const { session, workspace } = await open(
    context,
    bash('until [ -e ../typed ]; do sleep 0.05; done; echo one > one.txt; echo FIRST-OUTPUT'),
    say('first done'),
    bash('echo two > two.txt'),
    say('second done'),
  );
  await typeMeanwhile(session, 'first', 'then this', () =>
    writeFileSync(path.join(workspace, '..', 'typed'), ''),
  );
  const point = (await session.timeline()).find(({ title }) => title === 'then this');
  assert.equal(point?.text, 'then this');
  const before = await resultsIn(session);
  const back = await session.rewind({ at: point?.seq ?? 0 });
  assert.deepEqual([back.messages, back.changes.deleted], [4, 1]);
  assert.deepEqual([text(workspace, 'one.txt'), text(workspace, 'two.txt')], ['one\n', null]);
  assert.deepEqual(await resultsIn(session), before.slice(0, 1));
  const { conversation, queue } = (await session.state()).session;
  assert.match(JSON.stringify(messagesOf(conversation).at(-1)), /first done/);
  assert.deepEqual(queue, []);
});

test('a turn has the words with which it began, as they were edited, and no steer of the one before', async (context) => {
  const { session, workspace } = await open(
    context,
    bash('until [ -e ../typed ]; do sleep 0.05; done'),
    say('first done'),
    say('second done'),
  );
  await typeMeanwhile(session, 'first', 'not this', async () => {
    const { queue } = (await session.state()).session;
    const items = queue.map((item) => ({ ...item, text: 'but this' }));
    await session.send({ type: 'EditQueue', items });
    await session.send({ type: 'UserInput', text: 'at once', mode: 'steer' });
    writeFileSync(path.join(workspace, '..', 'typed'), '');
  });
  const turns = (await session.timeline()).filter(({ kind }) => kind === 'turn');
  assert.deepEqual(
    turns.map((turn) => turn.text),
    ['first', 'but this'],
  );
});

test('an entry within a batch leads to its beginning, and says so', async (context) => {
  const { session, workspace } = await open(
    context,
    callTools(
      rawCall('1', 'write', { path: 'a.txt', content: 'a' }),
      rawCall('2', 'bash', { command: 'echo b > b.txt' }),
      rawCall('3', 'write', { path: 'c.txt', content: 'c' }),
    ),
    say('done'),
  );
  await session.prompt('go');
  const [turn, calls] = await session.timeline();
  assert.ok(turn !== undefined && calls !== undefined);
  const within = calls.seq + 3; // the reply, and then some of its calls
  const { text: words, to } = await session.rewind({ at: within });
  assert.equal(to, calls.seq);
  assert.match(words, new RegExp(`^${within} lies within a batch of calls, so it is ${to}, `));
  assert.deepEqual([text(workspace, 'a.txt'), text(workspace, 'c.txt')], [null, null]);
  assert.deepEqual(await resultsIn(session), []);
});

test('a note about files waits again where it waited', async (context) => {
  const write = callTools(rawCall('1', 'write', { path: 'new.txt', content: 'new' }));
  const { session } = await open(context, write, say('done'), say('two'), say('three'));
  await session.prompt('one');
  await session.timeline(); // the checkpoint is in the journal
  await session.rewind({ at: 0, conversation: false });
  const { notes } = (await session.state()).session;
  assert.match(notes.join(), /new\.txt/);
  const [first] = (await session.timeline()).slice(-1);
  assert.ok(first !== undefined);
  await session.prompt('two');
  const point = (await session.timeline()).find(({ title }) => title === 'two');
  await session.rewind({ at: point?.seq ?? 0, files: false });
  assert.deepEqual((await session.state()).session.notes, notes);
});

test('what a turn changed is told of it, also if the next one began before it was known', async (context) => {
  const { session } = await open(context, bash('rm precious.txt'), say('gone'), say('well'));
  await session.prompt('clean up');
  await session.timeline(); // the checkpoint is in the journal
  await session.prompt('more');
  const { id } = session;
  const { settings } = (await session.state()).session;
  const folder = path.join(process.env.XDG_STATE_HOME ?? '', 'pawl');
  const events = [];
  for await (const { event } of fileJournals({ folder }).read(id)) events.push(event);
  const isTaken = ({ type }: { readonly type: string }): boolean => type === 'CheckpointTaken';
  const late = [...events.filter((event) => !isTaken(event)), ...events.filter(isTaken)];
  const entries = late.map((event, index) => ({ seq: index + 1, event }));
  const journal = {
    header: { settings },
    seq: late.length,
    foreignUntil: 0,
    async *entries() {
      yield* entries;
    },
  };
  const timeline = await readTimeline(journal, null);
  assert.deepEqual(
    timeline.points.map(({ kind, changes }) => [kind, changes?.deleted]),
    [
      ['turn', 1],
      ['calls', 1],
      ['turn', undefined],
    ],
  );
});

test('an edit, a new file and a command are taken back one by one', async (context) => {
  const { session, workspace } = await open(
    context,
    callTools(rawCall('1', 'write', { path: 'deep/er/a.txt', content: 'one\n' })),
    say('written'),
    callTools(rawCall('2', 'read', { path: 'src/clean.ts' })),
    callTools(rawCall('3', 'edit', { path: 'src/clean.ts', oldText: 'clean', newText: 'edited' })),
    say('edited'),
    bash('mv src/dirty.ts moved.ts && chmod 600 precious.txt && ln -s src link'),
    say('moved'),
  );
  await session.prompt('first');
  await session.prompt('second');
  await session.prompt('third');
  const turns = (await session.timeline()).filter(({ kind }) => kind === 'turn');
  assert.deepEqual(
    turns.map(({ title }) => title),
    ['first', 'second', 'third'],
  );
  assert.equal(text(workspace, 'src/clean.ts'), 'edited\n');
  assert.equal(text(workspace, 'moved.ts'), 'dirty\n');
  await session.rewind({ at: turns[2]?.seq ?? 0 });
  assert.equal(text(workspace, 'moved.ts'), null);
  assert.equal(text(workspace, 'src/dirty.ts'), 'dirty\n');
  assert.equal(text(workspace, 'link'), null);
  assert.equal(statSync(path.join(workspace, 'precious.txt')).mode & 0o777, 0o644);
  await session.rewind({ at: turns[1]?.seq ?? 0 });
  assert.equal(text(workspace, 'src/clean.ts'), 'clean\n');
  await session.rewind({ at: turns[0]?.seq ?? 0 });
  assert.equal(existsSync(path.join(workspace, 'deep')), false);
  for (const _ of turns) await session.redo();
  assert.equal(text(workspace, 'moved.ts'), 'dirty\n');
  assert.equal(text(workspace, 'deep/er/a.txt'), 'one\n');
  assert.equal(text(workspace, 'src/clean.ts'), 'edited\n');
  await assert.rejects(session.redo(), /There is nothing to go forward to/);
});

test('after a new turn there is no way forward, and a running turn is not taken back', async (context) => {
  const { session, workspace } = await open(
    context,
    bash('echo one > new.txt'),
    say('done'),
    say('again'),
    hang(),
  );
  await session.prompt('first');
  await session.rewind({ at: 0 });
  await session.prompt('second');
  await assert.rejects(session.redo(), /pawl rewind ID --at SEQ/);
  assert.equal(text(workspace, 'new.txt'), null);
  await session.send({ type: 'UserInput', text: 'third', mode: 'steer' });
  await assert.rejects(session.rewind({ at: 0 }), /a turn is running: stop it first/);
  await session.cancel();
  await session.idle();
  await session.close();
  await assert.rejects(session.rewind({ at: 0 }), /the session is over/);
});

test('only the conversation, or only the files', async (context) => {
  const { session, workspace } = await open(
    context,
    bash('echo one > new.txt'),
    say('done'),
    say('seen'),
  );
  await session.prompt('first');
  const messages = async (): Promise<number> =>
    messagesOf((await session.state()).session.conversation).length;
  await session.rewind({ at: 0, files: false });
  assert.deepEqual([await messages(), text(workspace, 'new.txt')], [0, 'one\n']);
  await session.redo();
  await session.rewind({ at: 0, conversation: false });
  assert.deepEqual([await messages(), text(workspace, 'new.txt')], [4, null]);
  const { session: data } = await session.state();
  assert.match(data.notes.join(), /The user took back changes of 1 file: new\.txt\. Read/);
});

test('what a command of the user changed is left', async (context) => {
  const { session, workspace } = await open(context, bash('echo one > a.txt'), say('done'));
  await session.whileUserRuns(async () => writeFileSync(path.join(workspace, 'b.txt'), 'mine'));
  await session.prompt('first');
  await session.rewind({ at: 0 });
  assert.deepEqual([text(workspace, 'a.txt'), text(workspace, 'b.txt')], [null, 'mine']);
});

test('careful asks before files are lost that could not be taken back, and only then', async (context) => {
  const asked: string[] = [];
  const { session, workspace } = await openWith(
    context,
    {
      preset: 'careful',
      sandbox: 'workspace',
      onApproval: ({ input }) => {
        asked.push(JSON.stringify(input));
        return { deny: 'no' };
      },
    },
    [
      bash('rm -rf src precious.txt'),
      say('done'),
      bash('uniq src/clean.ts secret.env; rm secret.env'),
      say('done'),
      bash('rm large.env'),
      say('not done'),
    ],
  );
  writeFileSync(path.join(workspace, '.git', 'info', 'exclude'), '*.env\n');
  writeFileSync(path.join(workspace, 'secret.env'), 'ignored\n');
  writeFileSync(path.join(workspace, 'large.env'), '');
  truncateSync(path.join(workspace, 'large.env'), 21 * 1024 * 1024);
  await session.prompt('first');
  assert.deepEqual([asked, text(workspace, 'precious.txt')], [[], null]);
  await session.prompt('second');
  assert.deepEqual([asked, text(workspace, 'secret.env')], [[], null]);
  await session.prompt('third');
  assert.deepEqual(asked, ['{"command":"rm large.env"}']);
  await session.rewind({ at: 0 });
  assert.equal(text(workspace, 'precious.txt'), 'precious\n');
  assert.equal(text(workspace, 'secret.env'), 'ignored\n');
});

test('what several calls of one reply changed is taken back together', async (context) => {
  const { session, workspace } = await open(
    context,
    callTools(
      rawCall('1', 'read', { path: 'src/clean.ts' }),
      rawCall('2', 'edit', { path: 'src/clean.ts', oldText: 'clean', newText: 'one' }),
      rawCall('3', 'edit', { path: 'src/clean.ts', oldText: 'one', newText: 'two' }),
      rawCall('4', 'write', { path: 'made.txt', content: 'made\n' }),
      rawCall('5', 'bash', { command: 'echo more >> made.txt; rm precious.txt; echo b > b.txt' }),
      rawCall('6', 'bash', { command: 'echo again > precious.txt; echo c >> b.txt' }),
      rawCall('7', 'edit', { path: 'src/clean.ts', oldText: 'two', newText: 'three' }),
    ),
    say('done'),
  );
  await session.prompt('first');
  assert.equal(text(workspace, 'src/clean.ts'), 'three\n');
  assert.equal(text(workspace, 'made.txt'), 'made\nmore\n');
  const back = await session.rewind({ at: 0 });
  assert.deepEqual(back.left, []);
  const names = ['src/clean.ts', 'made.txt', 'precious.txt', 'b.txt'];
  assert.deepEqual(
    names.map((name) => text(workspace, name)),
    ['clean\n', null, 'precious\n', null],
  );
  await session.redo();
  assert.deepEqual(
    names.map((name) => text(workspace, name)),
    ['three\n', 'made\nmore\n', 'again\n', 'b\nc\n'],
  );
});

test('a folder that was moved, before another command of the reply, goes back', async (context) => {
  const { session, workspace } = await open(
    context,
    callTools(
      rawCall('1', 'bash', { command: 'mv src lib' }),
      rawCall('2', 'bash', { command: 'echo > other.txt' }),
    ),
    say('done'),
  );
  await session.prompt('first');
  assert.equal(text(workspace, 'lib/dirty.ts'), 'dirty\n');
  await session.rewind({ at: 0 });
  assert.equal(existsSync(path.join(workspace, 'lib')), false);
  assert.equal(text(workspace, 'src/dirty.ts'), 'dirty\n');
});

test('of two rewinds at once one is refused, and none waits for ever', async (context) => {
  const { session, workspace } = await open(context, bash('echo one > new.txt'), say('done'));
  await session.prompt('first');
  const both = await Promise.allSettled([session.rewind({ at: 0 }), session.rewind({ at: 0 })]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  assert.equal(text(workspace, 'new.txt'), null);
});

test('a rewind whose session ends before its files are known is not told as done', async (context) => {
  const journals = watchedStore(memoryJournals(), (drafts) => {
    if (typesOf(drafts).includes('Rewound')) throw new Error('the disk is full');
  });
  const answers = [bash('rm precious.txt'), say('gone')];
  const { session, workspace } = await openWith(context, { sandbox: 'off' }, answers, { journals });
  await session.prompt('clean up');
  await assert.rejects(session.rewind({ at: 0 }), /the disk is full/);
  assert.equal(text(workspace, 'precious.txt'), 'precious\n', 'control: it was being done');
});

test('neither a rewind that can not be sent nor a wait that the end breaks off goes on watching', async (context) => {
  let isBroken = false;
  const clock: Clock = {
    ...systemClock,
    now: () => (isBroken ? Number.NaN : systemClock.now()),
  };
  const journals = watchedStore(memoryJournals(), (drafts) => {
    if (typesOf(drafts).includes('CancelTurn')) throw new Error('the disk is full');
  });
  const answers = [bash('rm precious.txt'), say('gone'), hang()];
  const more = { clock, journals };
  const { session } = await openWith(context, { sandbox: 'off' }, answers, more);
  await session.prompt('clean up');
  let watching = 0;
  const { watch } = session;
  const counted: typeof watch = (watcher) => {
    const unwatch = watch(watcher);
    watching += 1;
    return () => {
      watching -= 1;
      unwatch();
    };
  };
  Object.assign(session, { watch: counted });
  isBroken = true;
  await assert.rejects(session.rewind({ at: 0 }), /the clock gives no time/);
  isBroken = false;
  const afterRewind = watching;
  await session.send({ type: 'UserInput', text: 'wait', mode: 'steer' });
  const waiting = assert.rejects(session.idle(), /the disk is full/);
  await assert.rejects(session.cancel(), /the disk is full/);
  await waiting;
  assert.deepEqual([afterRewind, watching - afterRewind], [0, 0]);
});

test('the model learns that files stay when only the conversation goes back', async (context) => {
  const { session } = await open(context, bash('echo one > new.txt'), say('done'));
  await session.prompt('first');
  await session.rewind({ at: 0, files: false });
  const { session: data } = await session.state();
  assert.match(data.notes.join(), /not from the files.*: new\.txt\. Read/);
});

test('a session without checkpoints takes only the conversation back', async (context) => {
  const { session, workspace } = await openWith(
    context,
    { sandbox: 'off' },
    [bash('echo one > new.txt'), say('done')],
    { checkpoints: false },
  );
  await session.prompt('first');
  await session.rewind({ at: 0 });
  assert.equal(text(workspace, 'new.txt'), 'one\n');
  assert.equal(messagesOf((await session.state()).session.conversation).length, 0);
});

test('a rewind before a summary brings its messages again, and the way forward the summary', async (context) => {
  const { session, workspace } = await open(
    context,
    bash('echo one > new.txt'),
    say('done'),
    say('the summary'),
    bash('echo two > new.txt'),
    say('done too'),
  );
  await session.prompt('first');
  await session.send({ type: 'CompactRequested' });
  await session.idle();
  const messages = async (): Promise<string> =>
    JSON.stringify(messagesOf((await session.state()).session.conversation));
  const summarised = await messages();
  await session.prompt('second');
  const turns = (await session.timeline()).filter(({ kind }) => kind === 'turn');
  const at = turns.map(({ seq }) => seq);
  await session.rewind({ at: at[1] ?? 0 });
  assert.deepEqual([await messages(), text(workspace, 'new.txt')], [summarised, 'one\n']);
  await session.rewind({ at: at[0] ?? 0 });
  assert.deepEqual([await messages(), text(workspace, 'new.txt')], ['[]', null]);
  await session.redo();
  assert.deepEqual([await messages(), text(workspace, 'new.txt')], [summarised, 'one\n']);
});

test('a summary whose messages no longer fit the window is not taken back', async (context) => {
  const { session } = await open(context, say('x'.repeat(40_000)), say('the summary'));
  await session.prompt('first');
  await session.send({ type: 'CompactRequested' });
  await session.idle();
  const state = async () => (await session.state()).session;
  const summarised = (await state()).conversation;
  await session.send({ type: 'SettingsChanged', patch: { windowTokens: 8_000 } });
  await assert.rejects(session.undoCompaction(), /no longer fit: about \d+ tokens/);
  assert.deepEqual((await state()).conversation, summarised);
});
