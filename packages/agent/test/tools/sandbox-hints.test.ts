import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import type { CommandEnd } from '../../src/command/command.js';
import { createCommandOutput } from '../../src/command/output.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import { commandOutcome, type RunPlace, sandboxHint } from '../../src/tools/bash-result.js';

const place = { workspace: '/people/ada/code/app', home: '/people/ada' };

const hintFor = (
  output: string,
  level: CommandLevel = 'workspace',
  command = './run.sh',
): string | null => sandboxHint({ ...place, command, level, output });

type Row = readonly [what: RegExp, level: CommandLevel, output: string];

const NETWORK = /^the sandbox has no network: .* needs: "network"$/;
const LOCAL = /^only servers that run as a job of this session .* needs: "network"$/;
const READ_ONLY = /^in the sandbox only the workspace.* needs: "outside"$/;
const PLAN = /^the sandbox is read-only now/;
const GIT = /^git's configuration and hooks .* needs: "outside"$/;
const REPLACED = /^\.git and files that are run later .* needs: "outside"$/;
const SECRET = /^secrets of the machine .* needs: "outside"$/;
const HOME = /^the home folder in the sandbox .* needs: "outside"$/;
const DAEMON = /^daemons of the machine .* needs: "outside"$/;
const RIGHTS = /^no rights can be gained .* needs: "outside"$/;
const MOUNTS = /^namespaces and mounts .* needs: "outside"$/;
const KEYS = /^keys and their agents .* needs: "outside"$/;
const OWNER = /^there is one user only .* needs: "outside"$/;
const PACKAGES = /^packages of the system .* needs: "outside"$/;
const REPOSITORIES = /^repositories outside of the workspace .* needs: "outside"$/;
const TRACING = /^tracing of other processes .* needs: "outside"$/;

/** As the programs print it. */
const rows: readonly Row[] = [
  [NETWORK, 'workspace', 'curl: (6) Could not resolve host: packages.example.org'],
  [
    NETWORK,
    'read-only',
    "fatal: unable to access 'https://x.org/a/': Could not resolve host: x.org",
  ],
  [NETWORK, 'workspace', 'npm error code EAI_AGAIN\nnpm error syscall getaddrinfo'],
  [NETWORK, 'workspace', 'Error: getaddrinfo ENOTFOUND example.com'],
  [NETWORK, 'workspace', 'Error: connect ENETUNREACH 93.184.216.34:443'],
  [
    NETWORK,
    'workspace',
    'NameResolutionError("<urllib3.connection>: Failed to resolve \'pypi.org\' ([Errno -3] Temporary failure in name resolution)")',
  ],
  [NETWORK, 'workspace', 'ping: connect: Network is unreachable'],
  [
    NETWORK,
    'workspace',
    'go: x.org/y: dial tcp: lookup proxy.golang.org on [::1]:53: no such host',
  ],
  [
    NETWORK,
    'workspace',
    "curl: (7) Failed to connect to 93.184.216.34 port 443 after 0 ms: Couldn't connect to server",
  ],
  [NETWORK, 'workspace', 'wget: unable to resolve host address ‘example.com’'],
  [LOCAL, 'workspace', 'Error: connect ECONNREFUSED 127.0.0.1:5432'],
  [
    LOCAL,
    'workspace',
    "curl: (7) Failed to connect to localhost port 4567 after 0 ms: Couldn't connect to server",
  ],
  [
    LOCAL,
    'workspace',
    'psql: error: connection to server at "localhost", port 5432 failed: Connection refused',
  ],
  [READ_ONLY, 'workspace', "touch: cannot touch '/usr/x': Read-only file system"],
  [READ_ONLY, 'workspace', "Error: EROFS: read-only file system, open '/opt/y'"],
  [READ_ONLY, 'workspace+net', 'bash: line 1: /people/ada/.bashrc2: Read-only file system'],
  [PLAN, 'read-only', 'bash: line 1: out.txt: Read-only file system'],
  [PLAN, 'read-only+net', "OSError: [Errno 30] Read-only file system: 'a.pyc'"],
  [GIT, 'workspace', 'error: could not lock config file .git/config: Device or resource busy'],
  [GIT, 'workspace', 'error: could not write config file .git/config: Device or resource busy'],
  [
    GIT,
    'workspace',
    "cp: cannot create regular file '.git/hooks/pre-commit': Read-only file system",
  ],
  [REPLACED, 'workspace', "mv: cannot move '.git' to '.git2': Device or resource busy"],
  [REPLACED, 'workspace', "rm: cannot remove '.git': Device or resource busy"],
  [
    REPLACED,
    'workspace',
    "error: unable to unlink old '.vscode/tasks.json': Read-only file system",
  ],
  [SECRET, 'workspace', 'cat: /etc/shadow: Permission denied'],
  [
    SECRET,
    'workspace',
    "EACCES: permission denied, open '/etc/shadow'\n/etc/shadow: Permission denied",
  ],
  [HOME, 'workspace', 'cat: /people/ada/.ssh/id_ed25519: No such file or directory'],
  [
    HOME,
    'workspace',
    "Error: ENOENT: no such file or directory, open '/people/ada/.aws/credentials'",
  ],
  [
    HOME,
    'workspace',
    "FileNotFoundError: [Errno 2] No such file or directory: '/people/ada/.netrc'",
  ],
  [HOME, 'workspace', 'cat: /run/pawl/home/.aws/credentials: No such file or directory'],
  [HOME, 'workspace', 'bash: ~/bin/tool: No such file or directory'],
  [
    DAEMON,
    'workspace',
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?',
  ],
  [
    DAEMON,
    'workspace',
    'error during connect: this error may indicate: Is the docker daemon running?',
  ],
  [DAEMON, 'workspace', 'dial unix /var/run/docker.sock: connect: no such file or directory'],
  [
    RIGHTS,
    'workspace',
    'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
  ],
  [
    RIGHTS,
    'workspace',
    'sudo: effective uid is not 0, is /usr/bin/sudo on a file system with nosuid?',
  ],
  [MOUNTS, 'workspace', 'unshare: unshare failed: Operation not permitted'],
  [MOUNTS, 'workspace', 'mount: /mnt: permission denied.'],
  [MOUNTS, 'workspace', 'bwrap: No permissions to create new namespace'],
  [KEYS, 'workspace', 'git@github.com: Permission denied (publickey).'],
  [KEYS, 'workspace', 'Could not open a connection to your authentication agent.'],
  [KEYS, 'workspace', 'error: gpg failed to sign the data'],
  [OWNER, 'workspace', "chown: changing ownership of 'a': Operation not permitted"],
  [
    REPOSITORIES,
    'workspace',
    "fatal: '/srv/git/app.git' does not appear to be a git repository\nfatal: Could not read",
  ],
  [REPOSITORIES, 'workspace', "fatal: '../app.git' does not appear to be a git repository"],
  [REPOSITORIES, 'workspace', "fatal: repository '/srv/git/app.git' does not exist"],
  [TRACING, 'workspace', 'strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted'],
];

