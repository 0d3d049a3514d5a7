import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { writable } from '../../src/command/sandbox/host.js';
import {
  type SeatbeltPlaces,
  seatbeltProfile,
  seatbeltWords,
} from '../../src/command/sandbox/seatbelt.js';
import { PROTECTED_PATHS } from '../../src/policy/paths.js';
import { type Act, decide, readRules } from './seatbelt/rules.js';

/**
 * The profile of macOS, its text and what it decides. Every rule decides an act of these tables, and no rule could be
 * taken away. It runs on no Mac here: what the kernel makes of the rules, the probe shows on each machine.
 */

const HOME = '/Users/j.doe';
const STATE = `${HOME}/.local/state/pawl/sandbox/1-a`;
const WORK = `${HOME}/work/proj`;

const base: SeatbeltPlaces = {
  places: [
    { path: `${HOME}/.cargo/bin`, right: 'read' },
    { path: WORK, right: 'write' },
    { path: `${WORK}/.git`, right: 'read' },
    { path: `${STATE}/home`, right: 'write' },
    { path: `${STATE}/tmp`, right: 'write' },
  ],
  hidden: ['/opt/homes/me'],
  masked: ['/private/etc/sudoers', `${WORK}/lib/.netrc`],
  writableWorkspace: WORK,
  allowed: [`${WORK}/.vscode/settings.json`],
  temporary: `${STATE}/tmp`,
  network: false,
};

const LEVELS: Readonly<Record<string, SeatbeltPlaces>> = {
  workspace: base,
  'workspace-net': { ...base, network: true },
  // a git command that commits: packs stay as they are
  commit: {
    ...base,
    allowed: [],
    places: [
      ...base.places.filter(({ path }) => path !== `${WORK}/.git`),
      { path: `${WORK}/.git`, right: 'write' },
      { path: `${WORK}/.git/hooks`, right: 'read' },
      { path: `${WORK}/.git/objects`, right: 'write' },
      { path: `${WORK}/.git/objects/pack`, right: 'read' },
    ],
  },
  reads: {
    ...base,
    writableWorkspace: null,
    allowed: [],
    places: base.places.map((one) =>
      one.path === `${STATE}/tmp` ? one : { ...one, right: 'read' as const },
    ),
  },
};

type Row = readonly [verdict: 'allow' | 'deny', act: Act];
const on = (
  verdict: 'allow' | 'deny',
  operation: string,
  ...paths: readonly string[]
): readonly Row[] => paths.map((path) => [verdict, { operation, path }]);
const of = (
  verdict: 'allow' | 'deny',
  operation: string,
  ...names: readonly string[]
): readonly Row[] => names.map((name) => [verdict, { operation, name }]);

const lines = (text: string): readonly string[] => text.trim().split(/\s+/);
/** With a file in it. */
const HIDDEN = lines(`
  /Users/an.other /Users/j.doe/Documents /Volumes/disk /Network/Servers /cores /Library/Keychains /Library/Logs
  /System/Volumes/Data/Users/j.doe /private/tmp /private/var/tmp /private/var/folders/ab/T /private/var/log
  /private/var/mail /private/var/root /private/var/spool /private/var/db/sudo /dev/disk0 /opt/homes/me
  ${STATE} ${STATE}/home2 ${WORK}2 /Users/j.doe/work`).map((folder) => `${folder}/file`);
const DEVICES = lines(
  '/dev/null /dev/zero /dev/random /dev/urandom /dev/ptmx /dev/fd/3 /dev/stdin /dev/stdout /dev/stderr /dev',
);
const SERVICES = lines(`
  com.apple.system.opendirectoryd.libinfo com.apple.system.opendirectoryd.membership
  com.apple.system.notification_center com.apple.system.logger com.apple.logd com.apple.bsd.dirhelper`);
const NETWORK_SERVICES = lines(`
  com.apple.SystemConfiguration.configd com.apple.SystemConfiguration.DNSConfiguration com.apple.networkd
  com.apple.dnssd.service com.apple.trustd.agent`);

