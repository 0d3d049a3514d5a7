import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import {
  type Ended,
  expectCode,
  makePlace,
  type Place,
  sessionOf,
  startPawl,
  uniqueSleep,
} from './pawl.js';

/** Commands that take back what a stored session did, without a key and without a network. */

type Call = readonly [tool: string, input: object];
const bash = (command: string): Call => ['bash', { command }];

const lines = (ended: Ended): readonly Record<string, unknown>[] =>
  ended.stdout
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** Runs a turn with one call. `earlier`: the calls of the turns that the conversation has already. */
const runTurn = async (
  place: Place,
  prompt: string,
  call: Call,
  earlier: readonly Call[] = [],
  more: readonly string[] = earlier.length === 0 ? [] : ['-c'],
): Promise<void> => {
  const replies = [...earlier, call].flatMap(([tool, input]) => [
    { calls: [{ tool, input }] },
    { text: 'Done.' },
  ]);
  const script = join(place.home, 'script.json');
  writeFileSync(script, JSON.stringify({ replies }));
  const model = ['--model', `scripted/${script}`, '--preset', 'auto'];
  const ended = await runInProcess(place, ['-p', prompt, '--json', ...model, ...more]);
  expectCode(ended, 0);
  const results = lines(ended).filter(({ type }) => type === 'toolResult');
  assert.deepEqual(
    results.map(({ status }) => status),
    ['ok'],
    ended.stdout,
  );
};

const git = (place: Place, ...words: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
    cwd: place.workspace,
    env: { ...place.environment, GIT_CONFIG_GLOBAL: '/dev/null' },
    encoding: 'utf8',
  });

const read = (place: Place, name: string): string =>
  readFileSync(join(place.workspace, name), 'utf8');

const THIRD = bash('echo three >> src/a.ts');

type Story = Place & { readonly id: string };

/** A repository with a session of two turns: a file is written, then `src` is deleted. */
const writeStory = async (place: Place): Promise<Story> => {
  mkdirSync(join(place.workspace, 'src'));
  writeFileSync(join(place.workspace, 'src/a.ts'), 'one\ntwo\n');
  writeFileSync(join(place.workspace, 'src/b.ts'), 'b\n');
  git(place, 'init', '-q');
  git(place, 'add', '.');
  git(place, 'commit', '-qm', 'one');
  writeFileSync(join(place.workspace, 'precious.txt'), 'not in git\n');
  await runTurn(place, 'Add a third line', THIRD);
  await runTurn(place, 'Clean up', bash('rm -rf src precious.txt && echo x > left.txt'), [THIRD]);
  return { ...place, id: sessionOf(place) };
};

const makeStory = (context: TestContext): Promise<Story> => writeStory(makePlace(context));

/** One for all tests that change nothing in it, and for one that takes it back and forward again. */
const kept = makePlace({ after });
let story: Story;
before(async () => {
  story = await writeStory(kept);
});

/** A file that only this session's checkpoint knows, and programs of the repository that overwrite it. */
const makePrecious = (context: TestContext): Place => {
  const place = makePlace(context);
  mkdirSync(join(place.workspace, 'bin'));
  for (const name of ['cat', 'other'])
    writeFileSync(join(place.workspace, 'bin', name), '#!/bin/sh\necho ran > notes\n', {
      mode: 0o755,
    });
  writeFileSync(join(place.workspace, 'a'), 'a\n');
  git(place, 'init', '-q');
  git(place, 'add', '.');
  git(place, 'commit', '-qm', 'one');
  writeFileSync(join(place.workspace, 'notes'), 'precious\n');
  return { ...place, environment: { ...place.environment, PATH: `./bin:${process.env.PATH}` } };
};

const overwriting = [
  './bin/cat a',
  'cat a',
  'git log --output=notes',
  './bin/other a', // control: a name that nobody takes for that of a program that reads
];
for (const command of chooseRows(overwriting))
  test(`what a command that seems to read has overwritten is taken back: ${command}`, async (context) => {
    const place = makePrecious(context);
    await runTurn(place, 'Look', bash(command));
    assert.notEqual(read(place, 'notes'), 'precious\n');
    expectCode(await runInProcess(place, ['rewind', sessionOf(place), '--at', '0']), 0);
    assert.equal(read(place, 'notes'), 'precious\n');
  });

