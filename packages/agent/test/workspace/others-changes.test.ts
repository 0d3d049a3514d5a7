import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import '../../../../test/own-process.js';
import { chooseRows } from '../../../../test/tier.js';
import { acquireLock } from '../../src/journal/lock.js';
import { lockPath } from '../../src/journal/state-folder.js';
import { toolCall } from '../../src/machine/event.js';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import type { HookContext, HookReport } from '../../src/ports/hooks.js';
import { createFileMemory } from '../../src/tools/file-change.js';
import { createHooks } from '../../src/workspace/after-tool-hooks.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';
import { installProgram } from './formatting.js';
import { writeAsTool } from './place.js';
import { type Folder, makeFolder, type WatchedSession } from './whose-changes.js';

/** Formatters and auto-commit change and commit nothing that somebody else may have changed. */

type Batch = {
  readonly folder: Folder;
  readonly two: WatchedSession;
  /** A command runs, and meanwhile `work` is done. `then`: after its end, before the look. */
  bash(work: () => unknown, then?: () => void): Promise<void>;
  atEnd(work: () => Promise<void>): void;
  /** A tool writes the file; a null text: it fails, and writes nothing. */
  edit(name: string, text: string | null, then?: () => void): Promise<void>;
};

/** In this language a formatted file has no blanks at the ends of its lines. */
const STRIP = "sed 's/ *$//'";
const OLD = 'old\n';
const ROUGH = 'agent  \n';
const FINE = 'agent\n';

const runBatch = async (
  t: TestContext,
  more: Partial<Settings>,
  does: (batch: Batch) => Promise<void>,
): Promise<{ readonly folder: Folder; readonly reports: readonly HookReport[] }> => {
  const folder = makeFolder(t, { 'a.go': OLD, 'b.go': OLD, 'go.mod': 'module a\n' });
  const { workspace, stateFolder } = folder;
  const root = path.dirname(workspace);
  const bin = { root } as Parameters<typeof installProgram>[0]; // it reads no more of it
  const environment = { ...process.env, PATH: installProgram(bin, 'gofmt', STRIP), HOME: root };
  await folder.rest();
  const files = createFileMemory();
  const written = (file: string): string | undefined => files.ownWrite?.(file)?.after;
  const place = { workspace, stateFolder, sessionId: 'one', environment, written };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  const hooks = createHooks({ environment, observer: checkpoints });
  const settings: Settings = {
    ...defaultSettings,
    model: 'test/model',
    workspace,
    sandbox: 'off',
    formatter: 'onChanges',
    autoCommit: 'on',
    ...more,
  };
  const calls: JudgedCall[] = [];
  const run = async (call: JudgedCall, work: () => unknown, then: () => void): Promise<void> => {
    await hooks.before(call, settings);
    await checkpoints.before(call);
    await work();
    await folder.rest();
    const looked = checkpoints.after(call);
    // the look begins only after this: nothing else runs before
    for (const endedAtMs = Date.now(); Date.now() < endedAtMs + 30; );
    then();
    await looked;
    calls.push(call);
  };
  const traits = { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 } as const;
  await does({
    folder,
    two: folder.session('two'),
    atEnd: (work) => t.after(work),
    bash: (work, then = () => undefined) =>
      run(
        toolCall({
          callId: `${calls.length}`,
          tool: 'bash',
          traits,
          facts: { paths: [workspace] },
        }),
        work,
        then,
      ),
    edit: (name, text, then = () => undefined) => {
      const file = path.join(workspace, name);
      const call = toolCall({
        callId: `${calls.length}`,
        tool: 'write',
        traits: { ...traits, group: 'fileChanges' },
        facts: { paths: [file] },
      });
      return run(call, () => (text === null ? null : writeAsTool(file, text, files)), then);
    },
  });
  const context = (reports: readonly HookReport[]): HookContext => ({
    workspace,
    settings,
    calls,
    reports,
    interrupted: null,
    prepare: async () => undefined,
    files,
    signal: new AbortController().signal,
    write: async () => 'feat: something',
  });
  const checked = await hooks.run('CheckingGitCommits', context([]));
  const formatted = await hooks.run('RunningAutoformatters', context([checked]));
  if (settings.autoCommit === 'off') return { folder, reports: [checked, formatted] };
  const committed = await hooks.run('AutoCommitting', context([checked, formatted]));
  return { folder, reports: [checked, formatted, committed] };
};

