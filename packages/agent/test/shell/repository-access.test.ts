import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  historyPurpose,
  type RepositoryAccess,
  repositoryAccess,
} from '../../src/policy/repository-access.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';

/** How far the words of commands let them change git folders. */

const rows: Readonly<Record<RepositoryAccess, readonly string[]>> = {
  read: [
    'echo x > file',
    'rm -rf .git',
    'git status --short && git log --oneline | head',
    'git -C sub -c color.ui=never diff HEAD~1',
    'git branch -a; git branch --list "x*"; git branch --show-current; git tag -l; git tag -n',
    'git stash list; git stash show -p; git worktree list; git remote -v; git reflog; git submodule status',
    'git apply changes.patch; git clone . copy; git init sub; git config user.name',
    'npm test; npm run build:prod; npm install left-pad; yarn; pnpm add x; make; make -j4 test; just lint',
    'node server.js; python3 -m pytest; python3 -c "print(\'git\')"; ./run.sh; cargo build',
    'npx tsc; /usr/bin/gitk --version; cat release.sh',
  ],
  write: [
    'git add . && git commit -m "x"',
    'npm test && git commit -qm x',
    '(git tag v1)',
    "bash -c 'git stash'",
    'echo v1 | xargs git tag',
    'find . -name x -exec git rm --cached {} +',
    'env A=b timeout 5 git rebase main',
    'for b in a b; do git branch $b; done',
    'git branch -d merged; git branch -m a b; git tag -d v1',
    'git branch --format=x new; git branch --no-color new; git tag --format=x new',
    'git reset --hard; git clean -fd; git checkout -- x; git restore x; git worktree remove --force x',
    'git reset HEAD~1; git merge x; git cherry-pick x; git revert x; git am < x; git apply --index x',
    'make release; just publish; npm run release; npm version patch; yarn deploy; pnpm changeset',
    './scripts/release.sh; sh bump-version.sh',
    'python3 tools/release.py',
  ],
  writePacks: [
    'git fetch; git pull; git gc; git repack -ad; git submodule update; git some-alias',
    'git-lfs pull; gh pr checkout 1; npx standard-version',
  ],
  approved: [
    'git stash drop',
    'git branch -D x',
    'git reflog expire --expire=now --all',
    'eval "$x"',
    'git $SUBCOMMAND',
    'cat x | sh',
  ],
};

for (const [access, texts] of Object.entries(rows)) {
  test(`words that let a command have git folders: ${access}`, async () => {
    for (const text of texts) {
      for (const part of text.includes('|') || text.includes('for ') ? [text] : text.split('; ')) {
        const facts = await shellFacts(part, () => null);
        assert.equal(repositoryAccess(facts, undefined), access, `${part} ${facts.unclear}`);
      }
    }
  });
}

test('a call that asks for the repository may change git folders; for the network it needs its words', async () => {
  const facts = await shellFacts('python3 x.py', () => null);
  assert.equal(repositoryAccess(facts, 'repository'), 'writePacks');
  assert.equal(repositoryAccess(facts, 'network'), 'read');
});

test('words that end a stash or move the border of a shallow clone on purpose', async () => {
  const purposeOf = async (text: string) => historyPurpose(await shellFacts(text, () => null));
  assert.deepEqual(await purposeOf('git stash pop'), { takesStash: true, movesBorder: false });
  assert.deepEqual(await purposeOf('git stash && git fetch'), {
    takesStash: false,
    movesBorder: false,
  });
  assert.deepEqual(await purposeOf('git fetch --unshallow'), {
    takesStash: false,
    movesBorder: true,
  });
});
