import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { tree } from '../../../../test/kit/workspace-tree.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import type { SandboxLevel } from '../../src/policy/decide.js';
import { judgeCall } from '../../src/session/judge-call.js';
import { makePlace, type Place } from '../tools/context.js';

// A command that only reads, by its words, runs where the kernel lets it write nothing.
// PAWL_COUNT=300 for more generated commands, PAWL_SEED repeats.

const COUNT = countCases(80);

const OVERWRITES = '#!/bin/sh\necho ran > "$(dirname "$0")/../notes"\n';

/** A repository whose own programs are named like those of the system. */
const makeRepository = async (t: TestContext, searchPath?: string): Promise<Place> => {
  const environment = { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'state') };
  const withPath = searchPath === undefined ? {} : { PATH: `${searchPath}:${process.env.PATH}` };
  const place = await makePlace(t, { ...environment, ...withPath }, 'workspace');
  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(place.path(name)), { recursive: true });
    writeFileSync(place.path(name), text);
  };
  for (const name of ['a', 'b', 'kept.txt', 'sub/deep']) write(name, `first of ${name}\n`);
  for (const name of ['cat', 'ls', 'head', 'wc', 'pwd', 'git', 'grep', 'other']) {
    write(`bin/${name}`, OVERWRITES);
    chmodSync(place.path(`bin/${name}`), 0o755);
  }
  write('.gitignore', '.env\n');
  const git = (...words: readonly string[]): void => {
    const who = ['-c', 'user.name=Ada', '-c', 'user.email=a@example.org'];
    execFileSync('git', [...who, ...words], { cwd: place.workspace });
  };
  git('init', '-q');
  git('add', '-A');
  git('commit', '-qm', 'first');
  for (const name of ['notes', '.env', 'sub/notes']) write(name, `precious ${name}\n`);
  write('a', 'changed\n');
  return place;
};

const judge = async (place: Place, command: string, sandbox: SandboxLevel | 'missing') => {
  const raw = { type: 'call', callId: '1', tool: 'bash', rawInput: JSON.stringify({ command }) };
  const tools = new Map([['bash', place.tool('bash')]]);
  const call = { ...raw, type: 'call' } as const;
  return judgeCall(call, tools, place.workspace, undefined, undefined, sandbox);
};
const isReading = async (place: Place, command: string): Promise<boolean> =>
  !(await judge(place, command, 'workspace')).traits.mutating;

/** What agents ask for to look around. */
const READS = [
  'ls -la',
  'pwd && ls',
  'cat a b',
  'cat a | head -5 | wc -l',
  'head -n 3 sub/deep 2>/dev/null',
  'cd sub && ls && cat deep',
  'grep -rn first . --include=*.txt',
  'grep -rn "$TERM" .',
  'rg -n first || true',
  "find . -name '*.txt' -type f -not -path './.git/*'",
  'find . -maxdepth 2 | sort | uniq -c | sort -rn',
  "sed -n '1,2p' a",
  "sed -n '/first/p' kept.txt",
  "awk '{print $1}' a",
  "awk -F: '{ print $2 }' a | sort -k1,1 -u",
  'sort -nrk2 -t, a',
  'stat a; file a; du -sh .; df -h .',
  'tree -L 2',
  'wc -l a b; diff a b; cmp a b',
  'echo done; printf "%s\\n" done; true',
  'which git; type cat; date; uname -a',
  'for one in a b; do cat "$one"; done',
  'if [ -f a ]; then cat a; fi',
  'git status',
  'git status --short --branch',
  'git log --oneline -5',
  'git log -n 3 --stat --format=%h -- a',
  'git log -p -2 --author=Ada kept.txt',
  'git --no-pager diff',
  'git -C sub diff --stat HEAD',
  'git diff --cached --name-only; git diff HEAD -- a',
  'git show HEAD:a; git show --stat HEAD',
  'git branch -a; git branch --show-current',
  'git rev-parse --show-toplevel; git rev-parse HEAD',
  'git ls-files -m; git ls-tree -r HEAD',
  'git blame -L 1,1 kept.txt; git grep -n first',
  'git stash list; git tag -l; git remote -v; git reflog -3',
  'git diff | cat && git log -1 --pretty=format:%s',
  'jq . package.json 2>/dev/null; sha256sum a; base64 a',
];

