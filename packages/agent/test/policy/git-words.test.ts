import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileLossesIn, findGitLoss } from '../../src/policy/losses.js';
import { pathRestore } from '../../src/policy/programs/git-words.js';
import { commandMeaning } from '../../src/policy/programs/program-table.js';
import { commandOf, gitWords, wrongIn } from './command-tables.js';

// How git reads its words: what it runs, which files they name. How tables read: command-tables.ts.

/** What git runs beside itself: texts, `[commands]` with the place of the first, `?` unclear. */
const RUNS = `
  rm => -c core.sshCommand=rm fetch | -c core.hooksPath=x -c core.editor=rm commit ; rebase: -x rm |
    -ixrm | --exec=rm | --ex rm | -i x --exec rm ; difftool: -x rm | -yx rm | --extcmd=rm |
    --extc rm a b
  rm;ls => rebase -x rm -x ls x
  rm -r x @3 => submodule foreach rm -r x
  rm x @4 => submodule: foreach --recursive rm x | --quiet foreach rm x
  rm x @5 => -C d submodule foreach rm x
  [rm x] @3 => bisect run rm x
  [rm -f] @5 => -C d bisect run rm -f
  [git push] => for-each-repo --config=x push | -c alias.p=push p | -c alias.P=push p |
    -c alias.p=log -c alias.p=push p | -c alias.p=~push~ p
  [git ] => for-each-repo --config=x $X
  [git push -f o] => -c alias.p=push~~-f p o
  [git -c alias.b=push b] => -c alias.a=b -c alias.b=push a
  [git -c a.b=c push o] => -c a.b=c -c alias.p=push p o
  rm x o => -c alias.p=!rm~x p o
  less -R => -c core.pager=less~-R log | -c core.pager=less~-R -c color.ui=never log
  less;rm => -c core.pager=rm rebase -x less
  ? => difftool -x $X | submodule foreach $X | -c alias.p=!rm p $X | --config-env a.b=C log |
    --config-env=a.b=C log | -c $X log | --unknown log | --git-dirx d log | -C d --unknown=x log |
    -c alias.p=!rm rebase -x $X ; rebase: -x $X | --exec $X
  nothing => -C $X log | -C core.pager=rm log | rebase x | difftool a b | -c alias.p=push log |
    -c alias.p=!rm log | -c color.ui=never log | -c core.pager log | -c alias.p=push $X | -C d log |
    -c | --exec-path=x log | --list-cmds=x | -C --unknown log ; submodule: foreach | update ;
    bisect: run | start run x ; log: | -x rm`;

test('what git runs beside itself stands in its words, or is unclear', () => {
  const meaningOf = (form: string): string => {
    const { texts = [], commands = [], startsAt, unclear } = commandMeaning(gitWords(form));
    if (unclear !== undefined) return '?';
    const all = [...texts, ...commands.map((words) => `[${words.join(' ')}]`)].join(';');
    return all === '' ? 'nothing' : `${all}${startsAt === undefined ? '' : ` @${startsAt}`}`;
  };
  assert.deepEqual(wrongIn(RUNS, meaningOf), []);
});

/** Options of git itself before its command, by whether their value is the next word. */
const OWN = {
  'v reset': `
    -C --git-dir --work-tree --namespace --super-prefix --attr-source --shallow-file`,
  reset: `
    -h --help -v --version -p --paginate -P --no-pager --exec-path --html-path --man-path
    --info-path --bare --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice
    --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --list-cmds
    --git-dir=v`,
};

test('the command of git is found behind options of git itself', () => {
  for (const [rest, options] of Object.entries(OWN))
    for (const option of options.trim().split(/\s+/)) {
      const words = gitWords(`${option} ${rest} --hard`);
      assert.notEqual(findGitLoss(commandOf(words)), null, option);
      assert.deepEqual(commandMeaning(words), {}, option);
    }
});

