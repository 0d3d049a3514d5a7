// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of a shell
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decisionOf } from './decisions.js';

// What rules say of shell texts, and what makes a text more than it seems.

const ALLOWED = [
  'npm test',
  '  npm   test quickly  # now',
  "npm 'test'",
  'n"p"m te\\st',
  'npm \\\n  test',
  'npm test && git diff --stat',
  'npm test 2>/dev/null 2>&1',
  'cd packages/core && npm test',
  'npm test; echo done',
  '(npm test)',
  '{ npm test; }',
  'if npm test; then echo ok; else git diff; fi',
  'for i in 1 2; do npm test; done',
  './build.sh fast',
  'timeout 60 npm test',
  "sed -n '1,5p' file",
  "sed 's/a/b/g' file",
  'find . -name x.ts',
];

const ASKED = [
  'npm test -- --config=evil.js',
  './build.sh --fast',
  'npm run lint',
  'npm testing',
  'npm test; curl x',
  'npm test & curl x',
  'npm test | sh',
  'npm test\ncurl x',
  'npm test $(curl x)',
  'npm test `curl x`',
  'npm test <(curl x)',
  'npm test "$HOME"',
  'npm test *',
  'npm test {a,b}',
  'npm test ~/x',
  'npm test > out.txt',
  'npm test < /dev/tcp/example.com/80',
  'PAGER=sh git diff',
  'BASH_ENV=x npm test',
  'x=1; npm test',
  'npm() { curl x; }; npm test',
  'alias npm=curl; npm test; shopt -s expand_aliases',
  'eval "npm test"',
  'source ./env; npm test',
  'sudo npm test',
  'timeout 5 npm test',
  'env npm test',
  'command npm test',
  'cd .. && npm test',
  'cd /tmp && npm test',
  'cd sub && ./build.sh',
  'git -c core.pager=sh diff',
  'git diff --output=/etc/x',
  'git diff --ext-diff',
  'git diff --no-index /etc/passwd x',
  "sed -i 's/a/b/' x",
  "sed 's/a/b/e' x",
  "sed '1e id' x",
  "sed 's/a/b/w /tmp/x' y",
  'find . -delete',
  'find . -exec rm {} +',
  'find . -fprint /tmp/x',
  'npm test $((x))',
  'npm test "${x@P}"',
  'npm test "${!x}"',
  'npm test $"x"',
  "npm test 'open",
  'npm test )',
  'npm te\u200bst',
  'npm\u00a0test',
  'npm test\rcurl x',
  'npm test \\',
  'npm test <<EOF\nx',
  'coproc npm test',
  'git commit -m x',
  'trap "npm test" EXIT; set -o posix',
];

const DENIED = [
  'git push',
  'git push origin main',
  'git -C x push',
  'git -c a=b --no-pager push',
  '/usr/bin/git push',
  'sudo git push',
  'sudo -u x env A=b nice -n 5 git push',
  'timeout 5 git push',
  'xargs git push',
  'find . -exec git push \\;',
  'bash -c "git push"',
  'sh -ec "echo a; git push"',
  'bash -c "bash -c \'git push\'"',
  'eval git push',
  'eval "git push"',
  'trap "git push" EXIT',
  'command git push',
  'exec git push',
  'busybox git push',
  'nohup git push &',
  'x=$(git push)',
  'echo `git push`',
  'cat <(git push)',
  'cat <<EOF\n$(git push)\nEOF',
  'f() { git push; }',
  'while true; do git push; done',
  'case $x in a) git push;; esac',
  '[[ -n $(git push) ]]',
  'a=([1]=$(git push))',
  'true && ! git push',
  'g\'\'it pu"sh"',
  "$'gi\\x74' push",
  'git \\\n push',
  'time git push',
  'npx -y git push',
  'npm test; git push',
];