test('a command that only reads, in the foreground or in the background, is followed by no look', async (context) => {
  const place = makePrecious(context);
  const reading = bash('ls && grep -c precious notes');
  await runTurn(place, 'Look', reading);
  const job: Call = ['bash', { command: 'sort notes', background: true }];
  await runTurn(place, 'Look', job, [reading]);
  const journal = join(place.state, 'pawl', 'sessions', `${sessionOf(place)}.jsonl`);
  const looks = (): readonly string[] => {
    const types = readFileSync(journal, 'utf8').match(/"type":"\w+"/g) ?? [];
    return [...new Set(types)].filter((type) => /Checkpoint|Hook/.test(type));
  };
  assert.deepEqual(looks(), []);
  await runTurn(place, 'Change', bash('echo x > new'), [reading, job]);
  assert.equal(looks().length, 2, 'control: a checkpoint, and the hooks after tools');
});

test('pawl rewind takes back files or the conversation alone, and leaves what somebody else changed', async (context) => {
  const place = await makeStory(context);
  const points = lines(await runInProcess(place, ['rewind', place.id, '--json']));
  const first = String(points.find(({ kind }) => kind === 'turn')?.seq);
  writeFileSync(join(place.workspace, 'left.txt'), 'mine now\n');
  const files = await runInProcess(place, ['rewind', place.id, '--at', first, '--files']);
  expectCode(files, 1);
  assert.match(files.stdout, /left\.txt/);
  assert.match(files.stderr, /--force/);
  assert.equal(read(place, 'src/a.ts'), 'one\ntwo\n');
  assert.equal(read(place, 'left.txt'), 'mine now\n');
  assert.match((await runInProcess(place, ['show', place.id])).stdout, /Clean up/);
  const words = ['rewind', place.id, '--at', first, '--conversation'];
  expectCode(await runInProcess(place, words), 0);
  assert.doesNotMatch((await runInProcess(place, ['show', place.id])).stdout, /Clean up/);
});

test('bad input of rewind, redo, diff, bisect and fork is refused in words that say what to do', async () => {
  const place = story;
  const { id } = place;
  const rows: readonly (readonly [number, RegExp, readonly string[]])[] = [
    [65, /pawl sessions lists them/, ['rewind', 'nobody']],
    [2, /--force needs --at SEQ/, ['rewind', id, '--force']],
    [2, /exclude each other/, ['rewind', id, '--at', '2', '--files', '--conversation']],
    [2, /leaves them alone/, ['rewind', id, '--at', '2', '--conversation', '--force']],
    [2, /There is no entry 9999/, ['rewind', id, '--at', '9999']],
    [2, /whole number above zero/, ['rewind', id, '--at', 'x']],
    [2, /--at <a\.\.b>/, ['diff', id]],
    [2, /as in --at 12\.\.40/, ['diff', id, '--at', '12']],
    [2, /after the end/, ['diff', id, '--at', '1..9999']],
    [2, /earlier one/, ['diff', id, '--at', '9..3']],
    [2, /-- npm test/, ['bisect', id]],
    [2, /fails before the first checkpoint .*, and after each one/, ['bisect', id, '--', 'false']],
    [2, /passes after the last checkpoint/, ['bisect', id, '--', 'true']],
    [
      2,
      /can't be run in a copy of the workspace \(exit code 127\)/,
      ['bisect', id, '--', 'no-such-program'],
    ],
    [2, /lie one in the other/, ['fork', id, '--at', '2', '--worktree', 'inside']],
    [2, /does not exist/, ['fork', id, '--at', '2', '--worktree', '/nowhere/at/all']],
  ];
  for (const [code, words, command] of rows) {
    const ended = await runInProcess(place, command);
    assert.equal(ended.code, code, `${command.join(' ')}\n${ended.stdout}\n${ended.stderr}`);
    assert.match(ended.stderr, words, command.join(' '));
  }
});

