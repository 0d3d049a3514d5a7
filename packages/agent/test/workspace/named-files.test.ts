import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { decide } from '../../src/policy/decide.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';
import { commandFinder, shellFacts } from '../../src/policy/shell/shell-facts.js';
import { unrecoverableFiles, withGitReadings } from '../../src/policy/shell/unrecoverable-files.js';
import { createCheckpoints } from '../../src/workspace/checkpoints/session-checkpoints.js';
import { answerOfGit, lossesBeside, lossesByGit } from '../../src/workspace/uncommitted-files.js';

// A file that git could not give back, and that the words of a command name, is copied before the
// command runs, or asked about under `careful`. PAWL_COUNT=300 for more, PAWL_SEED repeats.

const COUNT = countCases(20);

const PRECIOUS = ['.env', 'data/table', 'data/deep/rows', 'sub/.env', 'my notes.ign'];

/** A repository whose ignored files were made by hand, and its checkpoints. */
const openWorld = (t: TestContext) => {
  const folder = realpathSync(temporaryFolder(t, 'named'));
  const workspace = path.join(folder, 'work');
  const at = (name: string): string => path.join(workspace, name);
  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  };
  for (const name of ['a', 'b', 'sub/deep']) write(name, `${name} one\n${name} two\n`);
  write('.gitignore', '.env\ndata\n*.ign\n');
  write('fix.patch', '--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-precious .env\n+patched\n');
  write('bin/tool', '#!/bin/sh\necho ran > "$1"\n');
  chmodSync(at('bin/tool'), 0o755);
  const git = (...words: readonly string[]): void => {
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
      cwd: workspace,
    });
  };
  git('init', '-q');
  git('add', '-A');
  git('commit', '-qm', 'first');
  const environment = { ...process.env, HOME: folder, XDG_STATE_HOME: path.join(folder, 'state') };
  const stateFolder = path.join(folder, 'state', 'pawl');
  const place = { workspace, sessionId: 'one', environment, stateFolder };
  const checkpoints = createCheckpoints(place);
  t.after(() => checkpoints.close());
  for (const name of PRECIOUS) write(name, `precious ${name}\n`);
  const judge = async (command: string): Promise<JudgedCall> => {
    const find = commandFinder(process.env.PATH ?? '', workspace);
    const read = await shellFacts(command, find);
    const shell = await withGitReadings(read, workspace, answerOfGit(environment));
    const finder = lossesBeside(checkpoints, lossesByGit(environment));
    const unrecoverable = await unrecoverableFiles(shell, workspace, finder);
    return {
      callId: '1',
      tool: 'bash',
      input: { command },
      verdict: { kind: 'ok' },
      traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0 },
      facts: {
        ...{ argv: [command], paths: [workspace], hosts: [], shape: command, shell },
        ...(unrecoverable === null ? {} : { unrecoverable }),
      },
    };
  };
  const ask = (call: JudgedCall) =>
    decide(
      { rules: presetRules.careful, preset: 'careful', workspace, sandbox: 'workspace' },
      [],
      call,
    );
  const run = (command: string): void => {
    const options = {
      cwd: workspace,
      timeout: 20_000,
      input: '',
      env: { ...environment, TERM: 'dumb' },
    };
    spawnSync('bash', ['-c', command], options);
  };
  const restore = async (id: string): Promise<void> => {
    const takeBack = [{ id, isForeign: false }];
    const { plan } = await checkpoints.plan({ takeBack, force: false });
    if (plan !== null) await checkpoints.restore(plan);
  };
  const contents = () => {
    const read = (name: string): string | null => {
      try {
        return readFileSync(at(name), 'utf8');
      } catch {
        return null; // it is gone
      }
    };
    return PRECIOUS.map(read);
  };
  return { workspace, at, write, checkpoints, judge, ask, run, restore, contents };
};

type Outcome = 'asked' | 'untouched' | 'taken back' | 'LOST';

/** Runs a command as a session under `careful` would, and takes it back. */
const tryCommand = async (
  world: ReturnType<typeof openWorld>,
  command: string,
): Promise<Outcome> => {
  const before = world.contents();
  const call = await world.judge(command);
  if (world.ask(call).decision !== 'allow') return 'asked';
  await world.checkpoints.before(call);
  world.run(command);
  const taken = await world.checkpoints.take({ by: 'agent' });
  const isSame = () => JSON.stringify(world.contents()) === JSON.stringify(before);
  if (isSame()) return 'untouched';
  if (taken !== null) await world.restore(taken.checkpoint);
  const outcome = isSame() ? 'taken back' : 'LOST';
  if (outcome === 'LOST')
    for (const [at, name] of PRECIOUS.entries()) world.write(name, before[at] ?? '');
  return outcome;
};

