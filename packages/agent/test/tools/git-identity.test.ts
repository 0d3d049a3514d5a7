import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { makePlace } from './context.js';

type IdentityRow = {
  readonly title: string;
  readonly config?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly before?: string;
  readonly author: string;
};

const identityRows: readonly IdentityRow[] = [
  { title: 'without one the commit has ours', author: 'Pawl <pawl@localhost>' },
  {
    title: "one in the user's config is used",
    config: '[user]\n\tname = Ada\n\temail = ada@example.org\n',
    author: 'Ada <ada@example.org>',
  },
  {
    title: 'only what is missing is added',
    config: '[user]\n\tname = Ada\n',
    author: 'Ada <pawl@localhost>',
  },
  {
    title: 'one in the environment is used',
    environment: { GIT_AUTHOR_NAME: 'Eve', GIT_AUTHOR_EMAIL: 'eve@example.org' },
    author: 'Eve <eve@example.org>',
  },
  {
    title: 'an address in EMAIL is used',
    environment: { EMAIL: 'eve@example.org' },
    author: 'Pawl <eve@example.org>',
  },
  {
    title: 'an identity that the command itself configures is used',
    before: 'git config user.name Bob; git config user.email bob@example.org;',
    author: 'Bob <bob@example.org>',
  },
];

for (const row of identityRows) {
  test(`git identity: ${row.title}`, async (t) => {
    const place = await makePlace(t, {
      PATH: process.env.PATH,
      HOME: '/nowhere',
      ...row.environment,
      XDG_CONFIG_HOME: undefined,
    });
    await mkdir(place.path('home'));
    if (row.config !== undefined) await writeFile(place.path('home/.gitconfig'), row.config);
    const withHome = await makePlace(t, {
      PATH: process.env.PATH,
      HOME: place.path('home'),
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_SYSTEM: '/dev/null',
      ...row.environment,
    });
    const command = `git init -q && ${row.before ?? ''} git commit -q --allow-empty -m x && git log --format='%an <%ae>'`;
    const outcome = await withHome.run('bash', { command });
    assert.equal(outcome.status, 'ok', outcome.text);
    assert.equal(outcome.text.split('\n')[0], row.author);
  });
}

test('git identity: one that an earlier command put into the repository is used from then on', async (t) => {
  const place = await makePlace(t, {
    PATH: process.env.PATH,
    HOME: '/nowhere',
    GIT_CONFIG_SYSTEM: '/dev/null',
  });
  await place.run('bash', {
    command:
      'git init -q; mkdir deep; git config user.name Bob; git config user.email bob@example.org',
  });
  const outcome = await place.run('bash', {
    command: "git commit -q --allow-empty -m x; git log --format='%an <%ae>'",
  });
  assert.match(outcome.text, /^Bob <bob@example\.org>\n/);
});

test('git identity: a repository that cannot be looked at stops no command', async (t) => {
  const place = await makePlace(t, { PATH: process.env.PATH, HOME: '/nowhere' });
  await symlink('.git', place.path('.git'));
  const outcome = await place.run('bash', { command: 'echo "$GIT_AUTHOR_NAME, none of ours"' });
  assert.match(outcome.text, /^, none of ours\n/);
});
