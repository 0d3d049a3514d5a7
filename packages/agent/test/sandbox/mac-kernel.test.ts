import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { readable, writable } from '../../src/command/sandbox/host.js';
import { seatbeltWords } from '../../src/command/sandbox/seatbelt.js';

/** What the kernel of a Mac makes of the profile, in folders whose names look like rules. Elsewhere there is nothing to ask. */

const NAMES = [
  'plain',
  'a"b) (allow default)',
  'back\\slash',
  'new\nline',
  '(a|b)*[c]+?.^$',
  'café',
  '.vscode',
  '-DP0=/',
];

/** Text for sh, in the workspace, and whether it may succeed. */
const ACTS: readonly (readonly [text: string, isAllowed: boolean])[] = [
  [': > new', true],
  ['cat file', true],
  [': > "$TMPDIR/new"', true],
  ['mkdir lib && mv lib other', true],
  ['git init -q fresh', true],
  [
    'perl -e \'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); bind($s, sockaddr_un("$ENV{TMPDIR}/s")) or die\'',
    true,
  ],
  ['kill -0 $$', true],
  [': > ../beside/new', false],
  ['cat ../beside/file', false],
  ['cat link/file', false],
  [': > link/new', false],
  ['cat secret', false],
  ['ls "$OUTER_HOME"', false],
  [': > .git/hooks/post-commit', false],
  [': > .GIT/hooks/post-commit', false],
  ['mv .git moved', false],
  [': > .envrc', false],
  [': > .EnvRC', false],
  ['mkdir .vscode', false],
  ['mkdir .VSCode', false],
  ['mkdir -p d && mkdir d/.hu\u017fky', false],
  ['mv src moved && : > src', false],
  ['kill -0 "$OUTSIDE"', false],
  ['ps -o pid= -p "$OUTSIDE" -E', false],
  [': > /usr/local/new || : > /Library/new || : > /private/etc/new', false],
  ['security list-keychains | grep -q login', false],
  ['nc -z -w 1 1.1.1.1 53', false],
  ['osascript -e \'tell application "Finder" to get name\'', false],
  ['launchctl submit -l pawl.test -- /usr/bin/true', false],
];

test('the acts are text for a shell, and some are allowed', () => {
  for (const [text] of ACTS) assert.equal(spawnSync('sh', ['-n', '-c', text]).status, 0, text);
  assert.deepEqual(new Set(ACTS.map(([, isAllowed]) => isAllowed)), new Set([true, false]));
});

for (const name of process.platform === 'darwin' ? NAMES : [])
  test(`the kernel decides as the profile says, in a folder called ${JSON.stringify(name)}`, (context) => {
    const top = realpathSync.native(temporaryFolder(context, 'mac-kernel'));
    const at = (...names: readonly string[]): string => path.join(top, ...names);
    for (const folder of ['beside', 'home', 'tmp', `${name}/.git/hooks`, `${name}/src`])
      mkdirSync(at(folder), { recursive: true });
    for (const file of ['beside/file', `${name}/file`, `${name}/secret`, `${name}/src/.netrc`])
      writeFileSync(at(file), 'a line\n');
    symlinkSync(at('beside'), at(name, 'link'));
    const words = seatbeltWords(
      {
        host: { mounts: [], masked: [] },
        folders: {
          ...{ home: at('home'), temporary: at('tmp'), setAside: '', users: '' },
          ...{ closedFolder: '', closedFile: '' },
        },
        mounts: [writable(at(name)), readable(at(name, '.git')), readable(at(name, 'src/.netrc'))],
        masked: [at(name, 'secret')],
        ...{ allowed: [], network: false, isHomeWritable: true, workspace: at(name) },
      },
      [process.env.HOME ?? '/nowhere'],
    );
    const env = {
      ...{ PATH: '/usr/bin:/bin', HOME: at('home'), TMPDIR: at('tmp') },
      ...{ OUTER_HOME: process.env.HOME, OUTSIDE: String(process.pid) },
    };
    const wrong = ACTS.filter(([text, isAllowed]) => {
      const command = [...words, '/bin/sh', '-c', text];
      const { status } = spawnSync('/usr/bin/sandbox-exec', command, { cwd: at(name), env });
      return (status === 0) !== isAllowed;
    });
    assert.deepEqual(wrong, []);
  });
