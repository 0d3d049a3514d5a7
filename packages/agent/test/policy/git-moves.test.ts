import assert from 'node:assert/strict';
import { test } from 'node:test';
import { historyPurpose, repositoryAccess, treeMoves } from '../../src/policy/repository-access.js';
import { commandOf, factsOf, gitWords, wordsOf, wrongIn } from './command-tables.js';

// What commands do to the working tree and to git folders. How tables read: command-tables.ts.

/** Revisions, and questions about each (`{}`): `=` is `git diff` for names of files. */
const MOVES = `
  x; =HEAD {} => switch: x | -q x
  @{-1}; =HEAD {} => switch -
  x; =HEAD {}; =HEAD => switch: -f x | --force x | --discard-changes x | -qf x
  y,x; =HEAD {} => switch -c y x
  ls-files -z => switch --orphan y
  x; =HEAD {}; =-- x => checkout: x | -q x
  @{-1}; =HEAD {}; =-- @{-1} => checkout -
  x; =HEAD {}; =HEAD; =-- x => checkout -f x
  ; =HEAD {}; =HEAD; =-- => checkout --force
  y,x; =HEAD {}; =-- y x => checkout: -b y x | -B y x | -qt y x | --orphan y x | --detach y x |
    -d y x | --track y x
  x; ={} -- a; =-- x a => checkout: x a | x -- a | -q x -- a
  x; ={} -- a b; =-- x a b => checkout x a b
  ; ={} -- a b; =-- a b => checkout: -- a b | -q -- a b
  ; ={} -- a; =-- a => checkout -- a
  ; = => checkout-index: -fa | -a
  x; =HEAD...{} => merge: x | --no-ff x
  x,y; =HEAD...{} => merge x y
  @{upstream}; =HEAD...{} => merge: | --ff-only
  ORIG_HEAD; =HEAD {}; =HEAD => merge --abort
  x; =HEAD {}; ={}...HEAD => rebase: x | -i x
  @{upstream}; =HEAD {}; ={}...HEAD => rebase
  ORIG_HEAD,REBASE_HEAD; =HEAD {}; ={}...HEAD; =HEAD => rebase: --continue | --skip | --abort
  x; log --no-walk {} => cherry-pick x ; revert: x | --no-edit x
  x..y; log --no-walk {}; log x..y => cherry-pick x..y | revert x..y
  CHERRY_PICK_HEAD,REVERT_HEAD,ORIG_HEAD; log --no-walk {}; =HEAD => cherry-pick --continue ;
    revert: --skip | --abort
  HEAD; ={} => reset: --hard | -q --hard
  x; ={} => reset: --hard x | --merge x | --keep x | --har x ; read-tree: -u x | -mu x |
    --reset -u x
  ; =HEAD => stash: | push | save x | -m x | -q -- a | push -m x
  ; =HEAD; ls-files --others -z => stash: -u | push -a | --all | -ku | push --include-untracked |
    save -u x
  stash@{0}; ={}^1 {}; ls-tree {}^3 => stash: pop | apply | pop --index
  stash@{12}; ={}^1 {}; ls-tree {}^3 => stash: pop 12 | apply -q stash@{12}
  1x; ={}^1 {}; ls-tree {}^3 => stash apply 1x
  x1; ={}^1 {}; ls-tree {}^3 => stash apply x1
  stash@{0}; ={}^1 {}; ls-tree {}^3; =HEAD {}^1 => stash branch y
  stash@{1}; ={}^1 {}; ls-tree {}^3; =HEAD {}^1 => stash branch y 1
  ; =-- a; ={} -- a => restore: a | -W a | -- a
  x; =-- a; ={} -- a => restore: --source=x a | -sx a | -SWsx a
  x; =-- x a; ={} -- x a => restore: -s x a | --source x a
  HEAD; =-- a; ={} -- a => restore: -SW a | --staged --worktree a
  nothing => rebase --quit | cherry-pick --quit | branch x | pull --help | fetch | x | commit -m x |
    $X | --version ; status: | $X ; merge: --continue | --quit ; reset: x | --soft x ; stash: list |
    drop | show | create ; read-tree: x | -m x ; restore: --staged a | -S a | -s x -S a
  unknown => am x | switch $X | reset --hard $X | checkout -- $X | restore $X ; pull: |
    --rebase o x`;
const SHORT: readonly (readonly [string, string])[] = [
  ['diff --name-only --no-renames --no-ext-diff --no-textconv -z', '='],
  ['log --name-only --no-renames --format= -m -z', 'log'],
  ['ls-tree -r --full-tree --name-only -z', 'ls-tree'],
];