/** At every level. */
const ALWAYS: readonly Row[] = [
  ...on('allow', 'process-exec', '/usr/bin/git', `${WORK}/run`),
  ['allow', { operation: 'process-fork' }],
  ['allow', { operation: 'pseudo-tty' }],
  ...of('allow', 'process-info-pidinfo', 'same-sandbox'),
  ...of('deny', 'process-info-pidinfo', 'others'),
  ...of('allow', 'signal', 'same-sandbox'),
  ...of('deny', 'signal', 'others'),
  ...of('allow', 'ipc-posix-sem', 'any'),
  ...of('allow', 'ipc-posix-shm', 'any'),
  ...of('allow', 'sysctl-read', 'hw.ncpu'),
  ...of('deny', 'sysctl-read', 'kern.procargs2'),
  ...of('allow', 'mach-lookup', ...SERVICES),
  ...of(
    'deny',
    'mach-lookup',
    'com.apple.SecurityServer',
    'com.apple.pasteboard.1',
    'com.apple.coreservices.launchservicesd',
  ),
  ...['appleevent-send', 'job-creation', 'nvram-set', 'system-privilege', 'file-mount'].map(
    (operation): Row => ['deny', { operation }],
  ),
  ...on(
    'allow',
    'file-read-data',
    '/usr/lib/dyld',
    '/opt/homebrew/bin/node',
    '/Library/Frameworks/x',
    '/',
    '/private/etc/hosts',
  ),
  ...on('allow', 'file-map-executable', '/usr/lib/libSystem.dylib'),
  ...on('deny', 'file-read-data', ...HIDDEN),
  ...on(
    'deny',
    'file-write-data',
    ...HIDDEN,
    '/usr/bin/git',
    '/private/etc/hosts',
    '/Library/LaunchAgents/x',
  ),
  ...on('allow', 'file-read-data', ...DEVICES),
  ...on(
    'allow',
    'file-write-data',
    ...lines('/dev/null /dev/zero /dev/ptmx /dev/fd/3 /dev/stdout /dev/stderr'),
  ),
  ...on('deny', 'file-write-data', '/dev/random', '/dev/tty', '/dev/disk0'),
  ...on('allow', 'file-ioctl', '/dev/null', '/dev/ptmx'),
  ...on('deny', 'file-ioctl', '/dev/ttys003', '/dev/disk0'),
  ...(['file-read-data', 'file-write-data', 'file-ioctl'] as const).flatMap(
    (operation): readonly Row[] => [
      ['allow', { operation, path: '/dev/ttys003', extension: 'com.apple.sandbox.pty' }],
      ['deny', { operation, path: '/dev/disk0', extension: 'com.apple.sandbox.pty' }],
      ['deny', { operation, path: '/dev/ttys003' }],
    ],
  ),
  // what is seen of people's folders, and of the folders above it the name alone
  ...on(
    'allow',
    'file-read-data',
    `${HOME}/.cargo/bin/cargo`,
    `${WORK}/src/a.ts`,
    `${WORK}/.git/HEAD`,
    `${STATE}/home/x`,
    `${STATE}/tmp/x`,
  ),
  ...on(
    'allow',
    'file-read-metadata',
    '/Users',
    HOME,
    `${HOME}/.cargo`,
    `${HOME}/work`,
    `${HOME}/.local`,
    `${HOME}/.local/state`,
    STATE,
    `${HOME}/.local/state/pawl`,
    `${HOME}/.local/state/pawl/sandbox`,
  ),
  ...on('deny', 'file-read-data', HOME, `${HOME}/work`, STATE),
  ...on('deny', 'file-write-data', `${HOME}/.cargo/bin/cargo`, `${HOME}/.zshrc`),
  ...on('deny', 'file-read-data', '/private/etc/sudoers', `${WORK}/lib/.netrc`),
  ...on('deny', 'file-read-metadata', '/private/etc/sudoers'),
  ...on('allow', 'file-write-create', `${STATE}/tmp/x`),
  ...on('allow', 'network-bind', `${STATE}/tmp/socket`),
  ...on(
    'deny',
    'network-outbound',
    '/private/var/run/docker.sock',
    '/private/tmp/com.apple.launchd.a/Listeners',
    `${WORK}/socket`,
  ),
];

/** Names that are closed wherever they lie in the workspace. */
const CLOSED = PROTECTED_PATHS.map(({ path }) => path.replace('*', 'some')).filter(
  (name) => name !== '.git',
);