/** Forms that seem to read, each in the words of an agent that was tried. */
const SEEM_TO_READ = [
  './bin/cat a',
  'bin/cat a',
  'bin/ls',
  './bin/head a',
  'bin/wc a',
  './bin/pwd',
  'bin/git status',
  './bin/git log',
  'cd bin && ./cat ../a',
  'cat a && ./bin/cat a',
  'echo $(./bin/cat a)',
  'PATH=./bin; cat a',
  'PATH=./bin cat a',
  'PATH=./bin && cat a &',
  'echo $(PATH=./bin; cat a)',
  '(PATH=./bin; cat a) | head',
  'export PATH=./bin && cat a &',
  'declare PATH=./bin; cat a',
  'read PATH <<< ./bin; cat a',
  'printf -v PATH ./bin; cat a',
  'for PATH in ./bin; do cat a; done',
  'select PATH in ./bin; do cat a; done <<< 1',
  '{PATH}</dev/null; cat a',
  'hash -p ./bin/cat cat; cat a',
  'alias cat=./bin/cat; cat a',
  'enable -n echo; echo a',
  'cat() { ./bin/cat; }; cat a',
  'command_not_found_handle() { ./bin/cat; }; nothing-there',
  'BASH_ENV=./bin/cat bash -c true',
  'env cat a',
  'command cat a',
  'nice cat a',
  '. ./bin/cat',
  'cat a > notes',
  'cat a >> notes',
  'git log --output=notes',
  'git log --output notes',
  'git log --outpu=notes',
  'git log --out=notes',
  'git -C . log --output=notes',
  'git --no-pager log --output=notes',
  'cd sub && git log --output=notes',
  'git log --output=notes | cat',
  'git log HEAD --output=notes',
  'git log -s --output=notes',
  'git log -S -- --output=notes',
  'git diff --output=notes',
  'git diff --no-index --output=notes a b',
  'git diff --submodule=log --output=notes',
  'git show --output=notes',
  'git show HEAD --output notes',
  "git grep -O'rm notes; true' first",
  "git -c core.pager='rm notes' -p log",
  'git --exec-path=./bin log',
  'git --git-dir=x log',
  'git branch new',
  'git tag new',
  'git stash',
  'git reflog expire --expire=now --all',
  'git remote add x y',
  'sort -o notes a',
  'sort --o=notes a',
  'sort *',
  'uniq a notes',
  'find . -name notes -delete',
  'find . -name a -exec rm notes ;',
  'find . -fprint notes',
  "sed -n 'w notes' a",
  'sed -i s/a/b/ notes',
  'awk \'{ print > "notes" }\' a',
  'awk \'BEGIN { system("rm notes") }\'',
  'rg --pre ./bin/cat first',
  'tree -o notes',
  'file -C -m notes',
  'date -s 2020-01-01',
  '',
];

test('everyday commands that look around count as reading', async (t) => {
  const place = await makeRepository(t);
  const others: string[] = [];
  for (const command of READS) if (!(await isReading(place, command))) others.push(command);
  // programs that are not installed here are found nowhere
  assert.deepEqual(
    others.filter((command) => !/^(rg|tree|jq|stat)\b/.test(command)),
    [],
  );
});

test('what only seems to read counts as writing', async (t) => {
  const place = await makeRepository(t);
  const believed: string[] = [];
  for (const command of SEEM_TO_READ.filter((one) => one !== ''))
    if (await isReading(place, command)) believed.push(command);
  assert.deepEqual(believed, []);
});

test('where PATH begins with a folder of the workspace, its programs are not taken for those of the system', async (t) => {
  for (const [searchPath, reads] of [
    ['bin', false],
    ['./bin', false],
    ['no-such-folder', true],
  ] as const) {
    const place = await makeRepository(t, searchPath);
    assert.equal(await isReading(place, 'cat a'), reads, searchPath);
    assert.equal(await isReading(place, 'sort a'), true, 'control: the workspace has no sort');
  }
});

test('without a sandbox no command counts as reading, and one that asks for more does neither', async (t) => {
  const place = await makeRepository(t);
  for (const [sandbox, mutating] of [
    ['workspace', false],
    ['workspace+net', false],
    ['read-only', false],
    ['off', true],
    ['missing', true],
  ] as const)
    assert.equal((await judge(place, 'cat a', sandbox)).traits.mutating, mutating, sandbox);
  const judged = await place.judge('bash', { command: 'cat a', needs: 'network' });
  assert.equal(judged.kind === 'ok' ? judged.reads : 'invalid', undefined);
});

// ---- Generated commands ----

const TARGETS = ['notes', 'kept.txt', '.env', 'new.txt', 'sub/notes', '"$PWD/notes"'];

