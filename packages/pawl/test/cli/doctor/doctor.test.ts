import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { bundleProgram } from '../../../../../test/bundled-program.js';
import { chooseRows } from '../../../../../test/tier.js';
import { checks, diagnose } from '../../../src/commands/doctor.js';
import { configured, saying, serving, set, without, withState } from './harms.js';
import { fakeProgram, type Harm, makePlace, namesIn, realGit, write } from './world.js';

/** Beside the user's config.toml there is a file. */
const holding =
  (file: string, text: string, mode?: number): Harm =>
  ({ folder, world }) => {
    write(path.join(folder, 'home/.config/pawl', file), text, mode);
    return world;
  };

/** One row a fault: what is done to the world, and what its repair says. */
const faults: Readonly<Record<string, readonly [Harm, RegExp]>> = {
  nodeTooOld: [({ world }) => ({ ...world, nodeVersion: '20.18.3' }), /nvm install/],
  searchPathSkipped: [
    (place) => {
      const bin = path.join(place.world.workspace, 'bin');
      mkdirSync(bin);
      const PATH = `${bin}:${place.bin}`;
      return { ...place.world, environment: { ...place.world.environment, PATH } };
    },
    /never used/,
  ],
  gitMissing: [without('git'), /apt-get install git/],
  gitTooOld: [saying('git', 'echo git version 1.8.3.1'), /Install git 2\.20/],
  shellMissing: [without('bash'), /PATH/],
  sandboxMissing: [without('bwrap'), /apt-get install bubblewrap/],
  localSocketsRefused: [
    (place) => {
      // a program that no sandbox shows
      const program = realpathSync(path.join(place.bin, 'bwrap'));
      rmSync(path.join(place.bin, 'bwrap'));
      copyFileSync(program, path.join(place.bin, 'bwrap'));
      return place.world;
    },
    /Install bubblewrap as a program of the system/,
  ],
  sandboxOff: [configured('sandbox = "off"\n'), /pawl config --origin/],
  fullWithoutFence: [
    (place, context) => {
      const systemRoot = path.join(place.folder, 'root');
      return configured('preset = "full"\n', { systemRoot })(place, context);
    },
    /only where a container or a virtual machine/,
  ],
  mcpServerUnusable: [
    configured('[mcp.servers.a]\ncommand = "no-such-server"\n'),
    /enabled = false/,
  ],
  hookUnusable: [
    configured('[hook.a]\non = "turn-end"\ncommand = ["no-such-hook"]\n'),
    /pawl hooks list/,
  ],
  homeMissing: [set({ HOME: undefined }), /Set HOME/],
  xdgNotWhole: [set({ XDG_STATE_HOME: 'state' }), /begins with \//],
  stateUnwritable: [set({ XDG_STATE_HOME: '/proc/nowhere' }), /XDG_STATE_HOME/],
  stateReadByOthers: [withState((state) => chmodSync(state, 0o755)), /chmod 700 /],
  temporaryUnwritable: [set({ TMPDIR: '/nowhere/at/all' }), /TMPDIR/],
  configWrittenByOthers: [holding('config.toml', '', 0o666), /chmod go-w /],
  extensionsRun: [
    holding('extensions/mine.mjs', 'export default () => ({});'),
    /remove a file that you do not know/,
  ],
  extensionUnused: [holding('extensions/mine.mjs', 'export {};'), /Repair what the line names/],
  workspaceMissing: [({ world }) => ({ ...world, workspace: '/nowhere' }), /--workspace/],
  workspaceUnwritable: [({ world }) => ({ ...world, workspace: '/proc/self' }), /--preset plan/],
  workspaceTooWide: [
    ({ folder, world }) => ({ ...world, workspace: path.join(folder, 'home') }),
    /one project/,
  ],
  gitLocked: [
    (place) => {
      realGit(place);
      const { workspace } = place.world;
      rmSync(path.join(workspace, '.git'), { recursive: true });
      execFileSync('git', ['init', '-q', workspace], { env: { PATH: process.env.PATH } });
      const lock = path.join(workspace, '.git/index.lock');
      writeFileSync(lock, '');
      utimesSync(lock, 1_000_000_000, 1_000_000_000);
      return place.world;
    },
    /rm \.git\/index\.lock/,
  ],
  noRepository: [
    (place) => {
      realGit(place);
      rmSync(path.join(place.world.workspace, '.git'), { recursive: true });
      return place.world;
    },
    /git init/,
  ],
  gitWouldWait: [
    (place) => {
      // Whoever asks for more hears that there is no repository, which is a second finding.
      fakeProgram(
        place,
        'git',
        'case "$*" in --version) echo git version 2.40.1;; *--get-regexp*) printf "include.path\\n../pipe\\0";; *) echo "not a git repository"; exit 128;; esac',
      );
      execFileSync('mkfifo', [path.join(place.world.workspace, 'pipe')]);
      const config = path.join(place.world.workspace, '.git/config');
      const before = existsSync(config) ? readFileSync(config, 'utf8') : '';
      write(config, `${before}[include]\n\tpath = ../pipe\n`);
      return place.world;
    },
    /Remove it/,
  ],
  repositoryOfAnother: [
    saying(
      'git',
      `[ "$1" = rev-parse ] && echo "fatal: detected dubious ownership in repository" >&2 && exit 128; echo git version 2.40.1`,
    ),
    /safe\.directory/,
  ],
  noGitIdentity: [
    (place) => {
      realGit(place);
      rmSync(path.join(place.world.workspace, '.git'), { recursive: true });
      const environment = { ...place.world.environment, GIT_CONFIG_NOSYSTEM: '1' };
      execFileSync('git', ['init', '-q', place.world.workspace], {
        env: { PATH: process.env.PATH },
      });
      return { ...place.world, environment };
    },
    /user\.email/,
  ],
  runsAsRoot: [({ world }) => ({ ...world, userId: 0 }), /another user/],
  configFaulty: [configured('max_usdd = 1'), /pawl config/],
  projectNotHeeded: [
    ({ world }) => {
      write(path.join(world.workspace, '.pawl/config.toml'), 'formatter = "on"');
      return world;
    },
    /your own config\.toml/,
  ],
  unknownVariable: [set({ PAWL_MAX_USDD: '1' }), /you mean PAWL_MAX_USD/],
  keyInQuotes: [set({ ANTHROPIC_API_KEY: '"sk-ant-1"' }), /the key alone/],
  proxyFaulty: [set({ https_proxy: 'http://[' }), /http:\/\/HOST:PORT/],
  certificatesMissing: [set({ NODE_EXTRA_CA_CERTS: '/nowhere.pem' }), /Correct the path/],
  certificatesUnread: [set({ SSL_CERT_FILE: '/dev/null' }), /NODE_EXTRA_CA_CERTS=/],
  certificatesNotChecked: [set({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }), /Unset it/],
  localeNotUtf8: [set({ LANG: 'C' }), /C\.UTF-8/],
  noKey: [set({ ANTHROPIC_API_KEY: '' }), /Set ANTHROPIC_API_KEY/],
  modelNotFound: [set({ PAWL_MODEL: 'scripted//nowhere.json' }), /./],
  addressFaulty: [set({ ANTHROPIC_BASE_URL: 'nonsense' }), /./],
  localServerSilent: [
    ({ world }) => ({
      ...world,
      online: true,
      model: 'ollama/one',
      environment: { ...world.environment, OLLAMA_HOST: 'http://127.0.0.1:9' },
    }),
    /ollama serve/,
  ],
  modelUnknown: [set({ PAWL_MODEL: 'anthropic/claude-nobody' }), /docs\/set-up\/models\.md/],
  priceUnknown: [set({ PAWL_MODEL: 'anthropic/claude-nobody', PAWL_MAX_USD: '1' }), /max_tokens/],
  unreachable: [
    ({ world }) => ({
      ...world,
      online: true,
      environment: { ...world.environment, ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' },
    }),
    /HTTPS_PROXY/,
  ],
  clockApart: [
    serving(({ now }) => ({ date: new Date(now - 3_600_000).toUTCString() })),
    /timedatectl/,
  ],
  sessionOpen: [
    withState((state) => {
      const holder = {
        pid: 1,
        host: 'elsewhere',
        bootId: 'other',
        started: '',
        pids: '',
        since: 1,
      };
      write(path.join(state, 'sessions/a.lock'), JSON.stringify(holder), 0o600);
    }),
    /kill 1/,
  ],
  instructionsUnused: [
    ({ world }) => {
      write(path.join(world.workspace, 'AGENTS.md'), 'x'.repeat(40_000));
      return world;
    },
    /Shorten AGENTS\.md/,
  ],
};

test('a healthy world has nothing to repair and nothing to know', async (context) => {
  const { world } = makePlace(context);
  assert.deepEqual(await diagnose(world), []);
});

/** In these worlds all checks look, in the deep tier in every one. */
const whole = new Set(chooseRows(Object.keys(faults), (name) => name.charAt(0)));

for (const [name, [harm, repair]] of Object.entries(faults)) {
  test(`doctor: ${name} is found where it is real, with its repair`, async (context) => {
    const place = makePlace(context);
    const world = await harm(place, context);
    const { look } = checks.find((check) => check.name === name) ?? assert.fail('no such check');
    const found = await look(world);
    assert.match(found?.repair ?? 'nothing was found', repair);
    if (!whole.has(name)) return;
    const all = await diagnose(world);
    assert.ok(all.some((one) => one.name === name));
    assert.doesNotMatch(JSON.stringify(all), /the check itself failed/);
  });
}

/** What can't be made real here without another kernel, disk or user. */
const elsewhere = new Set([
  ...['ripgrepMissing', 'diskFull', 'stateOnNetwork', 'workspaceUnreadable'],
  'searchPathShared',
]);

test('every check is made real by a row above, but for those that need another machine; there are at least 25', () => {
  const names = checks.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => !Object.hasOwn(faults, name) && !elsewhere.has(name)),
    [],
  );
  assert.equal(new Set(names).size, names.length);
  assert.ok(Object.keys(faults).length >= 25);
});

