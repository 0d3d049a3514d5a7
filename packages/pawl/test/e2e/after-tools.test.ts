import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path, { join } from 'node:path';
import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { chooseRows, testDeep } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';
import { GOOD, makeRepository, type Repository, shadow } from './after-tools.js';
import { runInProcess } from './in-process.js';
import {
  expectCode,
  expectValid,
  makeServed,
  readRecords,
  sessionOf,
  startPawl,
  uniqueSleep,
} from './pawl.js';
import { call, done, last, message, text } from './wire-words.js';

/** What happens after tools, in real repositories: commits are noticed, files formatted, changes committed. */

const ROUGH = 'export const a = {b:2}\n';
const SMOOTH = 'export const a = { b: 2 };\n';

const read = (place: Repository, name: string): string =>
  readFileSync(join(place.workspace, name), 'utf8');

/** The texts that the model was sent after the results, in its nth request. */
const notes = ({ server }: Repository, request: number): readonly string[] =>
  last(server.requests[request]?.body).flatMap((part) =>
    part.type === 'text' ? [String(part.text)] : [],
  );

const resultsOf = ({ server }: Repository, request: number): readonly string[] =>
  last(server.requests[request]?.body).flatMap((part) =>
    part.type === 'tool_result' ? [JSON.stringify(part)] : [],
  );

const rewrite = message(call('w', 'write', { path: 'a.ts', content: ROUGH }));
const readFirst = message(call('r', 'read', { path: 'a.ts' }));

test('a new commit made by a command is shown to the user and told to the model', async (context) => {
  const command =
    'echo "export const c = 3;" > c.ts && git add c.ts && git commit -qm "Add c" && echo ok';
  const place = await makeRepository(context, [message(call('a', 'bash', { command })), done]);
  const ended = await runInProcess(place, ['-p', 'add c and commit it']);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.match(ended.stderr, /^· new commit [0-9a-f]{8} Add c \(1 file, .*\)$/m);
  assert.equal(ended.stdout, 'Done.\n');
  assert.match(
    notes(place, 1).join('\n'),
    /\[git\] [\s\S]*1 new commit on main:\n {2}[0-9a-f]{8} Add c/,
  );
  assert.equal(place.git('log', '--format=%s').trim(), 'Add c\nfirst');
});

test('reads start no process of git, and nothing is said; a change does', async (context) => {
  const place = await makeRepository(context, [readFirst, done, rewrite, done]);
  const log = join(place.folder, 'asked');
  const environment = shadow(place, 'git', `echo "$@" >> ${log}; PATH=\${PATH#*:} exec git "$@"`);
  const ended = await runInProcess({ ...place, environment }, [
    '-p',
    'read it',
    '--hooks',
    'always',
  ]);
  expectCode(ended, 0);
  assert.equal(existsSync(log), false);
  assert.deepEqual(notes(place, 1), []);
  expectCode(await runInProcess({ ...place, environment }, ['-p', 'change it', '--continue']), 0);
  assert.equal(existsSync(log), true);
});

test('a file that Prettier governs is formatted after a change, and the next edit fits', async (context) => {
  const edit = { path: 'a.ts', edits: [{ oldText: '{ b: 2 }', newText: '{b:3, c:4}' }] };
  const place = await makeRepository(context, [
    readFirst,
    rewrite,
    message(call('e', 'edit', edit)),
    done,
  ]);
  const ended = await runInProcess(place, ['-p', 'change a', '--json']);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.match(
    notes(place, 2).join('\n'),
    /\[formatters\] [\s\S]*a\.ts \(Prettier\):\n@@[\s\S]*\n\+export const a = \{ b: 2 \};$/,
  );
  assert.match(resultsOf(place, 3).join(), /Edited a\.ts/);
  assert.equal(read(place, 'a.ts'), 'export const a = { b: 3, c: 4 };\n');
  const records = readRecords(ended.stdout);
  const phases = records.flatMap((record) => (record.type === 'hookStarted' ? [record.phase] : []));
  assert.deepEqual(phases, Array(2).fill(['CheckingGitCommits', 'RunningAutoformatters']).flat());
  const file = join(place.workspace, 'a.ts');
  const changed = records.flatMap((record) =>
    record.type === 'hookCompleted' ? [record.changedFiles] : [],
  );
  assert.deepEqual(changed, [[file], [file], [file], [file]]);
  const told = records.flatMap((record) =>
    record.type === 'notice' ? [`${record.kind} ${record.text}`] : [],
  );
  assert.deepEqual(told, ['formatted formatted a.ts', 'formatted formatted a.ts']);
});

