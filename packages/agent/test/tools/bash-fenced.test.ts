import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith, until } from '../../../../test/kit/tools/processes.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import { makePlace, type Place } from './context.js';

/** A place at a level, and a folder outside of its workspace. */
const placeAt = async (
  t: TestContext,
  level: CommandLevel,
): Promise<Place & { outside: string }> => {
  const outside = temporaryFolder(t, 'outside');
  const environment = { ...process.env, XDG_STATE_HOME: path.join(outside, 'state') };
  return { ...(await makePlace(t, environment, level)), outside };
};

/** A name that no other run of the tests uses. */
const THERE = `/tmp/there-${process.pid}`;
const LEFT = `left-by-one-${process.pid}`;

const tries = (outside: string): string =>
  [
    'try() { if "$@" 2>/dev/null; then echo yes; else echo no; fi; }',
    'try touch here',
    `try touch ${THERE}`,
    'try touch "$HOME/home"',
    `try touch ${outside}/escaped`,
    '[ "$(ls /sys/class/net | wc -l)" -gt 1 ] && echo many || echo one',
  ].join('\n');

type Row = readonly [level: CommandLevel, here: string, outside: string];

/** Control: without a sandbox the same command writes outside. */
const rows: readonly Row[] = [
  ['off', 'yes', 'yes'],
  ['workspace', 'yes', 'no'],
  ['workspace+net', 'yes', 'no'],
  ['read-only', 'no', 'no'],
  ['read-only+net', 'no', 'no'],
];

for (const [level, here, outside] of rows) {
  test(`bash: at the level ${level} it can write in the workspace: ${here}, outside: ${outside}`, async (t) => {
    const place = await placeAt(t, level);
    const home = path.join(place.outside, 'home');
    mkdirSync(home);
    const command = `${level === 'off' ? `HOME=${home}\n` : ''}${tries(place.outside)}`;
    const { text } = await place.run('bash', { command });
    assert.deepEqual(text.split('\n').slice(0, 4), [here, 'yes', 'yes', outside]);
    assert.equal(existsSync(place.path('here')), here === 'yes');
    assert.equal(existsSync(path.join(place.outside, 'escaped')), outside === 'yes');
    rmSync(THERE, { force: true });
  });
}

test('bash: the network is there only at the levels that have it', async (t) => {
  const lines: string[] = [];
  for (const level of [
    'off',
    'workspace',
    'workspace+net',
    'read-only',
    'read-only+net',
  ] as const) {
    const place = await placeAt(t, level);
    const { text } = await place.run('bash', { command: 'readlink /proc/self/ns/net' });
    lines.push(text.split('\n')[0] ?? '');
  }
  const [off, workspace, withNet, readOnly, readOnlyWithNet] = lines;
  assert.deepEqual([withNet, readOnlyWithNet], [off, off]);
  assert.notEqual(workspace, off);
  assert.notEqual(readOnly, off);
});

test('bash: a command in the sandbox finds in /tmp and HOME what an earlier one left, and the host does not', async (t) => {
  const place = await placeAt(t, 'workspace');
  await place.run('bash', { command: `echo one >/tmp/${LEFT}; echo two >~/${LEFT}` });
  const { text } = await place.run('bash', { command: `cat /tmp/${LEFT} ~/${LEFT}` });
  assert.match(text, /^one\ntwo\n/);
  assert.equal(existsSync(`/tmp/${LEFT}`), false);
});