test('pawl diff --at shows the files between two entries', async () => {
  const place = story;
  const points = lines(await runInProcess(place, ['rewind', place.id, '--json']));
  const [first, second] = points.filter(({ kind }) => kind === 'turn').map(({ seq }) => seq);
  const one = await runInProcess(place, ['diff', place.id, '--at', `${first}..${second}`]);
  expectCode(one, 1);
  assert.match(one.stdout, /^src\/a\.ts \(changed while a command ran\)\n[\s\S]*\+three\n/);
  assert.doesNotMatch(one.stdout, /precious/);
  const rest = await runInProcess(place, ['diff', place.id, '--at', `${second}..`]);
  assert.match(
    rest.stdout,
    /precious\.txt \(deleted; changed while a command ran\)[\s\S]*-not in git/,
  );
  assert.match(rest.stdout, /left\.txt \(created; changed while a command ran\)[\s\S]*\+x/);
  expectCode(await runInProcess(place, ['diff', place.id, '--at', '1..2']), 0);
});

test('pawl checkpoints lists what is kept', async () => {
  const place = story;
  const all = await runInProcess(place, ['checkpoints']);
  expectCode(all, 0);
  assert.match(all.stdout, new RegExp(`${place.id}.*2 checkpoints`));
  assert.match(all.stderr, /of at most 4 GB, and 1 GB a workspace/);
  const one = await runInProcess(place, ['checkpoints', place.id]);
  assert.match(one.stdout, /bash echo three >> src\/a\.ts: \+1 src\/a\.ts while it ran\n/);
  assert.match(one.stderr, /2 checkpoints, \d+ bytes of contents/);
  const [found] = lines(await runInProcess(place, ['checkpoints', place.id, '--json']));
  assert.ok(Array.isArray(found?.checkpoints));
});

test('pawl rewind lists turns and calls with what each changed, goes back, and pawl redo forward', async () => {
  const place = story;
  const listed = await runInProcess(place, ['rewind', place.id]);
  expectCode(listed, 0);
  assert.match(listed.stdout, /Add a third line[\s\S]*\+1 src\/a\.ts/);
  assert.match(listed.stdout, /Clean up[\s\S]*left\.txt created, 3 files deleted while rm -rf src/);
  const points = lines(await runInProcess(place, ['rewind', place.id, '--json']));
  const turn = points.find(({ title }) => title === 'Clean up');
  assert.equal(turn?.kind, 'turn');
  const at = ['--at', String(turn?.seq)];

  const planned = await runInProcess(place, ['rewind', place.id, ...at, '--dry-run', '--json']);
  expectCode(planned, 0);
  const [plan] = lines(planned);
  assert.equal(plan?.dryRun, true);
  assert.equal(existsSync(join(place.workspace, 'src')), false, 'a dry run changes nothing');

  const back = await runInProcess(place, ['rewind', place.id.slice(0, -1), ...at, '--json']);
  expectCode(back, 0);
  const [report] = lines(back);
  assert.deepEqual(report?.left, []);
  assert.deepEqual(report?.changes, plan?.changes);
  assert.equal(read(place, 'src/a.ts'), 'one\ntwo\nthree\n');
  assert.equal(read(place, 'precious.txt'), 'not in git\n');
  assert.equal(existsSync(join(place.workspace, 'left.txt')), false);
  const shown = await runInProcess(place, ['show', place.id]);
  assert.doesNotMatch(shown.stdout, /Clean up/);

  expectCode(await runInProcess(place, ['redo', place.id]), 0);
  assert.deepEqual(
    readdirSync(place.workspace).filter((name) => name !== '.git'),
    ['left.txt'],
  );
  assert.match((await runInProcess(place, ['show', place.id])).stdout, /Clean up/);
  const again = await runInProcess(place, ['redo', place.id]);
  expectCode(again, 2);
  assert.match(again.stderr, /nothing to go forward to/);
});