test('formatters do not run where commands are asked for, or when they are turned off', async (context) => {
  for (const words of [
    ['--formatter', 'off'],
    ['--hooks', 'never'],
  ]) {
    const place = await makeRepository(context, [readFirst, rewrite, done]);
    const ended = await runInProcess(place, ['-p', 'change a', ...words]);
    expectCode(ended, 0);
    assert.equal(read(place, 'a.ts'), ROUGH, words.join(' '));
    assert.equal(ended.stderr, '');
  }
});

test("auto-commit commits the agent's changes with the model's words, and leaves the user's alone", async (context) => {
  const place = await makeRepository(context, [
    readFirst,
    rewrite,
    message(text('feat: give b another value')),
    done,
  ]);
  place.write('mine.ts', 'export const mine = 2; // not ready\n');
  place.write('staged.ts', 'export const staged = 1;\n');
  place.git('add', 'staged.ts');
  const ended = await runInProcess(place, ['-p', 'change a', '--auto-commit']);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.match(ended.stderr, /^· formatted a\.ts$/m);
  assert.match(
    ended.stderr,
    /^· committed [0-9a-f]{8} feat: give b another value \(1 file, .*\)$/m,
  );
  assert.equal(
    place.git('show', '--format=%s', '--name-only').trim(),
    'feat: give b another value\n\na.ts',
  );
  assert.equal(place.git('show', 'HEAD:a.ts'), SMOOTH);
  assert.equal(place.git('status', '--porcelain'), ' M mine.ts\nA  staged.ts\n');
  const asked = place.server.requests[2]?.body;
  assert.equal(asked?.messages.length, 1);
  assert.match(JSON.stringify(asked?.messages), /-export const a = \{ b: 1 \}/);
  assert.match(notes(place, 3).join('\n'), /\[auto-commit\] Your changes were committed/);
});

test('auto-commit works in an empty home, without a name, and without words of the model', async (context) => {
  for (const more of chooseRows([{}, { HOME: '/nonexistent' }, { HOME: undefined }])) {
    const place = await makeRepository(context, [
      readFirst,
      rewrite,
      message(text('I would say: hm.')),
      done,
    ]);
    const environment = { ...place.environment, ...more };
    const ended = await runInProcess({ ...place, environment }, [
      '-p',
      'change a',
      '--auto-commit',
    ]);
    expectCode(ended, 0);
    assert.equal(place.git('log', '-1', '--format=%s|%an').trim(), 'chore: pawl changed a.ts|Pawl');
    assert.equal(place.git('status', '--porcelain'), '');
  }
});