/** Where the workspace can be written. */
const WRITABLE: readonly Row[] = [
  ...on(
    'allow',
    'file-write-create',
    `${WORK}/src/new`,
    `${WORK}/new/.git/config`,
    `${STATE}/home/x`,
  ),
  ...on(
    'deny',
    'file-write-create',
    ...CLOSED.flatMap((name) => [
      `${WORK}/${name}`,
      `${WORK}/a/b/${name.toUpperCase()}`,
      `${WORK}/${name}/inside`,
    ]),
  ),
  // Kelvin's sign and the long s, which a file system without case folds
  ...on('deny', 'file-write-create', `${WORK}/.vſcode`, `${WORK}/.hus\u212ay/pre-commit`),
  ...on(
    'allow',
    'file-write-create',
    ...lines('vscode/x my.npmrc xAGENTS.md AGENTS.md.txt .vscodes .gitignore git/x').map(
      (name) => `${WORK}/${name}`,
    ),
  ),
  ...on('deny', 'file-write-data', `${WORK}/lib/.netrc`),
  // a folder above what is closed can't be moved away, nor what is writable itself
  ...on('deny', 'file-write-unlink', `${WORK}/lib`, WORK, `${STATE}/home`, `${STATE}/tmp`),
  ...on('allow', 'file-write-unlink', `${WORK}/src`, `${WORK}/lib/other`),
];

/** Of the two levels whose user has allowed a command to write settings of the editor. */
const ALLOWED: readonly Row[] = [
  ...WRITABLE.filter(([, { path = '' }]) => !path.startsWith(`${WORK}/.vscode`)),
  ...on('deny', 'file-write-data', `${WORK}/.git/config`, `${WORK}/.git/hooks/pre-commit`),
  ...on('deny', 'file-write-unlink', `${WORK}/.git`),
  ...on('allow', 'file-write-create', `${WORK}/.vscode`, `${WORK}/.vscode/settings.json`),
  ...on('deny', 'file-write-create', `${WORK}/.vscode/tasks.json`, `${WORK}/a/.vscode`),
];

const ROWS: Readonly<Record<string, readonly Row[]>> = {
  workspace: [
    ...ALLOWED,
    ['deny', { operation: 'network-outbound' }],
    ...of('deny', 'mach-lookup', ...NETWORK_SERVICES),
    ...on('deny', 'network-outbound', '/private/var/run/mDNSResponder'),
  ],
  'workspace-net': [
    ['allow', { operation: 'network-outbound' }],
    ['allow', { operation: 'network-bind' }],
    ...of('allow', 'mach-lookup', ...NETWORK_SERVICES),
    ...on('allow', 'network-outbound', '/private/var/run/mDNSResponder'),
    ...on('deny', 'network-bind', '/private/var/run/mDNSResponder'),
    ...ALLOWED,
  ],
  commit: [
    ...WRITABLE,
    ...on('allow', 'file-write-create', `${WORK}/.git/index.lock`, `${WORK}/.git/objects/ab/cd`),
    ...on(
      'deny',
      'file-write-create',
      `${WORK}/.git/hooks/pre-commit`,
      `${WORK}/.git/objects/pack/pack-1.idx`,
    ),
    ...on(
      'deny',
      'file-write-unlink',
      `${WORK}/.git`,
      `${WORK}/.git/objects`,
      `${WORK}/.git/hooks`,
    ),
  ],
  reads: [
    ...on('deny', 'file-write-create', `${WORK}/new`, `${WORK}/.git/index.lock`, `${STATE}/home/x`),
    ...on('deny', 'file-write-unlink', `${STATE}/tmp`),
  ],
};

const GOLDEN = new URL('./seatbelt/', import.meta.url);

for (const [level, contents] of Object.entries(LEVELS)) {
  const { text, parameters } = seatbeltProfile(contents);
  const rules = readRules(text, parameters);
  const rows = [...ALWAYS, ...(ROWS[level] ?? [])];

  test(`the profile of the level ${level} is the one that was reviewed`, () => {
    const file = new URL(`${level}.sb`, GOLDEN);
    const whole = `${text}${parameters.map((value, at) => `; P${at} ${value}\n`).join('')}`;
    if ((process.env.UPDATE ?? '') !== '') writeFileSync(file, whole);
    assert.equal(whole, readFileSync(file, 'utf8'), 'if you meant it: UPDATE=1, and read the diff');
  });

  test(`the profile of the level ${level} decides ${rows.length} acts`, () => {
    for (const [verdict, act] of rows)
      assert.equal(decide(rules, act).rule.verdict, verdict, JSON.stringify(act));
  });

  test(`each rule and each path of the profile of the level ${level} decides an act`, () => {
    const deciding = rows.map(([, act]) => decide(rules, act));
    for (const rule of rules.slice(1)) {
      assert.ok(
        deciding.some((one) => one.rule === rule),
        `${rule.verdict} ${rule.operations}`,
      );
      for (const filter of rule.filters)
        assert.ok(
          deciding.some((one) => one.rule === rule && one.filter === filter),
          `${rule.verdict} ${rule.operations.join(' ')}: ${filter.source}`,
        );
    }
  });

  test(`no rule of the profile of the level ${level} can be taken away`, () => {
    for (const rule of rules) {
      const others = rules.filter((one) => one !== rule);
      if (rule === rules[0]) continue;
      const changed = rows.some(([verdict, act]) => decide(others, act).rule.verdict !== verdict);
      assert.ok(changed, `${rule.verdict} ${rule.operations.join(' ')} ${rule.filters[0]?.source}`);
    }
  });
}

