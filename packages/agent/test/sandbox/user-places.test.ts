import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { shareHostView } from '../../../../test/kit/sandbox/share-host-view.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { runCommand } from './commands-run.js';

// Commands in the sandbox never change the user's own configuration, state, compiled code and credentials in their
// workspace, nor make them where they are missing; what holds secrets they don't see either.

type Row = {
  readonly given: string;
  /** Files of the workspace `dotfiles` in the home, with their contents; a folder ends with `/`. */
  readonly files: readonly string[];
  /** Links, from the home on, and their targets from the home on. */
  readonly links?: Readonly<Record<string, string>>;
  /** Variables, with folders from the home on. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly command: string;
  /** Places from the home on that don't hold BAD afterwards. The files must hold OLD as before. */
  readonly missing?: readonly string[];
  /** Whether the command sees OLD. Default: no. */
  readonly isSeen?: true;
};

const FILE = 'dotfiles/pawl/config.toml';
const WHOLE = { '.config/pawl': 'dotfiles/pawl' };

const rows: readonly Row[] = [
  {
    given: 'a configuration folder that a link leads to',
    files: [FILE],
    links: WHOLE,
    command:
      'cat pawl/config.toml; echo BAD > pawl/config.toml; echo BAD > pawl/new; rm -rf pawl; ' +
      'mv pawl away; mkdir -p pawl; echo BAD > pawl/config.toml',
    missing: ['dotfiles/pawl/new'],
    isSeen: true,
  },
  {
    given: 'a configuration folder without a config.toml',
    files: ['dotfiles/pawl/'],
    links: WHOLE,
    command: 'echo BAD > pawl/config.toml; mkdir -p pawl/skills/a',
    missing: [FILE, 'dotfiles/pawl/skills'],
  },
  {
    given: 'a configuration folder that is not there yet',
    files: ['dotfiles/'],
    links: WHOLE,
    command: 'mkdir pawl; echo BAD > pawl/config.toml',
    missing: [FILE],
  },
  {
    given: 'a config.toml that a link leads to, deep in a folder that could be exchanged',
    files: ['dotfiles/a/b/pawl.toml'],
    links: { '.config/pawl/config.toml': 'dotfiles/a/b/pawl.toml' },
    command: 'mv a away; mv a/b a/c; mkdir -p a/b; rm -f a/b/*; echo BAD > a/b/pawl.toml',
    missing: ['dotfiles/a/c/pawl.toml'],
  },
  {
    given: 'a config.toml that is not there yet at the end of its link',
    files: ['dotfiles/'],
    links: { '.config/pawl/config.toml': 'dotfiles/node_modules/a/pawl.toml' },
    command: 'mkdir -p node_modules/a; echo BAD > node_modules/a/pawl.toml',
    missing: ['dotfiles/node_modules/a/pawl.toml'],
  },
  {
    given: 'a link of the workspace on the way',
    files: ['dotfiles/real/config.toml'],
    links: { 'dotfiles/current': 'dotfiles/real', '.config/pawl': 'dotfiles/current' },
    command:
      'mkdir evil; echo BAD > evil/config.toml; rm -f current; ln -s evil current; ' +
      'echo BAD > real/config.toml',
    missing: ['.config/pawl/config.toml'],
    // The link is there again.
  },
  {
    given: 'state, compiled code and credentials that links lead to',
    files: ['dotfiles/state/trust', 'dotfiles/cache/code', 'dotfiles/ssh/id', 'dotfiles/netrc'],
    links: {
      '.local/state/pawl': 'dotfiles/state',
      '.cache/pawl': 'dotfiles/cache',
      '.ssh': 'dotfiles/ssh',
      '.netrc': 'dotfiles/netrc',
      '.aws': 'dotfiles/aws',
    },
    command:
      'cat state/* cache/* ssh/* netrc; for f in state/trust cache/code ssh/id netrc; do ' +
      'echo BAD > $f; rm -rf $f; done; mv ssh away; mkdir -p ssh aws; echo BAD > ssh/id; ' +
      'echo BAD > aws/credentials',
    missing: ['dotfiles/aws/credentials'],
  },
  {
    given: 'XDG folders in the workspace',
    files: [
      'dotfiles/x/conf/pawl/config.toml',
      'dotfiles/x/state/pawl/trust',
      'dotfiles/x/c/pawl/code',
    ],
    variables: {
      XDG_CONFIG_HOME: 'dotfiles/x/conf',
      XDG_STATE_HOME: 'dotfiles/x/state',
      XDG_CACHE_HOME: 'dotfiles/x/c',
    },
    command:
      'cat x/*/pawl/*; mv x away; rm -rf x; mkdir -p x/conf/pawl x/conf/git; ' +
      'for f in x/conf/pawl/config.toml x/conf/git/config x/state/pawl/trust x/c/pawl/code; do ' +
      'echo BAD > $f; done',
    missing: ['dotfiles/x/conf/git/config'],
  },
  {
    given: 'XDG folders in the workspace that are not there yet',
    files: ['dotfiles/'],
    variables: { XDG_CONFIG_HOME: 'dotfiles/conf', XDG_CACHE_HOME: 'dotfiles/.cache' },
    command:
      'mkdir -p conf/pawl .cache/pawl; echo BAD > conf/pawl/config.toml; echo BAD > .cache/pawl/code',
    missing: ['dotfiles/conf/pawl/config.toml', 'dotfiles/.cache/pawl/code'],
  },
];

