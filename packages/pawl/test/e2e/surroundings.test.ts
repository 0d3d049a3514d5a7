import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { userInfo } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { runInProcess } from './in-process.js';
import { makeServed, type Place } from './pawl.js';
import { call, done, message } from './wire-words.js';

/**
 * Surroundings in which commands have no sandbox, or a session no place. Each row says what a user reads first there,
 * and does what it advises: then the command runs.
 */

/** Files of the system that name surroundings. Those that a row does not name are absent. */
const SYSTEM_FILES = [
  '/.dockerenv',
  '/run/.containerenv',
  '/run/systemd/container',
  '/var/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/.toolboxenv',
  '/proc/1/cgroup',
  '/proc/self/status',
  '/proc/sys/kernel/osrelease',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
  '/proc/sys/kernel/unprivileged_userns_clone',
  '/proc/sys/user/max_user_namespaces',
  '/etc/os-release',
];

type System = { platform: NodeJS.Platform; files: Record<string, string> };
let system: System | null = null;

const { readFileSync, existsSync } = fs;
const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {};

/** From now on the process sees these files, and runs on this system. */
const exchangeSystem = (context: TestContext, exchanged: System): void => {
  system = exchanged;
  const isExchanged = (file: unknown): file is string =>
    typeof file === 'string' && SYSTEM_FILES.includes(file);
  Reflect.set(fs, 'existsSync', (file: fs.PathLike) =>
    isExchanged(file) ? system?.files[file] !== undefined : existsSync(file),
  );
  Reflect.set(fs, 'readFileSync', (file: fs.PathLike, ...rest: readonly never[]) => {
    if (!isExchanged(file)) return Reflect.apply(readFileSync, fs, [file, ...rest]);
    const text = system?.files[file];
    if (text === undefined) throw new Error(`ENOENT: ${file}`);
    return text;
  });
  syncBuiltinESMExports();
  Object.defineProperty(process, 'platform', { get: () => system?.platform });
  context.after(() => {
    Object.defineProperty(process, 'platform', platform);
    Object.assign(fs, { readFileSync, existsSync });
    syncBuiltinESMExports();
  });
};

type Played = Place & { readonly bin: string; readonly system: System };