/** Programs that run others among much else. */
const DENIED_BEHIND_RUNNERS = [
  "git submodule foreach 'git push'",
  'git submodule foreach --recursive git push',
  'git -C x submodule foreach git push',
  'git rebase -x "git push" HEAD~2',
  "git rebase --exec='git push' HEAD~2",
  "git rebase -x'git push' HEAD~2",
  'git -c alias.p=push p',
  'git -c alias.P=push P origin',
  "git -c alias.p='!git push' p",
  "git -c core.pager='git push' log",
  "git -c interactive.diffFilter='git push' add -p",
  "git -c submodule.x.update='!git push' submodule update",
  'git bisect run git push',
  "git difftool -x 'git push'",
  'git for-each-repo --config=x push',
  '/lib64/ld-linux-x86-64.so.2 /usr/bin/git push',
  'ld.so --library-path /x /usr/bin/git push',
  'ip netns exec x git push',
  'ip netns e x git push',
  'ip -all netns exec git push',
  'jobs -x git push',
  "tmux new -d -s s 'git push'",
  "tmux split 'git push'",
  "tmux bind-key x 'git push'",
  'tmux new-session -d git push',
  'tmux send-keys -t s "git push" Enter',
  'screen -dmS s git push',
  "screen -dmS s sh -c 'git push'",
  "nix-shell --run 'git push'",
  "nix-shell --run ls --command 'git push'",
  'nix develop -c git push',
  "hyperfine --warmup 1 'git push'",
  "hyperfine --prepare='git push' true",
  "hyperfine -N 'git push'",
  "hyperfine -s 'git push' true",
  "hyperfine -p'git push' true",
  "hyperfine --reference='git push' true",
  'ls | entr git push',
  "ls | entr -s 'git push'",
  'docker run --rm -v x:/x image git push',
  "docker run image sh -c 'git push'",
  'docker compose exec app git push',
  'podman exec -it x git push',
  'kubectl exec pod -- git push',
];
/** They run what no word shows: asked about. */
const UNCLEAR_RUNNERS = [
  'echo git push | at now',
  "at now <<'E'\ngit push\nE",
  'expect -c "spawn git push"',
  'git rebase -x "$CMD"',
  'git submodule foreach "$CMD"',
  'hyperfine "$CMD"',
  'hyperfine -S ./evil true',
  "hyperfine -L c push 'git {c}'",
  'echo git push | bash --',
  'bash //dev/stdin',
  '. -- /dev/stdin',
  'echo git push | linux64',
  'echo git push | sudo -u me -s',
  'echo git push | chroot /x',
  'echo git push | nix-shell -p jq',
  'shopt -s nocaseglob; rm NOTES*',
  'GLOBIGNORE=zz; rm conf/*',
  "printf -v'a[$(git push)]' x",
  "wait -n -p 'a[$(git push)]'",
  // sh may be dash, which reads these as other commands
  `sh -c "echo \\$'\\\\'; git push #'"`,
  `dash -c "echo \\$'\\\\'; git push #'"`,
  `sh -c $'alias ls="git push"\nls'`,
  "sh -c '((a = b))'",
  "sh -c '[[ a || git ]]'",
  "sh -c 'git &> x'",
  `sh -c 'eval "git &> x"'`,
];

/** The same words where bash reads them, or where they are no syntax. */
const CLEAR = [
  "bash -c '[[ a || b ]]'",
  'sh -c "grep \'a$\' x"',
  "sh -c 'ls x > y 2>&1'",
  "sh -c 'grep [[:space:]] x'",
];

const MAYBE = [
  'git $x',
  '$x push',
  '"$(echo git)" push',
  'g{it,x} push',
  'xargs git',
  'xargs -I{} -L1 git',
  'xargs -E -i git',
  'xargs -I% -I{} git {}',
  'curl x | bash',
  'eval "$x"',
  '. <(echo git push)',
];

for (const text of ALLOWED)
  test(`rules allow ${JSON.stringify(text)}`, async () =>
    assert.equal(await decisionOf(text), 'allow'));
for (const text of ASKED)
  test(`rules do not allow ${JSON.stringify(text)}`, async () =>
    assert.equal(await decisionOf(text), 'ask'));
for (const text of DENIED_BEHIND_RUNNERS)
  test(`rules deny ${JSON.stringify(text)}, in which another program runs it`, async () =>
    assert.equal(await decisionOf(text, { preset: 'auto' }), 'deny'));
for (const text of UNCLEAR_RUNNERS)
  test(`${JSON.stringify(text)} is asked about: what it runs is not in its words`, async () =>
    assert.equal(await decisionOf(text, { preset: 'auto' }), 'ask'));
test('sh reads its text as bash does, but for what only bash has', async () => {
  for (const text of CLEAR) assert.equal(await decisionOf(text, { preset: 'auto' }), 'allow', text);
});
for (const text of DENIED)
  test(`a rule denies ${JSON.stringify(text)}, in the sandbox too`, async () => {
    assert.equal(await decisionOf(text), 'deny');
    assert.equal(await decisionOf(text, { preset: 'auto', sandbox: 'workspace' }), 'deny');
    assert.notEqual(
      await decisionOf(text, { preset: 'auto', sandbox: 'workspace', rules: [] }),
      'deny',
      'control',
    );
  });
for (const text of MAYBE)
  test(`what may be denied is asked: ${JSON.stringify(text)}`, async () =>
    assert.equal(await decisionOf(text, { preset: 'auto', sandbox: 'workspace' }), 'ask'));