test('a command that failed for lack of something in the sandbox is told what, and the way out', () => {
  for (const [what, level, output] of rows) {
    assert.match(hintFor(output, level) ?? 'no hint', what, output);
    assert.match(
      hintFor(`${'line\n'.repeat(5_000)}${output}\n`, level) ?? 'no hint',
      what,
      'after much output',
    );
  }
});

test('outside of the sandbox there is no hint', () => {
  for (const [, , output] of rows) assert.equal(hintFor(output, 'off'), null, output);
});

test('with network nothing is said of the network', () => {
  for (const [what, , output] of rows)
    if (what === NETWORK || what === LOCAL)
      assert.equal(hintFor(output, 'workspace+net'), null, output);
});

/** What a command needs that failed without words about it. */
const silent: readonly (readonly [command: string, hint: RegExp | null])[] = [
  ['npm install', NETWORK],
  ['cd app && npm ci --no-audit 2>&1', NETWORK],
  ['npm --prefix app i left-pad', NETWORK],
  ['yarn', NETWORK],
  ['yarn add left-pad', NETWORK],
  ['pnpm i', NETWORK],
  ['CI=1 pip install -r requirements.txt', NETWORK],
  ['python3 -m pip install x', NETWORK],
  ['uv sync', NETWORK],
  ['cargo install ripgrep', NETWORK],
  ['go mod download', NETWORK],
  ['gem install rails', NETWORK],
  ['git fetch', NETWORK],
  ['git -C app pull --rebase', NETWORK],
  ['git clone https://x.org/a.git', NETWORK],
  ['git push origin main', NETWORK],
  ['curl -s https://x.org', NETWORK],
  ['(wget -q https://x.org/a)', NETWORK],
  ['apt-get install -y jq', PACKAGES],
  ['sudo apt-get -y install jq', PACKAGES],
  ['apk add jq', PACKAGES],
  ['curl -s http://localhost:3000/health', null],
  ['curl -s --unix-socket /var/run/docker.sock http://d/info', DAEMON],
  ['curl --unix-socket ~/app.sock http://d/info', DAEMON],
  ['curl --abstract-unix-socket=./app.sock http://d/info', null],
  ['wget -q http://127.0.0.1:8080/', null],
  ['npm test', null],
  ['npx tsc', null],
  ['cargo test', null],
  ['go test ./...', null],
  ['git commit -m "push it"', null],
  ['cat install.md', null],
  ['./curl-test.sh', null],
  ['echo git-fetch', null],
];

