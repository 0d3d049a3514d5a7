import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
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

test('bash: a command that ends with words of bubblewrap has run, and is told so', async (t) => {
  const place = await placeAt(t, 'workspace');
  for (const last of ['bwrap --no-such-option', 'echo nsenter: no; exit 1']) {
    const { text } = await place.run('bash', { command: `echo x >>ran; ${last}` });
    assert.match(text, /^(?:bwrap|nsenter): .*\n\[exit code 1/);
  }
  assert.equal(readFileSync(place.path('ran'), 'utf8'), 'x\nx\n');
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

/** 2.8 MB in one write, and the end of the process with it. */
const WRITE_AND_EXIT = [
  "const lines = Array.from({ length: 50_000 }, (_, at) => 'line ' + at + ' ' + 'x'.repeat(45));",
  "process.stdout.write(lines.join('\\n') + '\\nlast\\n');",
  'process.exit(0);',
].join('\n');

const countedLines = (text: string): number => text.match(/^line \d+ x{45}$/gm)?.length ?? 0;

/** Ways to run it, also through pipes of its own. */
const writers: readonly (readonly [title: string, command: string])[] = [
  ['alone', 'node writer.cjs'],
  ['through a shell', 'sh -c "node writer.cjs" 2>&1 | cat'],
  ['as a child that a program reads', 'node parent.cjs'],
  ['to its errors', 'node writer.cjs >&2'],
];
const PARENT = [
  "const { spawn } = require('node:child_process');",
  "const child = spawn(process.execPath, ['writer.cjs'], { stdio: ['ignore', 'pipe', 'inherit'] });",
  'child.stdout.pipe(process.stdout);',
].join('\n');

test('bash: the end of a large output is there although its program exits at once', async (t) => {
  const place = await placeAt(t, 'workspace');
  writeFileSync(place.path('writer.cjs'), WRITE_AND_EXIT);
  writeFileSync(place.path('parent.cjs'), PARENT);
  for (const [title, command] of writers) {
    const { text } = await place.run('bash', { command });
    assert.equal(countedLines(text), 50_000, title);
    assert.match(text, /\nlast\n\[exit code 0, [\d.]+ s\]$/, title);
  }
});

test('bash: a job keeps the end of its output, too', async (t) => {
  const place = await placeAt(t, 'workspace');
  writeFileSync(place.path('writer.cjs'), `setTimeout(() => { ${WRITE_AND_EXIT} }, 500)`);
  await place.run('bash', { command: 'node writer.cjs', background: true });
  const job = place.jobs.get('job-1') ?? assert.fail('there is no job');
  await until('it has ended', () => job.status() !== 'running');
  assert.equal(countedLines(job.output()), 50_000);
});

const ENDLESS =
  'process.stdout.on("error", () => process.exit()); ' +
  'const write = () => { process.stdout.write("1\\n"); setImmediate(write); }; write()';

test('bash: output is still a pipe: it has its reader, and can be written to by its name', async (t) => {
  const place = await placeAt(t, 'workspace');
  const { text } = await place.run('bash', {
    command: [
      '[ -p /dev/stdout ] && [ -p /dev/stderr ] && [ ! -t 1 ] && echo pipe',
      'echo one; echo two >/dev/stderr; echo three >/dev/stdout; echo four >&2',
      `node -e '${ENDLESS}' | head -n 1`,
      'yes | head -n 1',
    ].join('\n'),
  });
  assert.match(text, /^pipe\none\ntwo\nthree\nfour\n1\ny\n\[exit code 0/);
});

test('bash: without a sandbox the end may be missing, and a long output says so', async (t) => {
  const NOTE = /\n\[the end of this output may be missing: Node [^\n]*\]$/;
  const open = await placeAt(t, 'off');
  const command = 'seq 20000';
  assert.match((await open.run('bash', { command })).text, NOTE);
  assert.doesNotMatch((await open.run('bash', { command: 'seq 2000' })).text, NOTE);
  const fenced = await placeAt(t, 'workspace');
  assert.doesNotMatch((await fenced.run('bash', { command })).text, NOTE);
});

const RETRIES =
  /^(?:p?npm_config_fetch_retries|YARN_HTTP_RETRY|(?:PIP|UV_HTTP)_RETRIES|CARGO_NET_RETRY|BUNDLE_RETRY)=(.*)$/gim;

const retriesAt = async (
  t: TestContext,
  level: CommandLevel,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> => {
  const clean = Object.entries(process.env).filter(([name]) => !/retr/i.test(name));
  const place = await makePlace(t, { ...Object.fromEntries(clean), ...more }, level);
  const { text } = await place.run('bash', { command: 'env' });
  return [...text.matchAll(RETRIES)].map(([, value = '']) => value).sort();
};

test('bash: without a network no package manager tries again, unless the user says how often', async (t) => {
  const NONE = Array.from({ length: 7 }, () => '0');
  assert.deepEqual(await retriesAt(t, 'workspace'), NONE);
  assert.deepEqual(await retriesAt(t, 'read-only'), NONE);
  assert.deepEqual(await retriesAt(t, 'workspace+net'), []);
  assert.deepEqual(await retriesAt(t, 'off'), []);
  const own = { NPM_CONFIG_FETCH_RETRIES: '5', CARGO_NET_RETRY: '4', PIP_RETRIES: '3' };
  assert.deepEqual(await retriesAt(t, 'workspace', own), ['0', '0', '0', '0', '3', '4', '5']);
});

test('bash: npm install without a network makes one attempt, and the way to the network is said', async (t) => {
  const place = await placeAt(t, 'workspace');
  const manifest = { name: 'app', version: '1.0.0', dependencies: { 'left-pad': '1.3.0' } };
  writeFileSync(place.path('package.json'), JSON.stringify(manifest));
  const HINT = /\n\[the sandbox has no network: .* needs: "network"\]$/;
  const plain = await place.run('bash', { command: 'npm install --loglevel http' });
  assert.equal(plain.status, 'failed');
  assert.match(plain.text, HINT);
  assert.doesNotMatch(plain.text, /attempt [2-9]/);
  const piped = await place.run('bash', { command: 'npm install 2>&1 | tail -n 3' });
  assert.equal(piped.status, 'ok');
  assert.match(piped.text, HINT);
});

test('bash: a network command that runs into its time limit without a network is told so', async (t) => {
  const place = await placeAt(t, 'workspace');
  const stop = new AbortController();
  const progress = (): void => stop.abort('timedOut');
  const options = { signal: stop.signal, progress };
  const { status, text } = await place.run(
    'bash',
    { command: 'pnpm() { echo; sleep 60; }; pnpm i' },
    options,
  );
  assert.equal(status, 'timedOut');
  assert.match(text, /\n\[the sandbox has no network: .* needs: "network"\]$/);
});

test('bash: what failed outside of the workspace says so, and names the way', async (t) => {
  const place = await placeAt(t, 'workspace');
  const remote = path.join(place.outside, 'remote.git');
  execFileSync('git', ['init', '-q', '--bare', remote]);
  const commit = 'git init -q . && git commit -q --allow-empty -m one';
  const pushed = await place.run('bash', { command: `${commit} && git push ${remote} HEAD:main` });
  assert.equal(pushed.status, 'failed');
  assert.match(pushed.text, /\[repositories outside of the workspace .* needs: "outside"\]$/);
  const moved = await place.run('bash', { command: 'mkdir .husky && echo x >.husky/pre-commit' });
  assert.match(
    moved.text,
    /\.husky is protected .* was moved away; if that was on purpose, .* needs: "outside"/,
  );
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

/** Listens at a free port of localhost and writes its number, or at an abstract socket, into `port`. */
const serverAt = (address: string): string =>
  `node -e "const s = require('net').createServer((c) => c.end('served\\n'));` +
  `s.listen(${address}, () => require('fs').writeFileSync('port', ''+s.address().port))"`;
const SERVER = serverAt("0, '127.0.0.1'");
const untilListens = (place: Place): Promise<true> =>
  until(
    'the server listens',
    () => existsSync(place.path('port')) && readFileSync(place.path('port'), 'utf8') !== '',
  );
/** The abstract socket of the server is of no use to anybody else than this run of the tests. */
const NAME = `pawl-test-${process.pid}`;
const askAt = (address: string): string =>
  `node -e "require('net').connect(${address})` +
  `.on('data', (d) => console.log(''+d)).on('error', (e) => { console.log(e.message); process.exit(1) })"`;
const ASK = askAt("+require('fs').readFileSync('port'), '127.0.0.1'");

const startServer = async (place: Place, command: string): Promise<void> => {
  await place.run('bash', { command, background: true });
  await untilListens(place);
};

test('bash: later commands of the session reach a server in the background, and its end is seen', async (t) => {
  const place = await placeAt(t, 'workspace');
  assert.match((await place.run('bash', { command: 'echo one' })).text, /^one\n/);
  await startServer(place, SERVER);
  assert.match((await place.run('bash', { command: ASK })).text, /^served\n/);
  const all = await Promise.all([1, 2, 3].map(() => place.run('bash', { command: ASK })));
  for (const { text } of all) assert.match(text, /^served\n/);
  assert.match((await place.run('bash', { command: 'kill -9 -1' })).text, /ended by SIGKILL|137/);
  assert.match((await place.run('bash', { command: ASK })).text, /^served\n/, 'after a kill');
  await place.run('bash', { jobAction: 'kill', jobId: 'job-1' });
  const { text } = await place.run('bash', { command: ASK });
  assert.match(text, /^connect ECONNREFUSED /);
  assert.match(text, /only servers that run as a job of this session/);
});

test('bash: a server is reached by no other session, by no command with the network, and not from outside', async (t) => {
  const place = await placeAt(t, 'workspace');
  await startServer(place, SERVER);
  const { outside } = await placeAt(t, 'workspace');
  const environment = { ...process.env, XDG_STATE_HOME: path.join(outside, 'state') };
  const other = await makePlace(t, environment, 'workspace');
  const port = readFileSync(place.path('port'), 'utf8');
  const ask = askAt(`${port}, '127.0.0.1'`);
  assert.match((await place.run('bash', { command: ask })).text, /^served\n/, 'control');
  for (const asked of [
    await other.run('bash', { command: ask }),
    await other.run('bash', { command: ask }, { level: 'off' }),
  ])
    assert.match(asked.text, /^connect ECONNREFUSED /);
  const reach = { level: 'workspace+net', widened: 'byUser' } as const;
  const online = await place.run('bash', { command: ask }, reach);
  assert.match(online.text, /^connect ECONNREFUSED /);
  assert.match(online.text, /a command with the network does not see/);
  assert.match((await place.run('bash', { command: ask })).text, /^served\n/, 'it still runs');
});

test('bash: commands of a session share sockets without a path, and nobody else sees them', async (t) => {
  const place = await placeAt(t, 'workspace');
  const address = String.raw`'\\0${NAME}'`;
  await startServer(place, serverAt(address));
  const ask = askAt(address);
  assert.match((await place.run('bash', { command: ask })).text, /^served\n/);
  const outside = await place.run('bash', { command: ask }, { level: 'off' });
  assert.match(outside.text, /^connect ECONNREFUSED /);
});

test('bash: a server of the machine is not reached, though commands share a localhost', async (t) => {
  const place = await placeAt(t, 'workspace');
  const server = createServer((socket) => void socket.end('served\n'));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const ask = askAt(`${address.port}, '127.0.0.1'`);
  assert.match((await place.run('bash', { command: ask }, { level: 'off' })).text, /^served\n/);
  assert.match((await place.run('bash', { command: ask })).text, /^connect ECONNREFUSED /);
});

test('bash: a command that no launcher can start shares the network too', async (t) => {
  const place = await placeAt(t, 'workspace');
  await startServer(place, SERVER);
  const command = `${ASK} # ${'long '.repeat(21_000)}`;
  assert.match((await place.run('bash', { command })).text, /^served\n/);
});

test('bash: where no network can be shared each command has its own, and the first result says so', async (t) => {
  const outside = temporaryFolder(t, 'outside');
  const bin = path.join(outside, 'bin');
  mkdirSync(bin);
  for (const name of ['bwrap', 'bash', 'node']) // without dd nothing is parked
    symlinkSync(name === 'node' ? process.execPath : `/usr/bin/${name}`, path.join(bin, name));
  const environment = {
    ...process.env,
    PATH: `${bin}`,
    XDG_STATE_HOME: path.join(outside, 'state'),
  };
  const place = await makePlace(t, environment, 'workspace');
  const first = await place.run('bash', { command: 'readlink /proc/self/ns/net' });
  assert.match(first.text, /\[the sandbox: each command has a localhost of its own here/);
  assert.match(first.text, /nsenter \(of util-linux\) is not installed/);
  const second = await place.run('bash', { command: 'readlink /proc/self/ns/net' });
  assert.doesNotMatch(second.text, /localhost/);
});