test('pawl fork --worktree has the files as they were, in a worktree without a branch; --prune removes what is kept', async () => {
  const place = story;
  const points = lines(await runInProcess(place, ['rewind', place.id, '--json']));
  const at = String(points.find(({ title }) => title === 'Clean up')?.seq);
  const folder = join(place.folder, 'copy');
  const forked = await runInProcess(place, ['fork', place.id, '--at', at, '--worktree', folder]);
  expectCode(forked, 0);
  assert.match(forked.stderr, /files are in .*copy as they were then/);
  assert.equal(readFileSync(join(folder, 'src/a.ts'), 'utf8'), 'one\ntwo\nthree\n');
  assert.equal(readFileSync(join(folder, 'precious.txt'), 'utf8'), 'not in git\n');
  assert.equal(existsSync(join(folder, 'left.txt')), false);
  assert.equal(existsSync(join(place.workspace, 'src')), false, 'the workspace stays as it is');
  const status = execFileSync('git', ['status', '--porcelain', '--branch'], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, '## HEAD (no branch)\n M src/a.ts\n?? precious.txt\n');
  const fork = forked.stdout.trim();
  await runTurn(place, 'Go on', bash('pwd > here.txt'), [THIRD], ['--resume', fork]);
  assert.equal(readFileSync(join(folder, 'here.txt'), 'utf8').trim(), folder);
  const pruned = await runInProcess(place, ['checkpoints', place.id, '--prune']);
  expectCode(pruned, 0);
  assert.equal(pruned.stdout.trim(), place.id);
});

test('an export with files can be taken back after an import; a file with a secret stays out', async (context) => {
  const place = makePlace(context, { SOME_TOKEN: 'a-value-that-nobody-else-sees' });
  writeFileSync(join(place.workspace, 'precious.txt'), 'not in git\n');
  writeFileSync(join(place.workspace, 'key.txt'), 'key=a-value-that-nobody-else-sees\n');
  await runTurn(place, 'Clean up', bash('rm precious.txt key.txt'));
  const id = sessionOf(place);
  const [file, bare] = [join(place.folder, 'with.pawl'), join(place.folder, 'bare.pawl')];
  expectCode(await runInProcess(place, ['export', id, bare]), 0);
  const exported = await runInProcess(place, ['export', id, file, '--with-files']);
  expectCode(exported, 0);
  assert.match(exported.stderr, /left out: key\.txt \(it holds the value of \$SOME_TOKEN\)/);
  assert.match(exported.stderr, /1 checkpoint with 1 content of files/);
  assert.match(readFileSync(file, 'utf8'), /not in git/);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /nobody-else-sees/);

  const elsewhere = (name: string): Place => {
    const state = join(place.folder, name);
    mkdirSync(state);
    return { ...place, state, environment: { ...place.environment, XDG_STATE_HOME: state } };
  };
  const without = elsewhere('without');
  expectCode(await runInProcess(without, ['import', bare]), 0);
  const refused = await runInProcess(without, ['rewind', id, '--at', '0', '--files']);
  assert.match(refused.stdout + refused.stderr, /a checkpoint is not here: .* export left it out/);
  assert.ok(!existsSync(join(place.workspace, 'precious.txt')));

  const other = elsewhere('other');
  const imported = await runInProcess(other, ['import', file]);
  expectCode(imported, 0);
  assert.match(
    imported.stderr,
    /1 checkpoint stored: its changes can be taken back if you stand in .*work\./,
  );
  const back = await runInProcess(other, ['rewind', id, '--at', '0', '--files']);
  assert.equal(read(place, 'precious.txt'), 'not in git\n');
  assert.ok(!existsSync(join(place.workspace, 'key.txt')));
  assert.match(
    back.stdout + back.stderr,
    /key\.txt is left as it is: its content is not in the store/,
  );
  const page = await runInProcess(place, ['export', id, '--html', 'a.html', '--with-files']);
  expectCode(page, 2);
});

test('pawl bisect names the call after which a command fails', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.workspace, 'n.txt'), '0\n');
  const calls = ['1', '2', '7', '8'].map((value) => bash(`echo ${value} > n.txt`));
  for (const [index, call] of calls.entries())
    await runTurn(place, `turn ${index + 1}`, call, calls.slice(0, index));
  const id = sessionOf(place);
  writeFileSync(join(place.workspace, 'n.txt'), 'mine\n');
  const found = await runInProcess(place, ['bisect', id, '--', 'test "$(cat n.txt)" -lt 5']);
  expectCode(found, 0);
  assert.match(found.stdout, /It fails since seq \d+, and passes after the one at seq \d+\./);
  assert.match(found.stdout, /call: bash echo 7 > n\.txt\nprompt: turn 3\n[\s\S]*-2\n\+7\n/);
  assert.doesNotMatch(found.stderr, /not consistent/);
  assert.equal(read(place, 'n.txt'), 'mine\n');
  assert.deepEqual(
    readdirSync(place.folder).filter((name) => name.startsWith('pawl-bisect')),
    [],
  );
});