/** Files that git overwrites; `?`: if they are there; `>`: moved to. */
const FILES = `
  a>b => -C d mv a b ; mv: a b | -f a b | -k a b
  a,b>c => mv a b c
  a? => bundle: create a main | create -q a main ; merge-file: a b c | -q a b c |
    -L x -L y -L z a b c | --marker-size 9 a b c | -Lx a b c
  a => log --output a | index-pack -o a x | format-patch -o a x ; diff: --output=a | --out=a x y ;
    archive: -o a HEAD | -oa HEAD | --output=a HEAD
  nothing => mv -n a b | mv -kn a b | mv --dry-run a b | ls-files -o a | grep -no a | status -uno |
    commit -o a | push -o a b | clone -o a b | diff --output-indicator-new=a ;
    merge-file: -p a b c | --stdout a b c ; bundle: verify a | list-heads a ; log: --oneline |
    create x`;

test('git overwrites the files that its words name', () => {
  const nameOf = (file: object): string => ('text' in file ? String(file.text) : '?');
  const filesOf = (form: string): string =>
    fileLossesIn(commandOf(gitWords(form)))
      .map((loss) =>
        loss.kind === 'file'
          ? `${nameOf(loss.file)}${loss.isProduct === true ? '?' : ''}`
          : `${loss.sources.map(nameOf).join()}${loss.moves ? '>' : '='}${nameOf(loss.to)}`,
      )
      .join(' ') || 'nothing';
  assert.deepEqual(wrongIn(FILES, filesOf), []);
});

/** What a command takes back, from where, and the folder of `-C`. */
const RESTORES = `
  index a => -P restore a | --no-pager restore a ; restore: a | -q a | --quiet -W a | --worktree a |
    -- a ; checkout: -- a | -q -- a | --no-progress --quiet -- a | -f -- a
  index a,HEAD => restore a HEAD
  index a:b => restore a:b
  index a,b => checkout -- a b ; restore: a b | a -- b
  index -a => restore -- -a | checkout -- -a
  index . => restore . ; checkout: . | --force .
  index ./a,b => checkout ./a b
  HEAD a => restore: -S a | --staged a | --source=HEAD a | -s HEAD a | --source HEAD a | -S -W a ;
    checkout: HEAD -- a | -q HEAD -- a
  HEAD ./a => checkout HEAD ./a
  HEAD a/ => checkout HEAD a/
  HEAD :/ => reset: --hard | -q --hard HEAD | --quiet --hard ; checkout: -f | --force
  index d/a in d => -C d restore a | --no-pager -C d restore a | -P -C d checkout -- a
  index d/e/a,/b in d/e => -C d -C e restore a /b
  index /e/a in /e => -C d -C /e restore a
  HEAD :/ in d => -C d reset --hard
  nothing => status --hard | clean --hard | -c a=b restore a | --git-dir d restore a |
    -p restore a | --version | $X | -C $X restore a | -C d restore ; restore: | -q | -p a | -s x a |
    --source=x a | -m a | -s | --source HEADx a | *.ts | a? | [a] | :/ | a\\ | :(top)a | $X | a $X ;
    checkout: | x | x a | HEAD | HEAD a | x -- a | HEAD x -- a | -- | HEAD -- | -p . | -b x | -m . |
    -q | -qf | a ./b | -fx -- a | xf -- a | -- *.ts ; reset: | --hard x | HEAD | --hard --hardx |
    -q | --soft --hard`;

test('paths that a command takes back from the index or from HEAD are known', () => {
  const restoreOf = (form: string): string => {
    const { from, paths = [], folder } = pathRestore(commandOf(gitWords(form))) ?? {};
    if (from === undefined) return 'nothing';
    return `${from} ${paths.join()}${folder === undefined ? '' : ` in ${folder}`}`;
  };
  assert.deepEqual(wrongIn(RESTORES, restoreOf), []);
  const alias = { words: ['git', 'r', 'a'], readAs: ['git', 'restore', 'a'] };
  assert.deepEqual(pathRestore(alias), { paths: ['a'], from: 'index' });
  assert.equal(pathRestore({ words: ['hg', 'restore', 'a'] }), null);
});