test('folders of other users are told: above the workspace, and in PATH', async (context) => {
  if (process.geteuid?.() !== 0)
    return context.diagnostic('needs root to make folders of another user');
  const { world, folder, bin } = makePlace(context);
  const workspace = path.join(world.workspace, 'part');
  mkdirSync(workspace);
  chownSync(world.workspace, 54_321, 54_321);
  const group =
    /^(?:sudo|admin|wheel):[^:]*:(\d+):/m.exec(readFileSync('/etc/group', 'utf8'))?.[1] ?? '0';
  chownSync(bin, 0, Number(group));
  chmodSync(bin, 0o775);
  const found = await diagnose({ ...world, workspace });
  const whatOf = (name: string): string => found.find((one) => one.name === name)?.what ?? '';
  assert.match(
    whatOf('instructionsUnused'),
    /belongs to another user, so the repository, instructions/,
  );
  if (group !== '0') assert.equal(whatOf('searchPathShared').includes(`${folder}/bin`), true);
});

test('a disk without room is found', async (context) => {
  const { folder } = makePlace(context);
  const disk = path.join(folder, 'disk');
  mkdirSync(disk);
  const code = `
    import { checks } from './packages/pawl/src/commands/doctor.ts';
    const check = checks.find(({ name }) => name === 'diskFull');
    const found = await check.look({ environment: { XDG_STATE_HOME: ${JSON.stringify(disk)} } });
    console.log(found.what);
  `;
  const script = await bundleProgram(context, { code });
  const mounted = `mount -t tmpfs -o size=1m none ${disk} && exec ${process.execPath} ${script}`;
  const words = ['--user', '--map-root-user', '--mount', 'sh', '-c', mounted];
  const said = execFileSync('unshare', words, { encoding: 'utf8' });
  assert.match(said, /^[01] MB are free/);
});