test('bash: what is left in the background of a sandbox is told, in whatever way it was left', async (t) => {
  const place = await placeAt(t, 'workspace');
  const NOTE =
    /\[processes that it left in the background were ended; to keep one, use background: true\]$/;
  for (const command of [
    'sleep 1000 & echo up',
    '(sleep 1000 >/dev/null 2>&1 &); echo up',
    'setsid env -i sleep 1000 </dev/null >/dev/null 2>&1 & echo up',
  ]) {
    const { status, text } = await place.run('bash', { command });
    assert.equal(status, 'ok');
    assert.match(text, /^up\n\[exit code 0/);
    assert.match(text, NOTE, command);
  }
  for (const command of [
    'echo up',
    'sleep 0.01 & wait; echo up',
    'echo up; echo up >&2',
    'echo "up',
  ]) {
    const { text } = await place.run('bash', { command });
    assert.doesNotMatch(text, NOTE, command);
    assert.doesNotMatch(text, /left behind/, command);
  }
});

test('bash: two jobs and commands run in sandboxes at once, each with its own processes', async (t) => {
  const place = await placeAt(t, 'workspace');
  const job = 'while :; do echo tick >>$NAME; sleep 0.05; done';
  for (const name of ['one', 'two']) {
    const { text } = await place.run('bash', { command: `NAME=${name}; ${job}`, background: true });
    assert.match(text, /^Started job-\d in the background/);
  }
  const commands = [1, 2, 3].map((n) =>
    place.run('bash', { command: `echo ${n}; ls /proc | grep -c '^[0-9]'` }),
  );
  for (const [index, { text }] of (await Promise.all(commands)).entries())
    assert.match(text, new RegExp(`^${index + 1}\\n[3-6]\\n`), 'no process of another one is seen');
  await until('both jobs work', () => ['one', 'two'].every((name) => existsSync(place.path(name))));
  for (const jobId of ['job-1', 'job-2']) {
    const { text } = await place.run('bash', { jobAction: 'kill', jobId });
    // Both have the mark of one call: the second is killed with the first.
    assert.match(text, /ended by SIGKILL|exit code 137/);
  }
  await until('nothing of them runs any more', () => processesWith(place.callId).length === 0);
});

test('bash: where a sandbox is wanted and bubblewrap is not there, nothing is run, and it says what to do', async (t) => {
  const place = await placeAt(t, 'workspace');
  const bin = path.join(place.outside, 'bin');
  const environment = {
    ...process.env,
    PATH: bin,
    XDG_STATE_HOME: path.join(place.outside, 'state'),
  };
  mkdirSync(bin);
  const { symlinkSync } = await import('node:fs');
  symlinkSync('/bin/bash', path.join(bin, 'bash'));
  const fenced = await makePlace(t, environment, 'workspace');
  const refused = await fenced.run('bash', { command: 'touch ran' });
  assert.equal(refused.status, 'failed');
  assert.match(refused.text, /not started: the sandbox: .*bubblewrap.* is not .*Install it/);
  assert.equal(existsSync(fenced.path('ran')), false);
  const open = await makePlace(t, environment, 'off');
  const { text } = await open.run('bash', { command: ': >ran' });
  assert.match(text, /exit code 0/, 'control');
  assert.equal(existsSync(open.path('ran')), true);
});

type Failing = readonly [command: string, hint: RegExp];

/** Real programs that fail in the sandbox, and what is said then. */
const failing: readonly Failing[] = [
  ['touch /usr/x', /only the workspace, \/tmp and a private home folder can be written/],
  [
    `node -e "require('dns').lookup('example.com', e => { throw e })"`,
    /the sandbox has no network/,
  ],
  [`node -e "require('net').connect(9, '93.184.216.34')"`, /the sandbox has no network/],
  ['cat ~/.aws/credentials', /the home folder in the sandbox is a private one/],
  ['unshare --user --map-root-user true', /namespaces and mounts can't be made/],
  [
    'git init -q . && git config core.hooksPath x; git config core.pager x',
    /git's configuration and hooks/,
  ],
];

test('bash: what a real command failed for lack of in the sandbox is said, with the way out', async (t) => {
  const place = await placeAt(t, 'workspace');
  await place.run('bash', { command: 'git init -q .' });
  for (const [command, hint] of failing) {
    const { status, text } = await place.run('bash', { command });
    assert.equal(status, 'failed', `${command}: ${text}`);
    assert.match(text, hint, command);
  }
  const { text } = await place.run('bash', { command: 'ls missing' });
  assert.match(text, /No such file or directory\n\[exit code 2, [\d.]+ s\]$/);
});

/** A git program that an earlier command put where a later one looks first. */
const PREPARE = [
  'git config --global core.sshCommand \'touch "$OLDPWD/fired"; touch fired; false\'',
  'printf "echo x" > /tmp/prepared',
  'mkdir -p ~/.local/bin',
].join('\n');
const FETCH = 'git ls-remote ssh://localhost/x 2>/dev/null; ls /tmp; true';

test('bash: a command that a rule lets onto the network starts with a home and /tmp that no earlier one prepared', async (t) => {
  const place = await placeAt(t, 'workspace');
  await place.run('bash', { command: PREPARE });
  const online = { level: 'workspace+net' } as const;
  const { text } = await place.run('bash', { command: FETCH }, { ...online, widened: 'unasked' });
  assert.equal(existsSync(place.path('fired')), false);
  assert.doesNotMatch(text, /prepared/);
  await place.run('bash', { command: FETCH }, { ...online, widened: 'byUser' });
  assert.equal(existsSync(place.path('fired')), false);
  // The control: with the home of the session the same command runs what was prepared.
  assert.match((await place.run('bash', { command: FETCH }, online)).text, /prepared/);
  assert.equal(existsSync(place.path('fired')), true);
});

test('bash: what a command with more rights leaves in HOME and /tmp is there for later ones of the session', async (t) => {
  const place = await placeAt(t, 'workspace');
  const outside = path.join(place.outside, 'kept');
  mkdirSync(outside);
  await place.run('bash', {
    command: `mkdir -p /tmp/both ~/.cache; echo old >/tmp/both/old; ln -s ${outside} /tmp/link`,
  });
  const command = [
    'mkdir -p /tmp/both /tmp/link /tmp/empty ~/.cache/tool; chmod 1777 /tmp',
    'echo one >/tmp/both/new; echo two >~/.cache/tool/a; echo x >/tmp/link/evil',
    'mkdir -p ~/go/pkg/m; echo m >~/go/pkg/m/f; chmod 555 ~/go/pkg/m',
  ].join('\n');
  await place.run('bash', { command }, { level: 'workspace+net', widened: 'unasked' });
  const { text } = await place.run('bash', {
    command:
      'cat /tmp/both/old /tmp/both/new ~/.cache/tool/a ~/go/pkg/m/f /tmp/link/evil; ls -d /tmp/empty',
  });
  assert.match(text, /^old\none\ntwo\nm\nx\n\/tmp\/empty\n/);
  assert.equal(existsSync(path.join(outside, 'evil')), false);
});

test('bash: git that a rule lets out of the sandbox runs no hook and no watcher of the repository', async (t) => {
  const place = await placeAt(t, 'off');
  const repository = [
    'git init -q && git config user.email a@b && git config user.name a && echo a >a && git add a && git commit -qm a',
    'git config core.fsmonitor "touch $PWD/fired; false"',
    'printf "#!/bin/sh\\ntouch fired-hook\\n" >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit',
  ].join('\n');
  await place.run('bash', { command: repository });
  const command =
    'git status -s; git commit -q --allow-empty -m b; git fetch -q . HEAD; git log --oneline | wc -l';
  const { text } = await place.run('bash', { command }, { widened: 'unasked' });
  assert.match(text, /^2$/m);
  assert.deepEqual(
    [existsSync(place.path('fired')), existsSync(place.path('fired-hook'))],
    [false, false],
  );
  // The control: without a sandbox, or allowed by hand, git is the user's.
  await place.run('bash', { command }, { widened: 'byUser' });
  assert.deepEqual(
    [existsSync(place.path('fired')), existsSync(place.path('fired-hook'))],
    [true, true],
  );
});

test('bash: a command in the sandbox can not type into a terminal (TIOCSTI)', async (t) => {
  // Without a terminal the kernel says ENOTTY; the filter answers before it with EPERM.
  const code =
    'import fcntl\nfor request in (0x5412, 0x541c):\n try: fcntl.ioctl(0, request, b"x")\n except OSError as e: print(e.errno)';
  const command = `python3 -c '${code}'`;
  const fenced = await (await placeAt(t, 'workspace')).run('bash', { command });
  assert.match(fenced.text, /^1\n1\n/);
  const open = await (await placeAt(t, 'off')).run('bash', { command });
  assert.match(open.text, /^25\n25\n/, 'the control: nothing but the filter refuses it');
});
