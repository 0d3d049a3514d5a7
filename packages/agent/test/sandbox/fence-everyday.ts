import { type Case, SEEDED } from '../../../../test/kit/sandbox/fence.js';
import type { CommandLevel } from '../../src/policy/decide.js';

/** Everyday commands: each prints DONE inside as well. */

const REPOSITORY = 'git init -q . && echo a > a && git add a && git commit -qm first';

const worksAfter = (setup: string, name: string, ...commands: readonly string[]): Case => ({
  name,
  setup: `${REPOSITORY}; ${setup}`,
  steps: (_, level: CommandLevel) => commands.map((command) => ({ level, command })),
});

const works = (name: string, ...commands: readonly string[]): Case =>
  worksAfter('true', name, ...commands);

export const EVERYDAY: readonly Case[] = [
  {
    name: 'reaches a server that an earlier command left running',
    steps: (_, level) => [
      {
        level,
        command: `exec node -e "require('net').createServer((c) => c.on('error', () => 0).end('DONE')).listen(4567)"`,
        holds: true,
      },
      {
        level,
        command:
          'until (: < /dev/tcp/localhost/4567) 2>/dev/null; do sleep 0.05; done; ' +
          'cat < /dev/tcp/localhost/4567',
      },
    ],
  },
  works(
    'commits in the name of the user',
    'echo b > b && git add b && git commit -qm b && git log -1 --format=%an | grep -q Ada && echo DONE',
  ),
  works(
    'branches, stashes, merges',
    'git checkout -qb x && echo b >> a && git stash -q && git stash pop -q && git commit -qam b && git checkout -q - && git merge -q x && echo DONE',
  ),
  works(
    'finds its temporary files again',
    'echo b > /tmp/kept; mkdir -p ~/.cache; echo c > ~/.cache/kept',
    'cat /tmp/kept ~/.cache/kept && echo DONE',
  ),
  works(
    'makes a repository and goes on with it',
    'git init -q sub && git -C sub config user.name Grace',
    'git -C sub config user.email g@example.org && git -C sub remote add origin https://example.org/x && git -C sub commit -q --allow-empty -m x && echo DONE',
  ),
  works(
    'clones and keeps all files',
    'git clone -q . copy',
    'test -f copy/a && git -C copy status --short && echo DONE',
  ),
  {
    name: 'clones and adds worktrees while other commands begin and end',
    setup: REPOSITORY,
    steps: (_, level) => [
      {
        level,
        command:
          'for i in 1 2 3 4 5 6 7 8; do git clone -q . c$i; git -C c$i config user.name x; ' +
          'git -C c$i worktree add -q w; touch at-$i; done; touch made; exec sleep 60',
        holds: true,
      },
      ...[1, 2, 3, 4, 5, 6, 7].map((i) => ({
        level,
        command: `until [ -e at-${i} ]; do sleep 0.002; done`,
      })),
      {
        level,
        command:
          'until [ -e made ]; do sleep 0.02; done; for i in 1 2 3 4 5 6 7 8; do ' +
          'git -C c$i remote get-url origin && git -C c$i/w config user.name && ' +
          '[ -z "$(git -C c$i/w status --short)" ] && echo whole; done | grep -c whole | grep -qx 8 && echo DONE',
      },
    ],
  },
  {
    name: 'clones with protected files while other commands begin and end',
    setup: `${REPOSITORY}; mkdir .vscode; echo {} > .vscode/tasks.json; echo x > .envrc; echo "*.slow filter=slow" > .gitattributes; touch 1.slow; git add .; git commit -qm files`,
    steps: (_, level) => [
      {
        level,
        command:
          // the next command finds the folder of the clone, without a repository in it
          'mkdir copy; until [ -e seen ]; do sleep 0.02; done; ' +
          "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=filter.slow.smudge GIT_CONFIG_VALUE_0='until [ -e ../go ]; do sleep 0.02; done; cat'; " +
          'git clone -q . copy; touch made; exec sleep 60',
        holds: true,
      },
      { level, command: 'until [ -e copy ]; do sleep 0.02; done' },
      { level, command: 'touch seen; until [ -e copy/.vscode/tasks.json ]; do sleep 0.02; done' },
      { level, command: 'touch go; until [ -e made ]; do sleep 0.02; done' },
      { level, command: 'cd copy && [ -z "$(git status --short)" ] && echo DONE' },
    ],
  },
  worksAfter(
    'mkdir -p .vscode .github/workflows; echo {} > .vscode/tasks.json; echo x > .github/workflows/ci.yml; echo x > .envrc; git add .; git commit -qm files',
    'clones with protected files, and works with them there',
    'git clone -q . build/copy && git clone -q . copy',
    'cd copy && [ -z "$(git status --short)" ] && echo b > b && git add b && git commit -qm b && cd ../build/copy && [ -z "$(git status --short)" ] && echo DONE',
  ),
  works(
    'rebases',
    'git checkout -qb x && echo b > b && git add b && git commit -qm b && git checkout -q - && echo c > c && git add c && git commit -qm c && git rebase -q - 2>&1; git checkout -q x && git rebase -q - && git log --oneline | wc -l && echo DONE',
  ),
  worksAfter(
    'git config core.hooksPath .husky/_; mkdir -p .husky/_; echo "echo ran >> hooked" > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; git add .; git commit -qm hooks',
    'runs hooks that exist',
    'echo b > b && git add b && git commit -qm b && [ $(wc -l < hooked) = 2 ] && echo DONE',
  ),
  worksAfter(
    'git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib" sub; git commit -qm sub',
    'commits in a submodule',
    'cd sub && echo b > b && git add b && git commit -qm b && cd .. && git commit -qam sub && git submodule status && echo DONE',
  ),
  worksAfter(
    'git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.pager less; mkdir sub/.vscode',
    'renames a folder with a repository of the user',
    'mv sub other',
    'git -C other config core.pager && ls -d other/.vscode && echo DONE',
  ),
  worksAfter(
    'mkdir -p vendor/x; git init -q vendor/x; git -C vendor/x config core.pager less',
    'works beside a repository of the user in a folder of packages',
    'echo b > vendor/x/b; touch vendor/new',
    'echo c > vendor/x/c; git -C vendor/x config core.pager && git -C vendor/x add . && echo DONE',
  ),
  works(
    'works in a linked worktree',
    'git worktree add -q tree',
    'cd tree && echo b > b && git add b && git commit -qm b && echo DONE',
  ),
  works('finds the tools of the user', 'own-tool && echo DONE'),
  works(
    'serves on loopback',
    `node -e 'const s = require("http").createServer((_, r) => r.end("x")).listen(0, () => fetch("http://127.0.0.1:" + s.address().port).then(() => { console.log("DONE"); s.close(); }))'`,
  ),
  works(
    'talks through a socket in /tmp',
    `node -e 'const net = require("net"); const s = net.createServer((c) => c.end()).listen("/tmp/s" + process.pid, () => net.connect(s.address()).on("close", () => { console.log("DONE"); s.close(); }).resume())'`,
  ),
  works(
    'starts many processes at once',
    `python3 -c 'from multiprocessing import Pool; print(sum(Pool(3).map(abs, range(-5, 5))))' && echo DONE`,
  ),
  works(
    'knows who it is',
    '[ "$(cd ~ && pwd)" = "$(getent passwd $(id -u) | cut -d: -f6)" ] && echo DONE || [ -n "$OFF" ]',
  ),
  works('opens a terminal of its own', `python3 -c 'import pty; pty.spawn(["true"])' && echo DONE`),
  works('reads here-documents and pipes', 'cat <<X | tr a-z A-Z | tee out\ndone\nX'),
  {
    name: 'finds what the user passes by name',
    pass: ['WHATEVER'],
    steps: (_, level) => [{ level, command: `[ "$WHATEVER" = ${SEEDED} ] && echo DONE` }],
  },
];