const program = (file: string, script: string): void => {
  rmSync(file, { force: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
};

const failing = (words: string): string => `echo 'bwrap: ${words}' >&2; exit 1`;

const linkBubblewrap = ({ bin }: Played): void => {
  rmSync(path.join(bin, 'bwrap'), { force: true });
  symlinkSync('/usr/bin/bwrap', path.join(bin, 'bwrap'));
};

/** What a user does after reading a message. It works if the command runs. */
type Deed = (place: Played, advice: string) => void;

/** `write sandbox = "off" into FILE` */
const writeSetting: Deed = (_, advice) => {
  const [, line = '', file = ''] = /write (.*) into (\S+?)\.?$/m.exec(advice) ?? [];
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${line}\n`);
};

/** Runs the advised command line with programs that do what those of the system do. */
const runCommands: Deed = (place, advice) => {
  const [line = ''] = /(?:sudo )?apt-get .*?(?=\.?$)/m.exec(advice) ?? [];
  program(path.join(place.bin, 'sudo'), 'exec "$@"');
  program(path.join(place.bin, 'apt-get'), 'test "$1" = install && echo "$2" >> installed');
  program(path.join(place.bin, 'cp'), 'echo "$@" > copied');
  program(path.join(place.bin, 'apparmor_parser'), 'test "$1" = -r && test -f "copied"');
  execFileSync('/bin/sh', ['-ec', line], { cwd: place.folder, env: { PATH: place.bin } });
  linkBubblewrap(place);
};

const changeSubsystem: Deed = (place, advice) => {
  assert.match(advice, /wsl --set-version Ubuntu 2/);
  place.system.files['/proc/sys/kernel/osrelease'] = WSL_2;
  linkBubblewrap(place);
};

const changeToSubsystem: Deed = (place, advice) => {
  assert.match(advice, /wsl --install/);
  place.system.platform = 'linux';
  place.system.files['/proc/sys/kernel/osrelease'] = WSL_2;
  linkBubblewrap(place);
};

/** `set XDG_STATE_HOME`, `Set HOME` */
const setVariable: Deed = (place, advice) => {
  const [, name = ''] = /\bSet ([A-Z_]+)/.exec(advice) ?? [];
  const folder = path.join(place.folder, 'chosen');
  mkdirSync(folder, { recursive: true });
  place.environment[name] = folder;
};

const setJobVariable: Deed = (place, advice) => {
  const [, name = '', value] = /(PAWL_\w+)=(\w+)/.exec(advice) ?? [];
  place.environment[name] = value;
};

const NO_NAMESPACES =
  'No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces';
const WSL_1 = '4.4.0-19041-Microsoft';
const WSL_2 = '5.15.153.1-microsoft-standard-WSL2';
const UBUNTU = { '/etc/os-release': 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n' };
const RESTRICTED = { '/proc/sys/kernel/apparmor_restrict_unprivileged_userns': '1\n' };
const DOCKER = {
  '/.dockerenv': '',
  '/proc/self/status': 'Name:\tnode\nCapBnd:\t00000000a80425fb\nSeccomp:\t2\n',
};

type Row = {
  readonly title: string;
  readonly platform?: NodeJS.Platform;
  /** A script that stands for bwrap; null: there is none; absent: the real one. */
  readonly bwrap?: string | null;
  readonly files?: Readonly<Record<string, string>>;
  readonly environment?: NodeJS.ProcessEnv;
  /** The first message, of `pawl -p hi` and of doctor: what is the matter, and what to do. */
  readonly message: readonly [reason: string, repair: string];
  readonly deed: Deed;
};

const INSTALL = 'Install it: apt-get install bubblewrap';
const MISSING = 'bubblewrap (bwrap) is not installed.';
const REFUSED = 'bubblewrap may not make namespaces: bwrap:';
const LOAD_PROFILE =
  'AppArmor restricts user namespaces here. Load the profile of AppArmor for bwrap: ' +
  'sudo apt-get install apparmor-profiles && ' +
  'sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && ' +
  'sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict';
const WRITE = 'write sandbox = "off" into <folder>/home/.config/pawl/config.toml';
const CONTAINER =
  'The container itself keeps commands from the machine, except from what is mounted in it. If ' +
  'that is enough for you, decide it once:';
const LEAKS = `for word do
  shift
  [ "$word" = --unshare-net ] || set -- "$@" "$word"
done
exec /usr/bin/bwrap "$@"`;

const unfenced: readonly Row[] = [
  {
    title: 'no bubblewrap',
    bwrap: null,
    files: UBUNTU,
    message: [MISSING, INSTALL],
    deed: runCommands,
  },
  {
    title: 'user namespaces switched off',
    bwrap: failing(NO_NAMESPACES),
    files: { ...UBUNTU, '/proc/sys/user/max_user_namespaces': '0\n' },
    message: [
      `${REFUSED} ${NO_NAMESPACES}.`,
      'User namespaces are switched off here; who runs this machine can allow them. To run ' +
        `commands without a sandbox, ${WRITE}`,
    ],
    deed: writeSetting,
  },
  {
    title: 'the AppArmor of Ubuntu',
    bwrap: failing('setting up uid map: Permission denied'),
    files: { ...UBUNTU, ...RESTRICTED },
    message: [`${REFUSED} setting up uid map: Permission denied.`, LOAD_PROFILE],
    deed: runCommands,
  },
  {
    title: 'Docker',
    bwrap: failing(NO_NAMESPACES),
    files: { ...UBUNTU, ...RESTRICTED, ...DOCKER },
    message: [
      `This is a container of Docker. ${REFUSED} ${NO_NAMESPACES}.`,
      `${CONTAINER} ${WRITE}`,
    ],
    deed: writeSetting,
  },
  {
    title: 'a container that has the socket of Docker, so it is no fence',
    bwrap: null,
    files: { ...UBUNTU, ...DOCKER, '/var/run/docker.sock': '' },
    message: [MISSING, INSTALL],
    deed: runCommands,
  },
  {
    title: 'a devcontainer',
    bwrap: null,
    files: DOCKER,
    environment: { REMOTE_CONTAINERS: 'true' },
    message: [`This is a devcontainer. ${MISSING}`, `${CONTAINER} ${WRITE}`],
    deed: writeSetting,
  },
  {
    title: 'a runner of GitHub Actions',
    bwrap: failing('loopback: Failed RTM_NEWADDR: Operation not permitted'),
    files: { ...UBUNTU, ...RESTRICTED },
    environment: { CI: 'true', GITHUB_ACTIONS: 'true' },
    message: [
      `This is a runner of GitHub Actions. ${REFUSED} loopback: Failed RTM_NEWADDR: Operation not permitted.`,
      LOAD_PROFILE,
    ],
    deed: runCommands,
  },
  {
    title: 'a CI job in a container',
    bwrap: null,
    files: DOCKER,
    environment: { CI: 'true', GITLAB_CI: 'true' },
    message: [
      `This is a container of Docker. ${MISSING}`,
      `${CONTAINER} set the variable PAWL_SANDBOX=off for this job`,
    ],
    deed: setJobVariable,
  },
  {
    title: 'WSL 1',
    bwrap: failing('Creating new namespace failed: Invalid argument'),
    files: { ...UBUNTU, '/proc/sys/kernel/osrelease': WSL_1 },
    environment: { WSL_DISTRO_NAME: 'Ubuntu' },
    message: [
      `This is version 1 of WSL. ${REFUSED} Creating new namespace failed: Invalid argument.`,
      'It has no namespaces. In Windows, change to version 2: wsl --set-version Ubuntu 2',
    ],
    deed: changeSubsystem,
  },
  {
    title: 'WSL 2 without bubblewrap, with systemd',
    bwrap: null,
    files: { ...UBUNTU, '/proc/sys/kernel/osrelease': WSL_2, '/run/systemd/container': 'wsl\n' },
    message: [`This is WSL. ${MISSING}`, INSTALL],
    deed: runCommands,
  },
  {
    title: 'macOS',
    platform: 'darwin',
    bwrap: null,
    message: ['This is macOS. sandbox-exec is not there.', `To run commands without one, ${WRITE}`],
    deed: writeSetting,
  },
  {
    title: 'Windows',
    platform: 'win32',
    bwrap: null,
    message: [
      'This is Windows, where Pawl has no sandbox.',
      'Use Pawl in WSL 2, where it has one: wsl --install',
    ],
    deed: changeToSubsystem,
  },
  {
    title: 'a fence that does not hold',
    bwrap: LEAKS,
    message: [
      'The sandbox was tried and is not used: a command in it could reach the network.',
      'Install <folder>/bin/bwrap again from the packages of your system, then look again: pawl doctor',
    ],
    deed: linkBubblewrap,
  },
];

test('the first message, and what it advises done: no folder for temporary files', async (context) => {
  const { place, run } = await play(context, { environment: { TMPDIR: '/nowhere' } });
  const [first = ''] = (await run('-p', 'hi')).stderr.split('\n');
  assert.match(first, /^! The sandbox could not be tried: ENOENT: .*, mkdtemp '\/nowhere\//);
  assert.match(first, /TMPDIR names the folder for temporary files/);
  assert.match((await run('doctor')).text, /\(temporaryUnwritable\)/);
  place.environment.TMPDIR = place.folder;
  assert.deepEqual((await run('-p', 'hi')).stderr, '');
});

/** A place of its own with the files of the row; the model runs one command. */
const play = async (context: TestContext, row: Omit<Row, 'message' | 'deed' | 'title'>) => {
  const turn = [message(call('a', 'bash', { command: 'echo it ran' })), done];
  const served = await makeServed(context, [...turn, ...turn]);
  const bin = path.join(served.folder, 'bin');
  mkdirSync(bin);
  for (const name of ['bash', 'sh', 'dd', 'test', 'setsid'])
    symlinkSync(`/usr/bin/${name}`, path.join(bin, name));
  const { platform: system = 'linux', files = {}, bwrap, environment = {} } = row;
  const place: Played = { ...served, bin, system: { platform: system, files: { ...files } } };
  const XDG_CACHE_HOME = path.join(served.folder, 'cache');
  Object.assign(place.environment, { PATH: bin, XDG_CACHE_HOME, ...environment });
  if (bwrap === undefined) linkBubblewrap(place);
  else if (bwrap !== null) program(path.join(bin, 'bwrap'), bwrap);
  exchangeSystem(context, place.system);
  const run = async (...words: readonly string[]) => {
    const ended = await runInProcess(place, words);
    const text = `${ended.stderr}${ended.stdout}`.replaceAll(place.folder, '<folder>');
    return { ...ended, text };
  };
  return { place, run };
};

for (const row of unfenced)
  test(`the first message, and what it advises done: ${row.title}`, async (context) => {
    const { place, run } = await play(context, row);
    const [reason, repair] = row.message;
    const before = await run('-p', 'hi');
    const doctor = await run('doctor');
    assert.equal(
      before.text.split('\n')[0],
      `! ${reason} So commands have no sandbox here, and each one is denied. ${repair}.`,
    );
    assert.ok(
      doctor.text.includes(
        `✗ commands can't be run in a sandbox here: ${reason} In a terminal Pawl asks before each ` +
          `command, without one it denies them (sandboxMissing)\n  ${repair}\n`,
      ),
      doctor.text,
    );
    assert.deepEqual([before.code, doctor.code], [77, 1]);
    const all = `${before.text}${doctor.text}`;
    assert.doesNotMatch(all, /sysctl/);
    if (row.platform !== undefined) assert.doesNotMatch(all, /bubblewrap|bwrap/);
    row.deed(place, before.stderr);
    const after = await run('-p', 'hi');
    assert.deepEqual([after.code, after.stderr], [0, '']);
  });