test('a rewind says where a session was written before Pawl kept files', async (context) => {
  const place = makePlace(context);
  const golden = new URL('../../../agent/test/journal/golden/format-1.pawl', import.meta.url);
  const imported = await runInProcess(place, ['import', fileURLToPath(golden)]);
  const id = imported.stdout.trim();
  const told = /an earlier version of Pawl wrote the entries up to \d+, and kept no files/;
  for (const words of [
    ['rewind', id],
    ['rewind', id, '--at', '0', '--dry-run'],
  ])
    assert.match((await runInProcess(place, words)).stderr, told);
  const conversation = ['rewind', id, '--at', '0', '--dry-run', '--conversation'];
  assert.doesNotMatch((await runInProcess(place, conversation)).stderr, told);
});

test('a rewind stops a turn that was killed, and takes its changes back', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.workspace, 'a.txt'), 'a\n');
  const command = `rm a.txt; echo b > b.txt; sleep ${uniqueSleep(context)}`;
  const script = join(place.home, 'script.json');
  const replies = [{ calls: [{ tool: 'bash', input: { command } }] }, { text: 'Done.' }];
  writeFileSync(script, JSON.stringify({ replies }));
  const model = ['--model', `scripted/${script}`, '--preset', 'auto'];
  const running = startPawl(place, ['-p', 'go', ...model]);
  await until('the command', () => existsSync(join(place.workspace, 'b.txt')));
  running.child.kill('SIGKILL');
  await running.ended;
  const back = await runInProcess(place, ['rewind', sessionOf(place), '--at', '0']);
  expectCode(back, 0);
  assert.match(back.stderr, /was interrupted: it is stopped now/);
  assert.deepEqual(readdirSync(place.workspace), ['a.txt']);
  assert.equal(read(place, 'a.txt'), 'a\n');
});

test('pawl rewind --refs moves the branch back, and pawl redo forward', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.workspace, 'a.txt'), 'one\n');
  git(place, 'init', '-q', '-b', 'main');
  git(place, 'config', 'user.name', 'a');
  git(place, 'config', 'user.email', 'a@b');
  git(place, 'add', '.');
  git(place, 'commit', '-qm', 'one');
  const head = () => git(place, 'log', '--format=%s', '-1').trim();
  await runTurn(place, 'commit', bash('echo two > a.txt; git commit -qam two'));
  assert.equal(head(), 'two');
  const id = sessionOf(place);
  const at = String(lines(await runInProcess(place, ['rewind', id, '--json']))[0]?.seq);
  const rewind = async (...words: readonly string[]): Promise<string> => {
    const ended = await runInProcess(place, ['rewind', id, '--at', at, ...words]);
    expectCode(ended, 0);
    return ended.stdout;
  };
  assert.match(await rewind('--refs', '--dry-run'), /branch main is at [0-9a-f]{8}; the index is/);
  assert.doesNotMatch(await rewind('--dry-run'), /branch main/);
  assert.equal(head(), 'two');
  await rewind('--refs');
  assert.equal(head(), 'one');
  assert.equal(git(place, 'status', '--porcelain', '--untracked-files=no'), '');
  expectCode(await runInProcess(place, ['redo', id]), 0);
  assert.equal(head(), 'two');
  assert.equal(read(place, 'a.txt'), 'two\n');
  const refused = await runInProcess(place, ['rewind', id, '--at', at, '--refs', '--conversation']);
  expectCode(refused, 2);
});