/** Programs with the options by which they write a file, and others that change the workspace. */
const WRITERS: readonly ((to: string) => string)[] = [
  ...['-o %', '--output=%', '--output %', '--out=%', '--o=%', '-uo %'].map(
    (option) => (to: string) => `sort ${option.replace('%', to)} a`,
  ),
  ...['log', 'show', 'diff HEAD', '-C . log', '--no-pager show', 'log -s'].flatMap((words) =>
    ['--output=%', '--output %', '--outp=%'].map(
      (option) => (to: string) => `git ${words} ${option.replace('%', to)}`,
    ),
  ),
  ...['>', '>>', '>|', '&>', '2>', '<>'].map((sign) => (to: string) => `cat a ${sign} ${to}`),
  ...['bin/cat', './bin/ls', './bin/git log', 'PATH=./bin cat', 'PATH=$PWD/bin; cat'].map(
    (program) => () => `${program} a`,
  ),
  (to) => `uniq a ${to}`,
  (to) => `shuf -o ${to} a`,
  (to) => `find . -name a -fprint ${to}`,
  (to) => `find ${to} -delete`,
  (to) => `find a -exec cp a ${to} ';'`,
  (to) => `sed -i s/e/x/g ${to}`,
  (to) => `sed "w ${to.replaceAll('"', '')}" a`,
  (to) => `awk -v to=${to} '{ print > to }' a`,
  (to) => `tee ${to} < a`,
  (to) => `dd if=a of=${to}`,
  (to) => `cp a ${to}`,
  (to) => `mv b ${to}`,
  (to) => `ln -sf a ${to}`,
  (to) => `rm -f ${to}`,
  (to) => `truncate -s 0 ${to}`,
  (to) => `touch ${to}`,
  (to) => `chmod 600 ${to}`,
  (to) => `mkdir -p ${to}.d/x`,
  (to) => `gzip -f ${to}`,
  (to) => `tar cf ${to} a`,
  (to) => `iconv -o ${to} a`,
  (to) => `split -b 1 a ${to}`,
  (to) => `python3 -c 'import sys; open(sys.argv[1], "w").write("x")' ${to}`,
  (to) => `perl -i -pe s/e/x/ ${to}`,
  (to) => `git bundle create ${to} HEAD`,
  (to) => `git archive -o ${to} HEAD`,
  (to) => `git checkout -- ${to}`,
  (to) => `git rm -f ${to}`,
  () => 'git stash -u',
  () => 'git clean -fdx',
  () => 'git branch new-$RANDOM',
  () => 'git config a.b c',
  () => "git grep -O'cp a notes; true' first",
];

const FORMS: readonly ((command: string) => string)[] = [
  (command) => command,
  (command) => `cd . && ${command}`,
  (command) => `${command} | cat`,
  (command) => `echo "$(${command})"`,
  (command) => `( ${command} )`,
  (command) => `true; ${command}; true`,
  (command) => `for i in 1; do ${command}; done`,
  (command) => `command ${command}`,
  (command) => `env ${command}`,
];

const generate = (count: number, seed: number): readonly string[] => {
  let state = seed >>> 0;
  const pick = <T>(list: readonly T[]): T => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)] as T; // the list is not empty
  };
  return Array.from({ length: count }, () => pick(FORMS)(pick(WRITERS)(pick(TARGETS))));
};

/** Runs the commands one after the other in one fence, whatever each of them says. */
const runAll = (place: Place, commands: readonly string[], level: 'reads' | 'workspace') => {
  const lines = commands.map((command) => `( ${command}\n) < /dev/null > /dev/null 2>&1`);
  return place.run('bash', { command: `${lines.join('\n')}\necho all-ran` }, { level });
};

/** The workspace and its repository. */
const look = ({ workspace, path: at }: Place): string => `${tree(workspace)}\n${tree(at('.git'))}`;

test(`${COUNT} generated commands that write change no file where only reading is possible`, async (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  const commands = [...READS, ...SEEM_TO_READ.slice(0, -1), ...generate(COUNT, SEED)];
  const place = await makeRepository(t);
  const before = look(place);
  const { text } = await runAll(place, commands, 'reads');
  assert.match(text, /all-ran/);
  assert.equal(look(place), before);
  // control: the same commands in the usual fence
  await runAll(place, commands.slice(-COUNT), 'workspace');
  assert.notEqual(look(place), before);
});

test('what is believed to read changes no file where it could', async (t) => {
  const place = await makeRepository(t);
  const believed: string[] = [];
  const generated = generate(COUNT, SEED);
  for (const command of [...READS, ...generated])
    if (await isReading(place, command)) believed.push(command);
  t.diagnostic(`${believed.length - READS.length} of ${COUNT} generated ones are believed`);
  const before = tree(place.workspace);
  assert.match((await runAll(place, believed, 'workspace')).text, /all-ran/);
  assert.equal(tree(place.workspace), before);
});

test('a command that was judged to read and writes says why it could not, and how it can', async (t) => {
  const place = await makeRepository(t);
  const { text } = await place.run('bash', { command: 'touch new' }, { level: 'reads' });
  assert.match(text, /by its words this command only reads.*put env before its program/);
  assert.equal(await isReading(place, 'env cat a'), false, 'what it advises counts as writing');
});

test('what only reads finds nothing writable but /tmp, no secret, and no socket', async (t) => {
  const place = await makeRepository(t);
  const tries = [
    'try() { "$@" 2>/dev/null && echo yes || echo no; }',
    'try touch here',
    'try touch .git/here',
    'try touch "$HOME/here"',
    'try touch /var/tmp/here',
    'try python3 -c "import socket; socket.socket(socket.AF_UNIX)"',
  ].join('\n');
  const answers = async (level: 'reads' | 'workspace') =>
    (await place.run('bash', { command: tries }, { level })).text.split('\n').slice(0, 5).join(' ');
  assert.equal(await answers('reads'), 'no no no yes no');
  assert.match(await answers('workspace'), /^yes \S+ yes yes yes$/, 'control');
});