test('the first message, and what it advises done: a home that is read-only', async (context) => {
  const environment = { HOME: '/sys/kernel', XDG_STATE_HOME: undefined, XDG_CACHE_HOME: undefined };
  const { place, run } = await play(context, { environment });
  const before = await run('-p', 'hi');
  assert.match(
    before.text,
    /^pawl: Pawl can't write its journal below \/sys\/kernel\/\.local\/state: .*\n.*\nSet XDG_STATE_HOME to a writable folder, for example XDG_STATE_HOME=\/tmp\/state\.\n$/,
  );
  const found = /✗ sessions can't be stored in .*\(stateUnwritable\)\n {2}.*set XDG_STATE_HOME/;
  assert.match((await run('doctor')).text, found);
  setVariable(place, before.stderr);
  assert.deepEqual([before.code, (await run('-p', 'hi')).code], [74, 0]);
  assert.doesNotMatch((await run('doctor')).text, found);
});

test('the first message, and what it advises done: no home', async (context) => {
  const { place, run } = await play(context, { environment: { HOME: '' } });
  assert.deepEqual([(await run('-p', 'hi')).stderr], ['']);
  const { text } = await run('doctor');
  assert.ok(
    text.includes(
      `✗ HOME is not set: ${userInfo().homedir} is used instead (homeMissing)\n  Set HOME, or ` +
        'XDG_STATE_HOME and XDG_CONFIG_HOME, to folders of yours\n',
    ),
    text,
  );
  setVariable(place, text);
  assert.doesNotMatch((await run('doctor')).text, /homeMissing/);
});

test('the first message: a proxy that can not work ends at once, and its variable is named', async (context) => {
  for (const name of ['HTTPS_PROXY', 'all_proxy']) {
    const environment = { ANTHROPIC_BASE_URL: 'https://a.example', [name]: 'socks5://p:1080' };
    const { code, stderr } = await (await play(context, { environment })).run('-p', 'hi');
    assert.equal(code, 78);
    assert.equal(
      stderr.split('\n')[0],
      `! the provider refused the request: ${name.toUpperCase()} names a proxy of the kind socks5, ` +
        'not an HTTP proxy. Write it as http://HOST:PORT, or unset it',
    );
  }
});