test('git is asked which files it would write where it moves the working tree', () => {
  const movesOf = (...forms: readonly string[]): string => {
    const moves = treeMoves(factsOf(...forms.map(gitWords)));
    if (typeof moves === 'string') return moves;
    const texts = moves.map(({ revisions, questions }) =>
      [revisions.join(), ...questions.map((one) => one.join(' '))]
        .join('; ')
        .replace(/^; ls/, 'ls'),
    );
    const text = SHORT.reduce((all, [long, short]) => all.replaceAll(long, short), texts.join('|'));
    return text.replaceAll('= ', '=') || 'nothing';
  };
  assert.deepEqual(wrongIn(MOVES, movesOf), []);
  // a fetch brings commits that are not known
  assert.equal(movesOf('fetch', 'merge x'), 'unknown');
  assert.equal(movesOf('fetch', 'reset x', 'pull --help'), 'nothing');
  assert.equal(movesOf('switch x', 'fetch'), 'x; =HEAD {}');
  assert.equal(movesOf('switch x', 'reset x', 'merge y'), 'x; =HEAD {}|y; =HEAD...{}');
  const alias = { ...commandOf(['git', 'sw', 'x']), readAs: ['git', 'switch', 'x'] };
  const others = [commandOf(['hg', 'switch', 'x']), commandOf(['/bin/git', 'log'])];
  assert.equal(treeMoves({ commands: [...others, alias], unclear: null }).length, 1);
});

/** Options that change where the history of a shallow clone ends, and words that end a stash. */
const PURPOSES = `
  stash => stash: pop | branch x | pop -q ; -C d stash pop
  border => fetch: --unshallow | --depth=1 o | --deepen=1 | --shallow-since=x |
    -q --shallow-exclude=x | --depth $X ; pull: --depth 1 | --update-shallow | $X --unshallow
  neither => stash: | apply | push -m pop | -m pop | $X ; fetch: | -q o | --depthx | x--depth ;
    pull ; clone --depth=1 . | log --depth=1 | prefetch --unshallow | fetchx --unshallow | x pop |
    $X --depth`;

test('git ends a stash, or moves the border of a shallow clone, on purpose', () => {
  const purposeOf = (form: string): string => {
    const { takesStash, movesBorder } = historyPurpose(factsOf(gitWords(form), gitWords('log')));
    if (takesStash) return movesBorder ? 'both' : 'stash';
    return movesBorder ? 'border' : 'neither';
  };
  assert.deepEqual(wrongIn(PURPOSES, purposeOf), []);
  const neither = { takesStash: false, movesBorder: false };
  const others = factsOf(wordsOf('hg stash pop'), wordsOf('hg fetch --depth=1'));
  assert.deepEqual(historyPurpose(others), neither);
});

/** Tasks whose names say nothing of the repository, and names that do. */
const EVERYDAY = `
  a add all audit bench build cache check ci clean compile config coverage cover create dedupe dev
  dlx doc docs e2e exec fmt format get help i info init install link lint list ls outdated pack ping
  prefix preview remove rm root search serve set start t test tests tsc typecheck type-check types
  uninstall unit unlink up update upgrade view watch why x test:unit build-all lint.fix docs_api`;
const ON_REPOSITORY = `
  release publish deploy version bump changelog commit branch merge rebase backport cherry-pick
  stash worktree submodule tag mygit hooks re-Release`;
const TASKS = `
  read => npm: | run | run-script test release | --silent run test -- tag ; yarn --cwd=release |
    pnpm --filter=x test | cat ./release.sh | release | /usr/bin/xtag | /usr/lib/x/release |
    /bin/tag | /sbin/tag | /opt/x/tag | $X ; make: | -j4 CC=gcc test ; node: x.js y.js tag.js |
    release~notes | release/x.js | $X | $X $X
  write => npm: run zz | run $X | $X | testing ; make: test zz | $X test | 1test | xtest ;
    node: @me/release+1.js | ./a/b/release.js | x.js tag.js | $X tag.js ; sh x.sh release.sh |
    /x/tag | scripts/tag | ./usr/bin/tag | ../opt/tag | /usrx/tag | ./sbin/tag`;

test('a task or a script changes git folders by its name', () => {
  const accessOf = (text: string): string => repositoryAccess(factsOf(wordsOf(text)), undefined);
  assert.deepEqual(wrongIn(TASKS, accessOf), []);
  const starts = (names: string, ...before: readonly string[]): readonly string[] =>
    before.flatMap((start) =>
      names
        .trim()
        .split(/\s+/)
        .map((name) => `${start}${name}`),
    );
  const everyday = starts(EVERYDAY, 'npm run ', 'make ', 'yarn ');
  assert.deepEqual(
    everyday.filter((text) => accessOf(text) !== 'read'),
    [],
  );
  const others = starts(ON_REPOSITORY, 'npm run ', 'make ', './', 'node ');
  assert.deepEqual(
    others.filter((text) => accessOf(text) !== 'write'),
    [],
  );
  const all = ['git add a', 'git fetch', 'git log', 'make tag'].map(wordsOf);
  assert.equal(repositoryAccess(factsOf(...all), undefined), 'writePacks');
  assert.equal(repositoryAccess(factsOf(...all, gitWords('gc --prune')), undefined), 'approved');
});