test('a command whose words need the network is told so when it fails, whatever it printed', () => {
  for (const [command, hint] of silent) {
    const found = hintFor('', 'workspace', command);
    if (hint === null) assert.equal(found, null, command);
    else assert.match(found ?? 'no hint', hint, command);
    assert.equal(hintFor('', 'off', command), null, command);
    if (hint === NETWORK) assert.equal(hintFor('', 'workspace+net', command), null, command);
  }
});

test('a link that leads out of the workspace is named where a command does not see its target', (context) => {
  const top = temporaryFolder(context, 'links');
  const workspace = path.join(top, 'work');
  for (const folder of ['big', 'work/inner'])
    mkdirSync(path.join(top, folder), { recursive: true });
  for (const [name, target] of [
    ['target', '../big'],
    ['within', 'inner'],
    ['nowhere', '../none'],
  ] as const)
    symlinkSync(target, path.join(workspace, name));
  const hint = (output: string): string | null =>
    sandboxHint({ ...place, workspace, command: './run.sh', level: 'workspace', output });
  for (const output of [
    'mkdir: cannot create directory ‘target’: File exists',
    'cat: target/a.txt: No such file or directory',
    `Error: ENOENT: no such file or directory, open '${workspace}/target/a.txt'`,
    "FileExistsError: [Errno 17] File exists: 'target'",
    `error: failed to create directory \`${workspace}/target\`\n\nCaused by:\n  File exists (os error 17)`,
  ])
    assert.match(
      hint(output) ?? '',
      /^target is a link to .*big, which.* needs: "outside"$/,
      output,
    );
  for (const name of ['within/a', 'nowhere', 'a.txt', '../big'])
    assert.doesNotMatch(hint(`cat: ${name}: No such file or directory`) ?? '', /is a link/, name);
});

test('a failure that no network would change is not blamed on it', () => {
  const git = 'fatal: not a git repository (or any of the parent directories): .git';
  assert.equal(hintFor(git, 'workspace', 'git push'), null);
  assert.equal(hintFor('bash: pnpm: command not found', 'workspace', 'pnpm install'), null);
  const none = "fatal: 'origin' does not appear to be a git repository";
  assert.doesNotMatch(hintFor(none, 'workspace', 'git push origin main') ?? '', NETWORK);
});

test('a command with the network is told why it does not reach a server in the sandbox', () => {
  const told = (output: string): string | null =>
    sandboxHint({ ...place, command: './run.sh', level: 'workspace+net', isWidened: true, output });
  for (const [what, , output] of rows)
    if (what === LOCAL) assert.match(told(output) ?? 'no hint', /does not see: ask it without/);
  for (const other of ['connect ECONNREFUSED 93.184.216.34:443', 'Failed to connect to x port 1'])
    assert.equal(told(other), null, other);
});

test('where nobody can be asked, no line sends the model into a denial', () => {
  const output = createCommandOutput(() => undefined);
  output.add(Buffer.from('curl: (6) Could not resolve host: example.org\n'));
  const protectedNote =
    '[AGENTS.md was changed; if that was on purpose, change it with the tool write or edit, or ' +
    'ask again with needs: "outside"]';
  const end: CommandEnd = {
    how: { kind: 'exited', code: 6 },
    durationMs: 1,
    leftovers: 'none',
    notes: [protectedNote],
  };
  const told = (unattended: boolean): string => {
    const where: RunPlace = {
      ...place,
      level: 'workspace',
      command: 'curl https://example.org',
      unattended,
    };
    return commandOutcome({ output }, end, where, new AbortController().signal).text;
  };
  assert.match(told(false), /ask again with needs: "network"[\s\S]*the tool write or edit/);
  assert.doesNotMatch(told(true), /ask again|the tool write/);
  assert.match(told(true), /needs: "network" is denied unless a rule of the user allows it/);
});

