import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onlyReads, uncoveredWord } from '../../src/policy/command-options.js';
import { findGitLoss } from '../../src/policy/losses.js';
import { isGitCommand, listRemoteCommands } from '../../src/policy/programs/git.js';
import { findRow } from '../../src/policy/programs/program-table.js';
import { repositoryAccess } from '../../src/policy/repository-access.js';
import { commandOf, factsOf, gitWords, wrongIn } from './command-tables.js';

// What the rows of git promise, as its manual says it. How tables read: command-tables.ts.

const ACCESS = `
  read => annotate | archive | check-attr x | check-mailmap | check-ref-format x | cherry | column |
    diff-files | diff-index | get-tar-commit-id | help | mailinfo | mailsplit | patch-id |
    range-diff | request-pull | show-branch | show-index | stripspace | var | verify-commit |
    verify-pack | verify-tag | version | whatchanged | status | log ; hash-object: a | -t blob a ;
    worktree list | config a b | init | clone . x | ls-remote | difftool | format-patch x |
    --version | -C x -c a=b --git-dir y status ; branch: | -avr -l | --list x | --contains x |
    --no-merged=x | --sort=x --format=y --column --abbrev | --show-current | -vv | --verbose |
    --no-contains x | --points-at x | --no-column | --color | --no-color | --no-abbrev ; tag: |
    -l x | -n3 x | --points-at x | --sort=x --no-column | --no-contains x | --column | --color ;
    apply: a | -R a ; bisect: log | view | visualize ; notes: | list | show ; reflog: | show |
    HEAD ; stash: list | show -p ; remote: | -v | show x | get-url x ; submodule: | --quiet status |
    summary ; fsck: | --full
  write => add a | am a | reflog write x | checkout x | checkout-index -a | cherry-pick x |
    clean -f | commit | merge x | push | read-tree x | rebase x | reset x | restore x | revert x |
    rm x | switch x | mv a b | citool | commit-tree x | gui | merge-file a b c | merge-tree a b |
    mktag | mktree | pack-refs | replace a b | rerere | sparse-checkout set x | stage a |
    symbolic-ref a b | write-tree | update-index a | update-ref a b | fsck --lost-found ;
    branch: x | -v x | -vr x | -rd x | --contains=ab=d --listx | -r --sort=x y |
    --set-upstream-to x | --abbrev=3 x | $X ; tag: x | -a x | --column x | --sort=y x | $X ;
    branch: --no-column x | --color x | --no-abbrev x ; apply: --index a | --cached a | -3 a |
    --3way a | $X | -N a | --intent-to-add a | --ind a ; bisect: start | run x ; hash-object: -w a |
    -wt blob a | $X ; notes: add | remove list ; stash: | push | -m list | -p list | pop ;
    worktree: add x | remove --force x
  writePacks => fetch | pull | gc | x | mergetool | repack -a | for-each-repo x | prune -n ;
    submodule: add x | update --force ; remote: add x y | update
  approved => push -f | branch -rD x | gc --prune=now | filter-branch x | filter-repo x | prune |
    $X ; branch: -D x | -df x ; reflog: expire | delete x | drop x | $X ; stash: drop | clear | $X ;
    update-ref: -d x | --stdin`;

test('a command of git gets as much of the git folders as it changes', () => {
  const accessOf = (form: string): string => repositoryAccess(factsOf(gitWords(form)), undefined);
  assert.deepEqual(wrongIn(ACCESS, accessOf), []);
  assert.deepEqual(wrongIn('\n  read => push', accessOf), ['push: write, not read'], 'control');
});

/** Commands of git that no other table has. */
const OWN = `
  bundle credential daemon fast-export fast-import index-pack maintenance multi-pack-index
  pack-objects quiltimport receive-pack repack send-email send-pack svn unpack-objects upload-pack`;

test('no alias stands for a command of git itself', () => {
  const names = OWN.trim().split(/\s+/);
  assert.deepEqual(
    names.filter((name) => !isGitCommand(name)),
    [],
  );
  assert.deepEqual(['x', 'filter-repo'].filter(isGitCommand), []);
});

