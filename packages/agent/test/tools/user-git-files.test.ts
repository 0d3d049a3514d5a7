import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { makePlace } from './context.js';

/** The user's own files of git inside the sandbox. */

type Files = Readonly<Record<string, string>>;

/** A repository, and the user's files in a home folder. */
const makeUser = async (t: TestContext, files: Files) => {
  const home = temporaryFolder(t, 'home');
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(home, name)), { recursive: true });
    writeFileSync(path.join(home, name), text);
  }
  const environment = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const place = await makePlace(t, environment, 'workspace');
  execFileSync('git', ['init', '-q', '-b', 'main', place.workspace], { env: environment });
  return { place, home };
};

const AUTHOR = '[user]\n\tname = Ada\n\temail = ada@example.org\n';

const IGNORED: readonly (readonly [title: string, files: Files])[] = [
  ['its usual place', { '.config/git/ignore': 'local.env\n.idea/\n' }],
  [
    'core.excludesFile',
    {
      '.gitconfig': '[core]\n\texcludesFile = ~/my ignores\n',
      'my ignores': 'local.env\n.idea/\n',
    },
  ],
];
for (const [title, files] of IGNORED)
  test(`what the user's git never adds is not added in the sandbox either: ${title}`, async (t) => {
    const { place } = await makeUser(t, { ...files, '.config/git/config': AUTHOR });
    mkdirSync(place.path('.idea'));
    for (const name of ['local.env', '.idea/a', 'b']) writeFileSync(place.path(name), '');
    const added = await place.run('bash', { command: 'git add -A && git ls-files' });
    assert.match(added.text, /^b\n\[exit code 0/);
  });

test('the attributes of the user count in the sandbox', async (t) => {
  const { place } = await makeUser(t, { '.config/git/attributes': '*.txt eol=crlf\n' });
  const asked = await place.run('bash', { command: 'git check-attr eol a.txt' });
  assert.match(asked.text, /^a\.txt: eol: crlf\n/);
});

test('an identity for some folders alone is that of the folder, from both files of the user', async (t) => {
  const { place, home } = await makeUser(t, { '.config/git/config': AUTHOR });
  const work = '[user]\n\temail = ada@work.example\n';
  writeFileSync(path.join(home, 'work'), work);
  const included = `[includeIf "gitdir:${place.workspace}/"]\n\tpath = ~/work\n`;
  writeFileSync(path.join(home, '.gitconfig'), included);
  const command = "git commit -q --allow-empty -m x && git log --format='%an <%ae>'";
  const outcome = await place.run('bash', { command });
  assert.match(outcome.text, /^Ada <ada@work\.example>\n/);
});

test('a broken configuration of the repository leaves the user its own', async (t) => {
  const { place } = await makeUser(t, { '.gitconfig': AUTHOR });
  writeFileSync(place.path('.git/config'), '[core\n');
  const outcome = await place.run('bash', { command: 'cd /tmp && git config user.name' });
  assert.match(outcome.text, /^Ada\n/);
});