const contentAt = (place: string): string => (existsSync(place) ? readFileSync(place, 'utf8') : '');

const viewHost = shareHostView();

for (const { given, files, links = {}, variables = {}, command, missing = [], isSeen } of rows)
  test(`commands leave the user's places as they are: ${given}`, async (t) => {
    const home = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'pawl-own-')));
    t.after(() => removeFolderSync(home));
    const at = (place: string): string => path.join(home, place);
    for (const file of files) {
      mkdirSync(file.endsWith('/') ? at(file) : path.dirname(at(file)), { recursive: true });
      if (!file.endsWith('/')) writeFileSync(at(file), 'OLD');
    }
    for (const [link, target] of Object.entries(links)) {
      mkdirSync(path.dirname(at(link)), { recursive: true });
      symlinkSync(at(target), at(link));
    }
    const named = Object.entries(variables).map(([name, folder]) => [name, at(folder)]);
    const environment = {
      ...{ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, XDG_STATE_HOME: at('state') },
      ...(links['.local/state/pawl'] === undefined ? {} : { XDG_STATE_HOME: undefined }),
      ...Object.fromEntries(named),
    };
    const { text } = await runCommand({
      ...{ workspace: at('dotfiles'), level: 'workspace', environment, viewHost },
      command: `{ ${command}; } 2>&1; echo fine > ordinary; cat ordinary`,
    });
    assert.equal(contentAt(at('dotfiles/ordinary')), 'fine\n', `control: ${text}`);
    assert.match(text, /fine/, 'control: it ran');
    assert.equal(/OLD/.test(text), isSeen === true, text);
    for (const file of files.filter((one) => !one.endsWith('/')))
      assert.equal(contentAt(at(file)), 'OLD', `${file}\n${text}`);
    for (const place of missing) assert.doesNotMatch(contentAt(at(place)), /BAD/, place);
  });

test('a home as workspace has no sandbox, said in one line', async (t) => {
  const home = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'pawl-home-')));
  t.after(() => removeFolderSync(home));
  const { HOME: own } = process.env;
  t.after(() => Object.assign(process.env, { HOME: own }));
  process.env.HOME = home;
  // an empty HOME means that of the process
  for (const HOME of [home, '']) {
    const { text } = await runCommand({
      ...{ workspace: home, level: 'workspace', command: 'echo ran', viewHost },
      environment: { PATH: '/usr/bin:/bin', HOME },
    });
    const said = text.split('\n').filter((line) => line.includes('holds the whole home'));
    assert.equal(said.length, 1, text);
    assert.doesNotMatch(text, /^ran/m);
  }
});