test('a stopped command has ended with all its processes only where that is known', () => {
  const output = createCommandOutput(() => undefined);
  const told = (leftovers: CommandEnd['leftovers']): string => {
    const how = { kind: 'killed', signal: 'SIGTERM' } as const;
    const end: CommandEnd = { how, durationMs: 1, leftovers, notes: [] };
    return commandOutcome({ output }, end, { ...place, command: 'x', level: 'off' }, stopped).text;
  };
  const stopped = AbortSignal.abort();
  assert.match(told('none'), /with all processes that it started/);
  assert.doesNotMatch(told('unseen'), /with all processes/);
  assert.match(told('unseen'), /does not tell whether processes that it started still run/);
  assert.match(told('detached'), /still runs/);
});

/** What fails every day, and has nothing to do with a sandbox. */
const ordinary: readonly string[] = [
  '',
  'FAIL test/a.test.ts\n  expected 1 to equal 2\nTests: 1 failed, 12 passed',
  "a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
  'bash: line 1: nosuchprogram: command not found',
  'cat: missing.txt: No such file or directory',
  "Error: ENOENT: no such file or directory, open '/people/ada/code/app/missing.json'",
  "ls: cannot access '/people/ada/code/app/x': No such file or directory",
  "node:internal/modules/cjs/loader: Error: Cannot find module './x'\nRequire stack:\n- /people/ada/code/app/a.js",
  'fatal: not a git repository (or any of the parent directories): .git',
  'CONFLICT (content): Merge conflict in a.txt',
  "error: pathspec 'nope' did not match any file(s) known to git",
  "make: *** No rule to make target 'x'.  Stop.",
  'main.c:1:10: fatal error: x.h: No such file or directory',
  'bash: ./run.sh: Permission denied',
  'grep: secret.txt: Permission denied',
  'ModuleNotFoundError: No module named requests',
  'npm error Missing script: "biuld"',
  'error[E0432]: unresolved import `foo`',
  'AssertionError: 404 == 200: page not found',
  'SyntaxError: Unexpected token } in JSON at position 10',
  'Segmentation fault (core dumped)',
  "fatal: bad revision 'HEAD~100'",
  'Everything up-to-date',
  "fatal: 'origin' does not appear to be a git repository",
  "fatal: '/people/ada/code/app/bare' does not appear to be a git repository",
  'E   assert resolve("host") == "x"',
  'Permission denied: user ada may not see this page',
  'the config was not found, using defaults',
  'Resource busy: try again in a moment',
  "sed: can't read nope: No such file or directory",
  'error: Your local changes to the following files would be overwritten by merge:\n\ta.txt',
];

const pretendMac = (context: TestContext): void => {
  const { platform } = process;
  context.after(() => Object.defineProperty(process, 'platform', { value: platform }));
  Object.defineProperty(process, 'platform', { value: 'darwin' });
};

test('on macOS, where no filter keeps a long output whole, its end may be missing', (context) => {
  const output = createCommandOutput(() => undefined);
  output.add(Buffer.alloc(40_000, 'x'));
  const end: CommandEnd = {
    how: { kind: 'exited', code: 0 },
    durationMs: 1,
    leftovers: 'none',
    notes: [],
  };
  const where: RunPlace = { ...place, level: 'workspace', command: './run.sh' };
  pretendMac(context);
  const { text } = commandOutcome({ output }, end, where, new AbortController().signal);
  assert.match(text, /may be missing/);
});

test('on macOS one answer of the system stands for all that the sandbox refuses', (context) => {
  const refusals = ['touch: /etc/x: Operation not permitted', 'Error: EPERM: rename'];
  for (const output of refusals) assert.equal(hintFor(output), null, 'control');
  pretendMac(context);
  for (const output of refusals)
    assert.match(hintFor(output) ?? '', /^the sandbox may be why: .* needs: "outside"$/);
  assert.equal(hintFor('rm: x: Permission denied'), null);
});

test('ordinary failures get no hint', () => {
  for (const level of ['workspace', 'workspace+net', 'read-only'] as const)
    for (const output of ordinary) assert.equal(hintFor(output, level), null, output);
});

test('output that was made to be slow to look through is looked through quickly', () => {
  const spentMs = watchCpu();
  for (const piece of ['mount ', 'ENOENT ', 'move ', "'/a", 'ptrace bpf ', 'chown '])
    hintFor(piece.repeat(20_000));
  for (const piece of ['x', "a'", 'ENOENT', "ENOENT '"]) hintFor(piece.repeat(20_000));
  for (const piece of ['git -a ', 'git -a b', 'npm -', 'yarn ', 'go /', ' -C x'])
    hintFor('', 'workspace', piece.repeat(20_000));
  assert.ok(spentMs() < 1_000);
});