testDeep(
  'a session whose folder can be no workspace, or is gone, is refused in words by each command that works there',
  async (context) => {
    const place = await makeStory(context);
    const [point] = lines(await runInProcess(place, ['rewind', place.id, '--json'])).toReversed();
    const at = ['--at', String(point?.seq)];
    const [aside, secrets] = [`${place.workspace}-aside`, join(place.home, '.ssh')];
    mkdirSync(secrets, { recursive: true });
    const elsewhere = { ...place, workspace: place.home };
    const commands = [
      ['rewind', place.id, ...at, '--dry-run'],
      ['rewind', place.id, ...at],
      ['redo', place.id],
    ];
    const refuseAll = async (code: number, why: RegExp): Promise<void> => {
      for (const words of commands) {
        const refused = await runInProcess(elsewhere, words);
        expectCode(refused, code);
        assert.match(refused.stderr, why, words.join(' '));
      }
    };
    renameSync(place.workspace, aside);
    const next = `Put the folder back, or go on elsewhere: pawl --resume ${place.id} --workspace`;
    await refuseAll(65, new RegExp(`can't be opened: it does not exist\\. ${next}`));
    symlinkSync(secrets, place.workspace);
    await refuseAll(
      2,
      new RegExp(`can't be the workspace, since secrets are kept there\\. ${next}`),
    );
    rmSync(place.workspace);
    renameSync(aside, place.workspace);
    const worktree = ['fork', place.id, ...at, '--worktree', join(secrets, 'fork')];
    const refused = await runInProcess(place, worktree);
    expectCode(refused, 2);
    assert.match(refused.stderr, /secrets are kept there\. Name another folder\./);
    assert.equal(existsSync(join(secrets, 'fork')), false);
    for (const words of commands) expectCode(await runInProcess(place, words), 0);
  },
);

test('what a rewind replaced or removed comes back at any later time, and the files of tools go alone', async (context) => {
  const place = await makeStory(context);
  const { id } = place;
  writeFileSync(join(place.workspace, '.gitignore'), 'left.gz\n');
  await runTurn(
    place,
    'More',
    ['write', { path: 'tool.txt', content: 'by a tool\n' }],
    [THIRD, THIRD],
  );
  const edits = await runInProcess(place, ['rewind', id, '--at', '0', '--edits-only', '--json']);
  expectCode(edits, 1);
  const [report] = lines(edits);
  assert.equal(existsSync(join(place.workspace, 'tool.txt')), false);
  assert.equal(read(place, 'left.txt'), 'x\n');
  assert.match(JSON.stringify(report?.left), /left\.txt","why":"it changed while a command ran/);
  const all = await runInProcess(place, ['rewind', id, '--at', '0', '--files']);
  expectCode(all, 0);
  assert.match(
    all.stdout,
    /4 files changed back \(changed while commands ran, so some may be yours\)/,
  );
  assert.match(
    all.stderr,
    /is stored:\n {2}pawl checkpoints \S+ --restore PATH\nTo go forward again: pawl redo \S+\n/,
  );
  await runTurn(place, 'Go on', bash('echo new > later.txt'), [], ['-c']);
  for (const [name, text] of [
    ['left.txt', 'x\n'],
    ['tool.txt', 'by a tool\n'],
  ] as const) {
    assert.equal(existsSync(join(place.workspace, name)), false);
    const restored = await runInProcess(place, ['checkpoints', id, '--restore', name]);
    expectCode(restored, 0);
    assert.match(restored.stdout, new RegExp(`${name} is as it was at \\d+`));
    assert.equal(read(place, name), text);
  }
  writeFileSync(join(place.workspace, 'src/a.ts'), 'mine\n');
  const listed = await runInProcess(place, ['checkpoints', id, '--restore', 'src/a.ts', '--json']);
  const [versions] = lines(listed);
  assert.equal(read(place, 'src/a.ts'), 'one\ntwo\n', 'the newest version that differs');
  const third = (versions?.versions as { seq: number }[] | undefined)?.[1]?.seq;
  const older = ['checkpoints', id, '--restore', 'src/a.ts', '--at', String(third)];
  expectCode(await runInProcess(place, older), 0);
  assert.equal(read(place, 'src/a.ts'), 'one\ntwo\nthree\n');
  expectCode(await runInProcess(place, ['redo', id]), 0);
  expectCode(await runInProcess(place, ['redo', id]), 0);
  assert.equal(read(place, 'src/a.ts'), 'mine\n', 'what a restore replaced is stored, too');
  const below = { ...place, workspace: join(place.workspace, 'src') };
  for (const named of ['a.ts', 'src/a.ts'])
    expectCode(await runInProcess(below, ['checkpoints', id, '--restore', named]), 0);
  const outside = ['checkpoints', id, '--restore', '/src/a.ts'];
  expectCode(await runInProcess(place, outside), 2);
  expectCode(await runInProcess(place, ['checkpoints', id, '--restore', 'no.txt']), 2);
  expectCode(await runInProcess(place, ['checkpoints', id, '--at', '3']), 2);
});
