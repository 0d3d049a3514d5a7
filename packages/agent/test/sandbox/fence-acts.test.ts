import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { fenceActs } from '../../src/command/fence-acts.js';
import { probeSandbox } from '../../src/command/session-sandbox.js';

/**
 * The sandbox is tried before it is believed. Each row is a bubblewrap that builds the fence with one fault: it is never
 * used, and what a command could do is said.
 */

const isRoot = process.geteuid?.() === 0;

/** A bwrap that edits its words, joined by blanks, with a substitution of perl. It writes a line for each start. */
const makePlace = (context: TestContext, edit: string) => {
  const folder = temporaryFolder(context, 'acts');
  const [bin, workspace] = [path.join(folder, 'bin'), path.join(folder, 'work')];
  for (const made of [bin, workspace]) mkdirSync(made);
  const [program, starts] = [path.join(bin, 'bwrap'), path.join(folder, 'starts')];
  const script = edit.replaceAll(' ', '\\x1f').replaceAll('\\S', '[^\\x1f]');
  writeFileSync(
    program,
    `#!/bin/sh
echo start >> ${starts}
exec perl -e '$_ = join("\\x1f", @ARGV); ${script}; exec split(/\\x1f/)' /usr/bin/bwrap "$@"
`,
  );
  writeFileSync(starts, '');
  chmodSync(program, 0o755);
  const environment = { PATH: `${bin}:${process.env.PATH}`, HOME: folder };
  return {
    program,
    probe: (answer: 'kept' | 'fresh' = 'fresh') => probeSandbox(environment, workspace, answer),
    starts: () => readFileSync(starts, 'utf8').split('\n').length - 1,
  };
};

const insert = (words: string): string => `s{--(?:ro-)?bind (\\S+)/workspace \\S+}{$& ${words}}`;

/** Act, its fault, and whether only root can plant it: other users can't do the act anyway. */
const faults: readonly (readonly [act: string, edit: string, root?: 'root'])[] = [
  ['could write a file beside the workspace', 's{--remount-ro /(?!run)\\S+ }{}'],
  ['could read a file beside the workspace', insert('--ro-bind $1/beside $1/beside')],
  ['could write through a link out of the workspace', insert('--bind $1/beside $1/beside')],
  ['could read keys in your home folder', insert('--ro-bind $1/home $1/home')],
  ['could change your home folder', insert('--bind $1/home $1/home')],
  ['could read a file that Pawl hides', 's{--ro-bind \\S+ \\S+/.netrc }{}'],
  ['could change settings that an editor obeys', 's{--ro-bind-try \\S+ \\S+/.vscode }{}'],
  ['could plant a hook of git', 's{--ro-bind-try \\S+ \\S+/.git }{}'],
  [
    'could change the history of git',
    's{(--ro-bind-try \\S+ (\\S+/.git)) }{$1 --bind $2/refs $2/refs }',
  ],
  ['could change the system', 's{--ro-bind /usr }{--bind /usr }', 'root'],
  ['could write to the top of the file system', 's{--remount-ro / }{}'],
  ['could read what only root may read', 's{--ro-bind \\S+ /etc/shadow }{}', 'root'],
  ['could change settings of the kernel', 's{--ro-bind-try /proc/sys /proc/sys }{}', 'root'],
  ['could see devices of the machine', 's{--dev /dev }{--dev-bind /dev /dev }'],
  ['could use rights of root', 's{--cap-drop ALL}{--cap-add ALL}'],
  ['could give a file the rights of its owner', 's{--seccomp 3 }{}'],
  ['could reach the terminal of Pawl', 's{--new-session }{}'],
  [
    'could share the user namespace of the machine',
    's{--unshare-user }{};s{--disable-userns }{}',
    'root',
  ],
  ['could share the pid namespace of the machine', 's{--unshare-pid }{};s{--disable-userns }{}'],
  ['could share the ipc namespace of the machine', 's{--unshare-ipc }{}'],
  ['could share the uts namespace of the machine', 's{--unshare-uts }{}'],
  ['could send a signal to a program outside it', 's{--unshare-pid }{}'],
  ['could reach the network', 's{--unshare-net }{}'],
  ['could not reach the network', 's{--die-with-parent}{--unshare-net $&}'],
  ['could write to the workspace', 's{--ro-bind (\\S+/workspace)}{--bind $1}'],
  ['could not write to the workspace', 's{--bind (\\S+/workspace)}{--ro-bind $1}'],
  ['could not read the workspace', 's{--(ro-)?bind \\S+/workspace }{--tmpfs }'],
  ['could not write temporary files', 's{--remount-ro / }{--remount-ro /tmp $&}'],
  ['could not write to its home folder', 's{--bind (\\S+/home /run)}{--ro-bind $1}'],
  ['could not start a program', 's{--remount-ro / }{--ro-bind /dev/null /usr/bin/readlink $&}'],
];