const LOSING = `
  not committed => --config-env a=B reset --hard ; apply: -R a | --rev a ; checkout: -f | -qf x |
    --force x | -p | --patch | --pathspec-from-file=x | -- a | . | .. | ./a | ../a | /a | a/ |
    *.ts | a? | [ab] | a\\ | :/ | :(top) | :!a | x a | -q x -- a | $X a | x $X | -m x | --merge x |
    . -- x ; switch: -m x | --merge x | -f x | --force x | --discard-changes x ;
    checkout-index: -fa | --force a ; read-tree: -u x | --reset x ; reset: --hard | --merge |
    --keep x | --har ; restore: a | -SW a | --staged --worktree a | -sx a | -sSTABLE a | -s x a |
    -S -W a | -S --w a | -sxS a | -qp . ; rm: -f a | -rf a | --force a ; worktree: remove -f x |
    remove --force x | $X -f x ; submodule: update -f | deinit -f x | foreach -f x | $X --force |
    --quiet update --force
  on no other branch => branch: -D x | -qD x | -df x | --delete --force x | -d x -f
  of others => push: -f | -uf o x | -d o x | --force | --force-with-lease=x o y |
    --force-if-includes | --mirror | --prune o | --delete o x | --mir | o +x | o :x | o x +y:z
  git does not know => clean: | -f | -fd | -xfe n | -fen | -fexn | --force -x | -i
  nothing names => gc: --prune | --prune=now | --pru=now | --aggressive --prune=all ; prune: | -v ;
    update-ref: -d x | --stdin
  the way back => reflog: expire --all | delete x | drop x | $X
  was stashed => stash: drop | drop 1 | clear | $X
  the history => filter-branch x | filter-repo --path x
  which command => $X | -C d $X
  none => status | checkout-index a | update-ref x y | merge x | rebase x | diff --force | x |
    --version | --git-dir reset status | --attr-source reset status | -c reset log ; apply: a |
    -R --check a | -R --stat a | -v a | -R --numstat a | -R --summary a | -R --cached a ;
    checkout: x | - | -q x | -b x y | -B x y | -t o/x | --track o/x | --orphan x y | --detach x |
    -d x y | x.y | .x | ...x | x:y | x/y | x^{/y} | x -- | $X | -bxf | -Bfix y | x-f | x./y | x:/y ;
    read-tree: x | -m x ; reset: | --soft x | --mixed x | -p ; restore: -S a | --staged a |
    -s x -S a | -Ss x a | -SsxW a ; rm: a | -r a | --cached a ; switch: x | -c x y ;
    worktree: remove x | add -f x ; submodule: update | add -f x | deinit x ; branch: x | -d x |
    -m x y | -f x y ; push: | -u o x | -ofor=x | --tags | o : | o x:y | -- o | $X | o x+y ;
    clean: -n | -nd | --dry-run | -e x -n | --dr ; gc: | --auto | --prune=never ; prune: -n |
    --dry-run ; reflog: | show | exists x | show expire ; stash: | pop | list | -m drop |
    push -m clear ; commit: -m x | -F f ; tag: -d x | -f x`;

test('a command of git asks for the work that it would destroy', () => {
  const reasonOf = (form: string, answer: string): string => {
    const why = findGitLoss(commandOf(gitWords(form))) ?? 'none';
    return why.includes(answer) ? answer : why;
  };
  assert.deepEqual(wrongIn(LOSING, reasonOf), []);
  assert.deepEqual(wrongIn('\n  none => clean', reasonOf), [
    'clean: files that git does not know could be lost, not none',
  ]);
});

/** Options of git that show differences, and those that choose commits. */
const DIFF = `
  -p -u -s -w -b -a -z -M -W -U3 -S -G --patch --no-patch --unified=3 --stat --numstat --shortstat
  --dirstat --summary --compact-summary --name-only --name-status --raw --minimal --patience
  --histogram --diff-algorithm=myers --word-diff --word-diff-regex=x --color-words --color
  --no-color --no-ext-diff --no-textconv --no-renames --find-renames --find-copies
  --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --check
  --full-index --abbrev --text --function-context --inter-hunk-context=1 --diff-filter=A
  --pickaxe-regex --relative --submodule --ignore-submodules --no-prefix -wb`;
const LOG = `
  -n -n5 -12 -i -E -F -g --oneline --graph --all --decorate --no-decorate --max-count=1 --skip=1
  --since=1 --until=1 --after=1 --before=1 --author=x --committer=x --grep=x --all-match
  --invert-grep --format=%h --pretty=raw --reverse --no-merges --merges --first-parent
  --abbrev-commit --follow --date=iso --branches --tags --remotes --topo-order --date-order
  --left-right --cherry-pick --boundary --full-history --parents --children --count --no-walk
  --walk-reflogs --not`;