test('a formatter that fails does not stop the turn', async (context) => {
  const write = message(call('w', 'write', { path: 'a.go', content: 'rough\n' }));
  const place = await makeRepository(context, [
    message(call('r', 'read', { path: 'a.go' })),
    write,
    done,
  ]);
  place.write('go.mod', 'module x\n');
  place.write('a.go', 'good\n');
  const script = '[[ $(cat) == good ]] && { echo good; exit; }; echo "no such option" >&2; exit 2';
  const ended = await runInProcess({ ...place, environment: shadow(place, 'gofmt', script) }, [
    '-p',
    'go',
  ]);
  expectCode(ended, 0);
  expectValid(place.server);
  assert.equal(ended.stdout, 'Done.\n');
  assert.match(ended.stderr, /^! gofmt can't format a\.go: no such option$/m);
  assert.equal(read(place, 'a.go'), 'rough\n');
});

test('SIGINT while a formatter runs ends it and settles the turn', async (context) => {
  const mark = uniqueSleep(context);
  const write = message(call('w', 'write', { path: 'new.go', content: 'rough\n' }));
  const place = await makeRepository(context, [write, done]);
  place.write('go.mod', 'module x\n');
  const environment = shadow(place, 'gofmt', `sleep ${mark}`);
  const running = startPawl({ ...place, environment }, ['-p', 'go']);
  await until('the formatter', () => processesWith(`sleep ${mark}`).length > 0);
  running.child.kill('SIGINT');
  expectCode(await running.ended, 130);
  await until('nothing of it runs', () => processesWith(mark).length === 0);
  const after = await runInProcess(place, ['--continue', '-p', 'what now?']);
  expectCode(after, 0);
  expectValid(place.server);
  assert.match(notes(place, 1).join('\n'), /files may have been changed by an interrupted hook/);
});

testDeep(
  'after kill -9 in a formatter the phase is run again, and the next edit fits',
  async (context) => {
    const mark = uniqueSleep(context);
    const edit = { path: 'a.go', edits: [{ oldText: 'smooth', newText: 'fine' }] };
    const place = await makeRepository(context, [
      message(call('r', 'read', { path: 'a.go' })),
      message(call('w', 'write', { path: 'a.go', content: 'rough\n' })),
      message(call('e', 'edit', edit)),
      done,
      done,
    ]);
    place.write('go.mod', 'module x\n');
    place.write('a.go', 'good\n');
    place.git('add', '.');
    place.git('commit', '-qm', 'go');
    // where git does not look, and the sandbox does
    const slow = join(place.workspace, 'node_modules', 'slow');
    writeFileSync(slow, '');
    const environment = shadow(
      place,
      'gofmt',
      `[[ -e ${slow} ]] && sleep ${mark}; sed s/rough/smooth/`,
    );
    const running = startPawl({ ...place, environment }, ['-p', 'go']);
    await until('the formatter', () => processesWith(`sleep ${mark}`).length > 0);
    running.child.kill('SIGKILL');
    await running.ended;
    rmSync(slow);
    assert.equal(read(place, 'a.go'), 'rough\n');
    const ended = await runInProcess({ ...place, environment }, ['--continue', '-p', 'and now?']);
    expectCode(ended, 0);
    expectValid(place.server);
    assert.match(ended.stderr, /^· formatted a\.go$/m);
    assert.match(notes(place, 2).join('\n'), /\[formatters\] [\s\S]*a\.go \(gofmt\)/);
    assert.match(resultsOf(place, 3).join(), /Edited a\.go/);
    assert.equal(read(place, 'a.go'), 'fine\n');
    expectCode(await runInProcess(place, ['replay', sessionOf(place)]), 0);
  },
);

testDeep('files formatted before a crash are remembered as they are after it', async (context) => {
  const edit = { path: 'a.ts', edits: [{ oldText: '{ b: 2 }', newText: '{ b: 3 }' }] };
  const place = await makeRepository(context, [
    readFirst,
    rewrite,
    { type: 'nothing' },
    message(call('e', 'edit', edit)),
    done,
    done,
  ]);
  const running = startPawl(place, ['-p', 'change a']);
  await until('the third request', () => place.server.requests.length === 3);
  running.child.kill('SIGKILL');
  await running.ended;
  assert.equal(read(place, 'a.ts'), SMOOTH);
  expectCode(await runInProcess(place, ['--continue', '-p', 'and now?']), 0);
  assert.match(resultsOf(place, 4).join(), /Edited a\.ts/);
  assert.equal(read(place, 'a.ts'), GOOD.replace('1', '3'));
});

/** What a command wrote that did not end well is the agent's all the same: formatted, committed, told. */

/** How a command ends that has written `new.ts` and changed `a.ts`. */
const endings: readonly (readonly [title: string, ending: string, timeoutMs?: number])[] = [
  ['ended well', 'true'],
  ['failed', 'exit 3'],
  ['ran into its time limit', 'sleep 600', 5_000],
];

for (const [title, ending, timeoutMs] of chooseRows(endings, () => 'files'))
  test(`files of a command that ${title} are formatted and committed as the agent's`, async (context) => {
    const command = `printf '${ROUGH}' | tee a.ts > new.ts; ${ending}`;
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const place = await makeRepository(context, [
      message(call('b', 'bash', { command, ...limit })),
      message(text('feat: new')),
      message(call('s', 'bash', { command: 'echo "// more" >> new.ts' })),
      message(text('feat: more')),
      done,
    ]);
    place.write('mine.ts', 'export const mine = 2; // not ready\n');
    const ended = await runInProcess(place, ['-p', 'go', '--auto-commit']);
    expectCode(ended, 0);
    expectValid(place.server);
    assert.match(ended.stderr, /^· formatted a\.ts\n· formatted new\.ts$/m);
    // Why a commit is missing stands in what was said.
    const commits = place.git('log', '--format=%s').trim();
    assert.equal(commits, 'feat: more\nfeat: new\nfirst', ended.stderr);
    assert.equal(place.git('show', 'HEAD~1:new.ts'), SMOOTH);
    assert.equal(place.git('show', '--format=', '--name-only', 'HEAD~1').trim(), 'a.ts\nnew.ts');
    assert.equal(place.git('status', '--porcelain'), ' M mine.ts\n');
    assert.doesNotMatch(ended.stderr, /Not committed/);
  });

for (const [title, ending, timeoutMs] of chooseRows(endings, () => 'commit'))
  test(`a commit of a command that ${title} is noticed in that round, by default`, async (context) => {
    const command = `echo x > new.txt; git add new.txt; git commit -qm "Add new"; ${ending}`;
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const place = await makeRepository(context, [
      message(call('b', 'bash', { command, ...limit })),
      done,
    ]);
    const ended = await runInProcess(place, ['-p', 'go']);
    expectCode(ended, 0);
    assert.match(ended.stderr, /^· new commit [0-9a-f]{8} Add new \(1 file, \+1 -0\)$/m);
  });

test('where only calls that end well count, a command that failed is not looked at', async (context) => {
  const command = `echo '${ROUGH}' > new.ts; exit 3`;
  const place = await makeRepository(context, [message(call('b', 'bash', { command })), done]);
  const ended = await runInProcess(place, ['-p', 'go', '--auto-commit', '--hooks', 'mutatingOk']);
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '?? new.ts\n');
});

test('a protected file that is moved while a command runs: the user hears of it on stderr', async (t) => {
  const made = message(call('a', 'bash', { command: 'echo mine > .envrc' }));
  const place = await makeServed(t, [made, done]);
  const ended = await runInProcess(place, ['-p', 'work']);
  expectCode(ended, 0);
  const told =
    /the sandbox: \.envrc is protected .* was moved away\. If you made it, move it back when no command runs: mv '(\S+)' /;
  const [, moved = ''] = told.exec(ended.stderr) ?? [];
  assert.equal(readFileSync(moved, 'utf8'), 'mine\n', ended.stderr);
  assert.ok(!existsSync(path.join(place.workspace, '.envrc')));
});

test('control: nothing is said of a file without protection', async (t) => {
  const made = message(call('a', 'bash', { command: 'echo mine > notes.txt' }));
  const place = await makeServed(t, [made, done]);
  const ended = await runInProcess(place, ['-p', 'work']);
  expectCode(ended, 0);
  assert.doesNotMatch(ended.stderr, /the sandbox:/);
  assert.ok(existsSync(path.join(place.workspace, 'notes.txt')));
});