type Row = {
  readonly title: string;
  readonly does: (batch: Batch) => Promise<void>;
  /** The file afterwards. */
  readonly file: string;
  /** Why it is not committed; null: it is. */
  readonly why: string | null;
};

const TWO = 'the session two changed it too';
const ELSE = 'somebody else changed it too';
const AFTER = 'it changed when the call had just ended, nobody knows by whom';
const DIRTY = 'it had uncommitted changes before the agent changed it';

const rows: readonly Row[] = [
  {
    title: 'control: what a command writes is formatted and committed',
    does: ({ folder, bash }) => bash(() => folder.write('a.go', ROUGH)),
    file: FINE,
    why: null,
  },
  {
    title: 'what the user saves when a command has just ended is neither',
    does: ({ folder, bash }) =>
      bash(
        () => folder.write('a.go', ROUGH),
        () => folder.write('a.go', 'user  \n'),
      ),
    file: 'user  \n',
    why: AFTER,
  },
  {
    title: 'what a tool of another session wrote while a command ran is neither',
    does: ({ bash, two }) =>
      bash(async () => {
        await two.edit('a.go', 'two  \n');
        await two.end();
      }),
    file: 'two  \n',
    why: TWO,
  },
  {
    title: 'what a tool of another session is writing while a command runs is neither',
    does: ({ bash, two }) => bash(() => two.edit('a.go', 'two  \n')),
    file: 'two  \n',
    why: TWO,
  },
  {
    title: 'what changed while commands of two sessions ran is neither',
    does: async ({ folder, bash, two, atEnd }) => {
      mkdirSync(path.dirname(lockPath(folder.stateFolder, 'two')), { recursive: true });
      const lock = await acquireLock(lockPath(folder.stateFolder, 'two'));
      await two.bash('npm start', () => bash(() => folder.write('a.go', ROUGH)));
      atEnd(() => lock.release());
    },
    file: ROUGH,
    why: TWO,
  },
  {
    title: 'control: what another session did before the command does not count',
    does: async ({ folder, bash, two }) => {
      await two.edit('a.go', 'two\n');
      await two.end();
      folder.git('commit', '-qam', 'two');
      await folder.rest();
      await bash(() => folder.write('a.go', ROUGH));
    },
    file: FINE,
    why: null,
  },
  {
    title: 'a half-written file of the user that had changes before is neither',
    does: async ({ folder, bash }) => {
      folder.write('a.go', 'half\n');
      await folder.rest();
      await bash(() => folder.write('a.go', 'half a line  \n'));
    },
    file: 'half a line  \n',
    why: DIRTY,
  },
  {
    title: 'control: what a tool writes is formatted and committed',
    does: ({ edit }) => edit('a.go', ROUGH),
    file: FINE,
    why: null,
  },
  {
    title: 'what the user saves over the text of a tool at once is neither',
    does: ({ folder, edit }) => edit('a.go', ROUGH, () => folder.write('a.go', 'user  \n')),
    file: 'user  \n',
    why: ELSE,
  },
  {
    title: 'what the user saves while a tool fails is neither',
    does: ({ folder, edit }) => edit('a.go', null, () => folder.write('a.go', 'user  \n')),
    file: 'user  \n',
    why: 'no call of the agent is known to have changed it',
  },
];

for (const { title, does, file, why } of rows)
  test(`after a batch ${title}`, async (t) => {
    const { folder, reports } = await runBatch(t, {}, does);
    assert.equal(folder.read('a.go'), file);
    const { commits = [], note = '', warning = '' } = reports[2] ?? {};
    assert.equal(commits.length, why === null ? 1 : 0, warning);
    for (const text of [note, warning])
      assert.equal(text.includes(`Not committed: a.go: ${why}.`), why !== null, text);
  });

for (const { title, does, file } of chooseRows(rows, ({ why }) => why ?? 'control'))
  test(`without auto-commit, after a batch ${title}`, async (t) => {
    const { folder } = await runBatch(t, { autoCommit: 'off' }, does);
    assert.equal(folder.read('a.go'), file);
  });