test('asking a server that answers finds nothing, and nobody is asked without --online', async (context) => {
  const place = makePlace(context);
  const healthy = await serving(({ now }) => ({ date: new Date(now).toUTCString() }))(
    place,
    context,
  );
  assert.deepEqual(await namesIn(healthy), []);
  const offline = {
    ...healthy,
    online: false,
    environment: { ...healthy.environment, ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' },
  };
  assert.deepEqual(await namesIn(offline), []);
});

test('a server that takes a request and stays silent is told, and asked once', async (context) => {
  const { world } = makePlace(context);
  const waits: AbortController[] = [];
  context.mock.method(AbortSignal, 'timeout', () => {
    const wait = new AbortController();
    waits.push(wait);
    return wait.signal;
  });
  let asked = 0;
  // a wait ends as soon as the request is there
  const server = http.createServer(() => {
    asked++;
    for (const wait of waits) wait.abort(new DOMException('too late', 'TimeoutError'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo; // a server that listens at a port
  const environment = { ...world.environment, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` };
  assert.deepEqual(await namesIn({ ...world, online: true, environment }), ['unreachable']);
  assert.equal(asked, 1);
});

test('variables that are no settings are known, and a key file that is faulty is told once', async (context) => {
  const { folder, world } = makePlace(context);
  const names = ['PAWL_PLAIN', 'PAWL_SERVE_TOKEN', 'PAWL_NODE_TOKEN', 'PAWL_HOOK', 'PAWL_KEY_LAB'];
  const more = Object.fromEntries(names.map((name) => [name, '1']));
  const environment = { ...world.environment, ...more, ANTHROPIC_API_KEY: undefined };
  const text = '[providers.anthropic]\napi_key_file = "/nowhere/key"\n';
  write(path.join(folder, 'home/.config/pawl/config.toml'), text);
  assert.deepEqual(await namesIn({ ...world, environment }), ['noKey']);
});

test('a key command runs once', async (context) => {
  const { folder, bin, world } = makePlace(context);
  symlinkSync('/bin/sh', path.join(bin, 'sh'));
  const runs = path.join(folder, 'runs');
  write(
    path.join(folder, 'home/.config/pawl/config.toml'),
    `[providers.lab]\nbase_url = "http://127.0.0.1:9/v1"\nkey_command = "echo one >> ${runs}; echo key"\n`,
  );
  await diagnose({ ...world, online: true, model: 'lab/one' });
  assert.equal(readFileSync(runs, 'utf8'), 'one\n');
});

test('a lock of git is found from a worktree and from below the top', async (context) => {
  const place = makePlace(context);
  realGit(place);
  const { workspace } = place.world;
  const tree = path.join(place.folder, 'tree');
  rmSync(path.join(workspace, '.git'), { recursive: true });
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
  for (const words of [
    ['init', '-q', workspace],
    ['-C', workspace, ...identity, 'commit', '-q', '--allow-empty', '-m', 'one'],
    ['-C', workspace, 'worktree', 'add', '-q', tree],
  ])
    execFileSync('git', words, { env: { PATH: process.env.PATH } });
  mkdirSync(path.join(workspace, 'below'));
  const gitLocked = checks.find(({ name }) => name === 'gitLocked');
  for (const [from, lock] of [
    [tree, '.git/worktrees/tree/index.lock'],
    [path.join(workspace, 'below'), '.git/index.lock'],
  ] as const) {
    const world = { ...place.world, workspace: from };
    assert.equal(await gitLocked?.look(world), null);
    write(path.join(workspace, lock), '');
    utimesSync(path.join(workspace, lock), 1_000_000_000, 1_000_000_000);
    assert.match((await gitLocked?.look(world))?.repair ?? '', /rm \S+index\.lock$/);
  }
});

test('a git that does not answer says nothing about the name of its user', async (context) => {
  const place = makePlace(context);
  fakeProgram(place, 'git', '[ "$1" = config ] && kill -9 $$; echo git version 2.40.1');
  const found = checks.find(({ name }) => name === 'noGitIdentity');
  assert.equal(await found?.look(place.world), null);
});

test('a link in the workspace is not followed', async (context) => {
  const { world, folder } = makePlace(context);
  const target = write(path.join(folder, 'target'), 'text');
  symlinkSync(target, path.join(world.workspace, `.pawl-doctor-${process.pid}`));
  await diagnose(world);
  assert.equal(readFileSync(target, 'utf8'), 'text');
});

test('looking leaves nothing behind', async (context) => {
  const { world, folder } = makePlace(context);
  await diagnose(world);
  assert.equal(existsSync(path.join(folder, 'home', '.local')), false);
  assert.equal(existsSync(path.join(folder, 'home', '.config')), false);
});

test('a state folder behind a link that leads nowhere is unwritable and no crash', async (context) => {
  const { world, folder } = makePlace(context);
  symlinkSync('/proc/nowhere', path.join(folder, 'home', '.local'));
  assert.doesNotMatch(JSON.stringify(await diagnose(world)), /the check itself failed/);
});

/** What a container looks like from inside. */
const isolated: Readonly<Record<string, Harm>> = {
  'a file of Docker': inRoot('.dockerenv', ''),
  'a file of Podman': inRoot('run/.containerenv', 'engine="podman"'),
  'a control group': inRoot('proc/1/cgroup', '0::/kubepods/besteffort/pod1\n'),
};

function inRoot(file: string, text: string): Harm {
  return ({ folder, world }) => {
    const systemRoot = path.join(folder, 'root');
    write(path.join(systemRoot, file), text);
    return { ...world, systemRoot };
  };
}

const fullWithoutFence = checks.find(({ name }) => name === 'fullWithoutFence');

for (const [sign, make] of Object.entries(isolated)) {
  test(`the preset full is no note where ${sign} shows that it is fenced`, async (t) => {
    const place = makePlace(t);
    const world = await make(place, t);
    await configured('preset = "full"\n')({ ...place, world }, t);
    assert.equal(await fullWithoutFence?.look(world), null);
  });
}

test('the Linux of Windows is no fence for the preset full, and full needs no sandbox', async (t) => {
  const place = makePlace(t);
  const world = await inRoot('proc/sys/kernel/osrelease', '5.15-microsoft-standard-WSL2')(place, t);
  write(path.join(place.folder, 'root/.dockerenv'), '');
  without('bwrap')(place, t);
  await configured('preset = "full"\n')(place, t);
  const names = await namesIn(world);
  assert.ok(names.includes('fullWithoutFence'));
  assert.ok(!names.includes('sandboxMissing'));
});