/** Names that a cloned repository may bring, and folders that only seem to be others. */
const HOSTILE: readonly string[] = [
  '/w/a"b',
  '/w/a")) (allow default) (allow file-write* (subpath "/',
  '/w/back\\slash\\',
  '/w/new\nline\n(allow default)',
  '/w/; comment',
  '/w/\'quoted\' #"raw"',
  '/w/(a|b)*[c-]+?.^$',
  '/w/(param "P0")',
  '/w/-DP0=/',
  '/w/=',
  '/w/ leading and trailing ',
  '/w/tab\tand\u0001control\u007f',
  '/w/caf\u00e9',
  '/w/cafe\u0301',
  '/w/\u{1f4a9}\u202e',
  '/w/.vscode/.git/hooks',
  '/Users/j.doe/.claude/worktrees/one',
  '/private/tmp/w',
];

for (const workspace of HOSTILE)
  test(`no name of a folder is taken for a rule: ${JSON.stringify(workspace)}`, () => {
    const profile = (folder: string) =>
      seatbeltProfile({
        ...base,
        places: [{ path: folder, right: 'write' }],
        masked: [`${folder}/secret`],
        writableWorkspace: folder,
        allowed: [`${folder}/.zed/settings.json`],
      });
    const { text, parameters } = profile(workspace);
    const rules = readRules(text, parameters);
    const withoutPatterns = (one: string): string => one.replace(/\(regex "[^"]*"\)/g, '');
    const ofSameDepth = workspace.replace(/[^/]+/g, 'n');
    assert.equal(withoutPatterns(text), withoutPatterns(profile(ofSameDepth).text));
    assert.match(text, /^[\n !-~\u017f\u212a]*$/, 'letters and signs alone');
    const decided = (operation: string, path: string): string =>
      decide(rules, { operation, path }).rule.verdict;
    for (const name of ['file', 'a/b', 'vscode', '.git/config'])
      assert.equal(decided('file-write-create', `${workspace}/${name}`), 'allow', name);
    for (const name of ['.vscode', '.VSCode/tasks.json', 'a/.envrc', 'secret', '.zed/tasks.json'])
      assert.equal(decided('file-write-create', `${workspace}/${name}`), 'deny', name);
    assert.equal(decided('file-write-create', `${workspace}/.zed/settings.json`), 'allow');
    assert.equal(decided('file-read-data', `${workspace}/secret`), 'deny');
    assert.equal(decided('file-write-data', '/usr/bin/git'), 'deny');
    assert.equal(decided('file-write-data', `${workspace}2/file`), 'deny');
  });

test('places are named as they lie on the disk, whatever links lead to them', (context) => {
  const top = temporaryFolder(context, 'seatbelt');
  for (const name of ['real/work', 'real/state', 'real/secret'])
    mkdirSync(path.join(top, name), { recursive: true });
  symlinkSync(path.join(top, 'real'), path.join(top, 'link'));
  const at = (name: string): string => path.join(top, 'link', name);
  const words = seatbeltWords(
    {
      host: { mounts: [], masked: [] },
      folders: {
        ...{ home: at('state'), temporary: at('state'), setAside: '', users: '' },
        ...{ closedFolder: '', closedFile: '' },
      },
      mounts: [writable(at('work'))],
      masked: [at('secret')],
      ...{ allowed: [], network: false, isHomeWritable: true, workspace: at('work') },
    },
    [at('.')],
  );
  assert.deepEqual(words[0], '-p');
  assert.equal(words.at(-1), '--');
  const values = words
    .slice(2, -1)
    .map((word) => /^-DP\d+=(.*)$/s.exec(word)?.[1] ?? assert.fail());
  assert.ok(
    values.every((value) => !value.includes('/link')),
    values.join('\n'),
  );
  assert.match(words[1] ?? '', /\[vV\]/, 'the workspace is known as the writable place');
});