/** Options with which a command only reads. */
const READING = `
  status -s -b -u -uno -uall --short --branch --porcelain=v2 --long --ignored --untracked-files=no
  log -L ${LOG} ${DIFF}
  diff --cached --staged --merge-base --quiet --exit-code ${DIFF}
  show ${LOG} ${DIFF}
  reflog ${LOG} ${DIFF}
  rev-list --objects --disk-usage ${LOG}
  shortlog -s -e --summary --numbered --email ${LOG}
  diff-tree -r -t --root --no-commit-id ${DIFF}
  stash~list ${DIFF}
  blame -L -w -s -l -t -e -M -C -p --porcelain --line-porcelain --date=iso --abbrev=4
  grep -n -i -l -L -c -w -v -h -H -E -F -P -G -e -A1 -B1 -C1 -W -q -o -r -a -I -no --line-number
  grep --ignore-case --files-with-matches --count --cached --untracked --heading --break --and --or
  grep --not --all-match --column --no-color --color --max-depth=1 --show-function
  ls-files -c -d -m -o -i -s -u -k -z -t -v -x -X --cached --deleted --modified --others --ignored
  ls-files --stage --unmerged --killed --exclude-standard --exclude=x --full-name --error-unmatch
  ls-files --eol
  ls-tree -r -d -t -l -z --name-only --long --full-name --full-tree --abbrev
  rev-parse -q --verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name
  rev-parse --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir
  rev-parse --absolute-git-dir --all --branches --tags --remotes --is-inside-work-tree
  rev-parse --is-inside-git-dir --is-bare-repository
  cat-file -p -t -s -e
  describe --tags --all --always --long --abbrev=4 --dirty --match=x --exact-match
  merge-base -a --all --is-ancestor --fork-point --octopus --independent
  for-each-ref --format=x --sort=x --count=1 --points-at=x --merged --no-merged --contains
  show-ref -s -d -q --head --heads --tags --hash --verify --abbrev
  name-rev --tags --refs=x --name-only --always
  check-ignore -v -q -n --verbose --quiet --non-matching --no-index
  count-objects -v -H --verbose --human-readable
  branch -a -r -v -vv --list --all --remotes --show-current --merged --no-merged
  tag -l -n -n3 --list --contains --merged --no-merged --points-at --sort=x --format=x
  remote -v --verbose
  worktree~list --porcelain -v`;
/** Options of commands that write, which a rule for the command covers wherever it runs. */
const WRITING = `
  ls-remote -h -t -q --heads --tags --refs --quiet --symref
  clone -b -q -v --branch --depth=1 --single-branch --no-single-branch --no-tags --no-checkout
  clone --quiet --verbose --progress --bare
  add -A -u -v --all --update --verbose
  commit -m -a -s -v -q -am --message --all --signoff --quiet --verbose --amend --no-edit
  commit --allow-empty
  push -u -v -q -n --set-upstream --tags --follow-tags --dry-run --verbose --quiet --all
  fetch -p -t -v -q -f --all --prune --tags --no-tags --depth=1 --unshallow --verbose --quiet
  fetch --force --dry-run --progress
  pull -r -v -q --rebase --ff-only --no-rebase --tags --prune --autostash --verbose --quiet
  pull --depth=1`;
/** Options of several commands that run or write something, or are not known. */
const OTHERS = '-O -ofile --output=x --ext-diff --textconv --open-files-in-pager=x --unknown -Q';

/** The options of a table, each as a command. */
const optionForms = (table: string): readonly string[] =>
  `\n${table.replace(/\n {2}(?=-)/g, ' ')}`.split(/\n\s*/).flatMap((line) => {
    const [name = '', ...options] = line.trim().split(/\s+/);
    return options.map((option) => `${name.replace('~', ' ')} ${option}`);
  });
const isRead = (form: string): boolean => onlyReads(factsOf(gitWords(form)), '/project');
const isCovered = (form: string): boolean => {
  const [git, name, ...options] = gitWords(form);
  return (
    uncoveredWord([git ?? '', name ?? '', ...options], ['git', name ?? ''], 'widened') === null
  );
};

test('an option counts as reading, or is covered by a rule, if it neither runs nor writes', () => {
  const reading = optionForms(READING);
  assert.deepEqual([reading.filter((form) => !isRead(form)), reading.length > 700], [[], true]);
  assert.deepEqual(
    optionForms(WRITING).filter((form) => !isCovered(form) || isRead(form)),
    [],
  );
  const names = [
    ...new Set(
      optionForms(`${READING + WRITING}
  x -`).map((form) => form.split(' -')[0]),
    ),
  ];
  const others = names.flatMap((name) => optionForms(`${name?.replace(' ', '~')} ${OTHERS}`));
  assert.deepEqual(others.filter(isRead), []);
  assert.deepEqual(others.filter(isCovered), []);
});