/** The text of a fence that is not used; null if it is. */
const refusal = async (context: TestContext, edit: string): Promise<string | null> => {
  const probe = await makePlace(context, edit).probe();
  return probe.kind === 'missing' ? probe.reason : null;
};

test('each act has a fault, and a fence without one is used', async (context) => {
  const names = faults.map(([text]) => text.replace(/^could (not )?/, ''));
  assert.deepEqual([...new Set(names)].sort(), fenceActs.map(({ name }) => name).sort());
  assert.equal(await refusal(context, '1'), null);
});

test('a blank in the path of temporary files hides no fault', async (context) => {
  const place = makePlace(context, insert('--ro-bind $1/beside $1/beside'));
  const { TMPDIR } = process.env;
  context.after(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  process.env.TMPDIR = temporaryFolder(context, 'my acts');
  const probe = await place.probe();
  assert.match(probe.kind === 'missing' ? probe.reason : '', /read a file beside the workspace/);
});

const planted = faults.filter(([, , root]) => isRoot || root === undefined);
const groups = new Map(planted.map((row, at) => [row, String(at % 12)]));
for (const row of chooseRows(planted, (one) => groups.get(one) ?? ''))
  test(`a fence in which a command ${row[0]} is never used`, async (context) => {
    const text = (await refusal(context, row[1])) ?? 'it is used';
    const [, does = '', name = ''] = /^(could(?: not)?) (.*)/.exec(row[0]) ?? [];
    assert.match(text, new RegExp(`The sandbox was tried and is not used: .*${does} .*${name}`));
  });

test('a fence that holds is remembered with what it depends on, one that does not is not', async (context) => {
  const place = makePlace(context, '1');
  const count = async (): Promise<number> => {
    const before = place.starts();
    await place.probe('kept');
    return place.starts() - before;
  };
  assert.equal(await count(), 3); // namespaces alone, then fences with and without a network
  assert.equal(await count(), 0);
  chmodSync(place.program, 0o700);
  assert.equal(await count(), 3);
  const faulty = makePlace(context, 's{--new-session }{}');
  for (const _ of [1, 2]) assert.equal((await faulty.probe('kept')).kind, 'missing');
  assert.ok(faulty.starts() >= 6);
  const refused = makePlace(context, 'exit 1');
  for (const _ of [1, 2]) assert.equal((await refused.probe('kept')).kind, 'missing');
  assert.equal(refused.starts(), 2); // one each, since each start of Pawl asks
});

test('the acts leave nothing behind', async (context) => {
  const { probe } = makePlace(context, 's{--unshare-net }{}');
  const before = process.env.TMPDIR;
  context.after(() => Object.assign(process.env, { TMPDIR: before }));
  process.env.TMPDIR = temporaryFolder(context, 'tmp');
  await probe();
  assert.deepEqual(readdirSync(process.env.TMPDIR), []);
  assert.equal(process.listenerCount('SIGCONT'), 0);
});