/** Commands that name a file and destroy it: what was tried of other agents, and its family. */
const DESTROYERS: readonly ((to: string) => string)[] = [
  (to) => `uniq a ${to}`,
  (to) => `gzip -f ${to}`,
  (to) => `xz -f ${to}`,
  (to) => `bzip2 -f ${to}`,
  (to) => `xxd a ${to}`,
  (to) => `iconv -f utf8 -t utf8 -o ${to} a`,
  (to) => `git bundle create ${to} HEAD`,
  (to) => `git archive -o ${to} HEAD`,
  (to) => `git grep -O'cp a ${to}; true' one`,
  (to) => `git log --output=${to}`,
  (to) => `git merge-file ${to} a b`,
  (to) => `echo 'int main(){return 0;}' | gcc -x c -o ${to} -`,
  (to) => `tar cf ${to} a`,
  (to) => `tar -czf ${to} a`,
  (to) => `awk '{ print > ${to.includes('"') ? to : `"${to}"`} }' a`,
  (to) => `awk -v to=${to} '{ print > to }' a`,
  (to) => `sed -n ${to.includes('"') ? `'w '${to}` : `'w ${to}'`} a`,
  (to) => `sed -i s/precious/x/ ${to}`,
  (to) => `perl -i -pe s/precious/x/ ${to}`,
  (to) => `perl -e 'open(F, ">", $ARGV[0]); print F "x"' ${to}`,
  (to) => `python3 -c 'import sys; open(sys.argv[1], "w").write("x")' ${to}`,
  (to) => `python3 - <<'EOF'\nopen(${to.includes('"') ? to : `"${to}"`}, "w").write("x")\nEOF`,
  (to) => `tee ${to} < a`,
  (to) => `dd if=a of=${to} status=none`,
  (to) => `sort -o ${to} a`,
  (to) => `shuf -o ${to} a`,
  (to) => `curl -s -o ${to} file:///etc/hostname`,
  (to) => `openssl rand -out ${to} 8`,
  (to) => `cp a ${to}`,
  (to) => `mv b ${to}`,
  (to) => `ln -sf a ${to}`,
  (to) => `install a ${to}`,
  (to) => `rm -f ${to}`,
  (to) => `unlink ${to}`,
  (to) => `truncate -s 0 ${to}`,
  (to) => `shred -u ${to}`,
  (to) => `split -b 4 a ${to}`,
  (to) => `csplit -s -f ${to} a 1`,
  (to) => `patch -s -o ${to} a < /dev/null; patch -s ${to} < fix.patch`,
  (to) => `echo x > ${to}`,
  (to) => `: >| ${to}`,
  (to) => `exec 3<> ${to}; echo x >&3`,
  (to) => `find ${to} -delete`,
  (to) => `find . -name a -fprint ${to}`,
  (to) => `ed -s ${to} <<< $'1d\\nw'`,
  (to) => `bin/tool ${to}`,
  (to) => `F=${to}; bin/tool "$F"`,
  (to) => `env bin/tool ${to}`,
  (to) => `bash -c 'echo x > "$0"' ${to}`,
  (to) => `for f in ${to}; do echo x > "$f"; done`,
  (to) => `echo ${to} | xargs -I{} cp a {}`,
  () => 'rm -rf data',
  () => 'mv data /tmp/gone-$$ && rm -rf /tmp/gone-$$',
  () => 'rm -rf sub',
  () => 'git clean -fdX',
  () => 'cd sub && rm .env',
  () => 'cd data && echo x > table',
  () => 'rm *.ign .e*',
  () => 'tar -C data -cf rows.tar deep && cp a data/table',
];

const TARGETS = ['.env', 'data/table', 'sub/.env', '"my notes.ign"', './.env', 'data/deep/rows'];

const generate = (count: number, seed: number): readonly string[] => {
  let state = seed >>> 0;
  const pick = <T>(list: readonly T[]): T => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)] as T; // the list is not empty
  };
  return Array.from({ length: count }, () => pick(DESTROYERS)(pick(TARGETS)));
};

const tryAll = async (t: TestContext, commands: readonly string[]) => {
  const world = openWorld(t);
  const counts = { asked: 0, untouched: 0, 'taken back': 0, LOST: 0 };
  const lost: string[] = [];
  for (const command of commands) {
    const outcome = await tryCommand(world, command);
    counts[outcome] += 1;
    if (process.env.PAWL_NAMED_LIST === '1') t.diagnostic(`${outcome}: ${command}`);
    if (outcome === 'LOST') lost.push(command);
  }
  t.diagnostic(JSON.stringify(counts));
  return { counts, lost };
};

test(`of ${COUNT} generated commands that name an ignored file, none loses it for good`, async (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  const { lost, counts } = await tryAll(t, generate(COUNT, SEED));
  assert.deepEqual(lost, []);
  assert.ok(counts['taken back'] > COUNT / 4, 'control: most of them do destroy it');
});

test('what is too large for a copy is asked about', async (t) => {
  const world = openWorld(t);
  world.write('.gitignore', 'big\n.env\n');
  world.write('big', '');
  truncateSync(world.at('big'), 21 * 1024 * 1024);
  for (const command of [
    'rm big',
    'uniq a big',
    'tar cf big a',
    'gcc -o big a.c',
    'sqlite3 big ".tables"',
  ])
    assert.equal(world.ask(await world.judge(command)).decision, 'ask', command);
  for (const command of ['rm .env', 'uniq a .env', 'cat big'])
    assert.equal(world.ask(await world.judge(command)).decision, 'allow', command);
});