/** The other conditions of reading: git's own options, two dashes, the command, words not known. */
const ONLY_READING = `
  yes => describe | branch --list x | stash show -p | tag -l x | remote show x | worktree list |
    reflog x | -C d status | -P log | --no-pager -C -p log | --no-optional-locks status |
    --literal-pathspecs log ; log: | x -- a | -p -- a b | --
  no => x | tag x | blame +x | ls-remote x | clone . x | add a | worktree add x | remote add x y |
    apply a | init | fsck | notes ; reflog: expire | delete x | drop x ; --version | -p status |
    -c a=b status | --git-dir=d status | --work-tree d log | --exec-path=d log | -P -p log |
    -C d -x log ; log: -- -p | --grep -- --output=x | $X ; branch: x | -v x ; stash: | -p list`;

test('a command of git only reads if each of its words is known to', () => {
  const answerTo = (form: string): string => (isRead(form) ? 'yes' : 'no');
  assert.deepEqual(wrongIn(ONLY_READING, answerTo), []);
});

/** `!` marks the first word that a rule for git alone does not cover. */
const RISKY = `
  !-c a=b log | !-c fetch | grep !-O x | grep !-Oless x | rebase !-x rm | difftool !-x rm |
  rebase !-ixrm | diff !--output x | log !--out=x | log !--ext-diff | blame !--textconv |
  grep !--open-files-in-pager | push !--exec=x | rebase !--exec=x | !--exec-path=x log |
  !--config-env a=B log | fetch !--upload-pack=x | clone !--upload-pack=x | push !--receive-pack=x |
  diff !--no-index a b | init !--template=x | !--git-dir d log | !--work-tree d log |
  !--namespace n log | !--paginate log | commit !--edit | clone !-u x | clone !-ux | clone !-qu x |
  difftool !-t x | mergetool !-t x | difftool !-yt x | difftool !--tool x | mergetool !--tool x |
  difftool !--tool=x | mergetool !--tool=x | difftool !--extcmd=x | bisect !run x | bisect !view |
  bisect !visualize | submodule !foreach x | submodule --quiet !foreach x |
  filter-branch !--tree-filter x | filter-branch !--index-filter x | filter-branch !--msg-filter x |
  filter-branch !--env-filter x | filter-branch !--commit-filter x |
  filter-branch !--parent-filter x | filter-branch !--tag-name-filter x | filter-branch !--setup x |
  log -u -t | log run view | bisect start x | bisect visual | submodule status | push -u o x |
  status foreach | fetch -t --tool-x | filter-branch --subdirectory-filter x | log --oneline |
  diff --tool | commit -m x | commit -am run | -C d status | clone --update | x -t`;

test('a rule for git does not cover words with which it runs programs or writes elsewhere', () => {
  const forms = RISKY.trim().split(/ \|\s+/);
  const marked = (form: string): string => {
    const words = gitWords(form.replace('!', ''));
    const risky = uncoveredWord(words, ['git'], 'fenced');
    return words
      .slice(1)
      .map((word) => (word === risky ? `!${word}` : word))
      .join(' ');
  };
  assert.deepEqual(forms.map(marked), forms);
});

/** The first word says where the remotes are: elsewhere (`far`), in folders (`near`), or `both`. */
const NETWORK = `
  git fetch => far: fetch | fetch -p | fetch o main ; both: fetch --all ; near: fetch https://h/x |
    fetch git@h:x main
  git pull => far pull --rebase
  git push => far push -u o x
  git ls-remote => far ls-remote
  git clone => near: clone https://h/x d | clone -q git@h:x
  git submodule update => far submodule update --init ; both submodule update
  nothing => near: fetch | pull | push o | submodule update | clone . x ; far: fetch /srv/y |
    push ../y x | clone ./a b | fetch --help | pull -h | -C d fetch | status | $X | submodule |
    submodule status | x | clone --help https://h/x | --version`;
const REMOTES = { far: ['https://h/x'], near: ['/srv/x'], both: ['/srv/x', 'git@h:x'] };

test('git needs the network for remotes that are elsewhere', () => {
  const { network } = findRow('git') ?? {};
  const answerTo = (form: string): string => {
    const [where, ...words] = form.split(' ');
    const remotes = () => REMOTES[where as keyof typeof REMOTES];
    const place = { isInstalled: () => false, remotes };
    const uses = typeof network === 'function' ? network(gitWords(words.join(' ')), place) : '';
    return uses ?? 'nothing';
  };
  assert.deepEqual(wrongIn(NETWORK, answerTo), []);
  assert.deepEqual(listRemoteCommands().toSorted(), ['fetch', 'ls-remote', 'pull', 'push']);
});
