import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uncoveredWord } from '../../src/policy/command-options.js';
import type { ShellFacts } from '../../src/policy/judged-call.js';
import { isRemoteAddress } from '../../src/policy/programs/network.js';
import type { Words } from '../../src/policy/programs/program.js';
import { commandMeaning } from '../../src/policy/programs/program-table.js';
import { repositoryAccess } from '../../src/policy/repository-access.js';
import { expectedNeeds } from '../../src/policy/shell/command-facts.js';
import { messageFault } from '../../src/policy/shell/message-substitutions.js';

// What the manuals say of the options and subcommands of programs.

const factsOf = (words: Words): ShellFacts => ({
  commands: [{ words, assignments: [], writes: [], program: `/usr/bin/${words[0]}` }],
  unclear: null,
});
const needsOf = (words: Words): string | null => {
  const expected = expectedNeeds(factsOf(words), '/nowhere');
  return expected === null ? null : `${expected.words}: ${expected.needs}`;
};
const accessOf = (...words: string[]) => repositoryAccess(factsOf(words), undefined);
const runsLast = (words: Words): boolean => {
  const { commands, unclear } = commandMeaning(words);
  return unclear === undefined && commands?.[0]?.join(' ') === 'rm x';
};
const isRefused = (name: string, option: string): boolean =>
  messageFault(`${name} x ${option} "a \`b\`"`, () => null) !== null;

type Table = {
  readonly title: string;
  /** Whether it is true of a word behind the name of a program. */
  readonly holds: (name: string, word: string) => boolean;
  /** A case of which it is not true. */
  readonly control: string;
  /** Programs, joined by commas, and words behind them. */
  readonly cases: string;
};

const TABLES: readonly Table[] = [
  {
    title:
      'a rule for a program does not cover words with which it runs others or writes elsewhere',
    holds: (name, word) => uncoveredWord([name, word], [name], 'fenced') === word,
    control: 'npm: --json',
    cases: `
      npm,pnpm,yarn,bun: -C --prefix --script-shell --shell --node-options --userconfig
      --globalconfig --cwd --dir --git --scripts-prepend-node-path --ignore-scripts | apt,apt-get:
      -o -c --option --config-file | gcc,g++,cc,c++,clang,clang++: @options -wrapper -specs=x
      --specs=x -fplugin=x -Bx -Xclang -load | make,gmake: CC=x A::=x a.b-c+=x -f -C -I -E --file
      --makefile --directory --eval --include-dir | just: --shell --shell-arg --justfile -f
      --working-directory -d --set --command -c --chooser --choose --edit -e | gradle: -I
      --init-script -b --build-file -c --settings-file -p --project-dir -D -P -g --gradle-user-home
      --include-build | ninja: -f -C -t | cargo: --config --manifest-path -C -Z --target-dir | go:
      -exec -toolexec -overlay -modfile -o -C -vettool -ldflags=x -gcflags -asmflags -compiler
      -pkgdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir
      -gccgoflags --exec | gofmt: -w -cpuprofile | node: -e -p -pe -r --eval --print --require
      --import --loader --experimental-loader --env-file --run --build-snapshot --openssl-config |
      deno: eval run repl task install compile serve -A -W -c --allow-all --allow-run --allow-write
      --allow-ffi --config --import-map | tsc: --outDir --outFile -p --project --build -b
      --tsBuildInfoFile --declarationDir -outdir --generateTrace | gdb: -x -e -ex -iex -ix | eslint:
      -c -o --config --fix --rulesdir --plugin --parser --resolve-plugins-relative-to --output-file
      --init --format -f | prettier: -w --write --plugin --config --plugin-search-dir | mypy:
      --python-executable --config-file --cache-dir --custom-typeshed-dir --junit-xml
      --install-types | pytest: -p -c -o --rootdir --confcutdir --override-ini --basetemp --junitxml
      --junit-xml | jest,vitest: -c --config --globalSetup --globalTeardown --setupFiles
      --setupFilesAfterEnv --runner --testRunner --reporters --reporter --transform --resolver
      --rootDir --root --dir --testEnvironment --outputFile --coverageDirectory --cacheDirectory
      --prettierPath -u --update | mocha: -r --require --config --opts --ui --reporter -R -u
      --import --loader | hg: --config --cwd -R --repository --tool -t --ssh -e --remotecmd --output
      -o | curl: -o -O -K -T -F -D -c -J -d --output --remote-name --config --upload-file --form
      --data --data-binary --dump-header --cookie-jar --trace --trace-ascii --libcurl --stderr
      --engine --proxy --output-dir --remote-header-name --etag-save --hsts --alt-svc | wget: -e -O
      -P -o -a -i --execute --output-document --directory-prefix --use-askpass --config --post-file
      --body-file --input-file --output-file --append-output | ssh: -o -F -W -L -R -D -J -S -E -I -w
      | scp: -o -F -S -J | sftp: -o -F -S -b -J -D | ssh-keygen: -D -f -w -P | tcpdump: -z -w -Z -F
      | crontab: -r file | psql,mysql,mariadb: \\! program system PAGER tee source outfile dumpfile
      load_file -f -o -L --file --output --log-file --pager --tee --init-command --plugin-dir
      --defaults-file --defaults-extra-file | rsync: -e --rsh --rsync-path --files-from --log-file
      --write-batch --only-write-batch | tee,gtee: file --append /dev/sda x-a -ax | sed,gsed: -i
      -i-n -f --in-place w | awk,gawk,mawk: system() getline |& > @load -dx -D -E -f -i -l -o -W -p
      --dump-variables --debug --exec --file --include --load --pretty=x --profile | yq: -i
      --inplace --in-place -s --split-exp | ed,ex,less,more,emacs: file -x | vi,vim,view,nvim,nano:
      +x -c | sort,gsort: -T --compress-program --files0-from --temporary-directory | find,gfind:
      -delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls | fd,fdfind: -x -X --exec
      --exec-batch | rg: --pre --hostname-bin --search-zip -z | ag: --pager -z | ack: --pager
      --ackrc | file: -C -m --compile --magic-file | date: 010100002020 -s -us -f --set --file |
      diff: -l --paginate | jq: -f -L --from-file --library-path | xxd: -r -revert | tree: -o -R |
      bat,batcat: --pager --config-file | man: -P -H -C --pager --html --config-file | fzf:
      --preview --bind --listen --history | tar,bsdtar: xzPf xCf xIf xFf -I -F -P -C --to-command
      --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script
      --new-volume-script --absolute-names --directory | zip: -T --test --unzip-command -TT | unzip:
      -d -o | split: --filter | sqlite3: .shell writefile(1) LOAD_EXTENSION(1) edit(1) -cmd -init |
      openssl: -engine -out -keyout -CAserial -writerand -config --out`,
  },
  {
    title: 'a rule for a program covers ordinary words in the sandbox',
    holds: (name, word) => uncoveredWord([name, word], [name], 'fenced') === null,
    control: 'npm: --prefix',
    cases: `
      npm: run test --foo | gcc: -O2 -c a@b.c a=b | make: test -j4 --jobs=4 | go: test -count=1
      -coverpkg=x output | deno: test fmt running rerun --allow-read | tsc: --noEmit out | tee:
      /dev/null -a -ip | awk: -F -v x--d --lint --field-separator a | vim: file a+b a-b | date:
      +%Y2 -Iseconds -u tomorrow | tar: czf --file ./F | sqlite3: a.db credit | psql: -c systems
      filesystem | openssl: req -in -output | sed: -n p -E`,
  },
  {
    title: 'a rule that lets a program out of the sandbox covers its harmless options',
    holds: (name, word) => uncoveredWord([name, word], [name], 'widened') === null,
    control: 'npm: --odd',
    cases: `
      npm: -D -E -P -O -f --save --save-dev --save-exact --save-optional --save-peer --no-save
      --legacy-peer-deps --force --no-audit --no-fund --audit --fund --prefer-offline
      --prefer-online --offline --omit=dev --include --silent --verbose --loglevel --json --long
      --depth --production --dry-run --package-lock-only --if-present --workspaces | pnpm: -D -E -P
      -O -r --save-dev --save-exact --save-prod --save-optional --frozen-lockfile
      --no-frozen-lockfile --prefer-offline --offline --prod --dev --silent --recursive
      --lockfile-only --json | yarn: -D -E -P -O --dev --exact --peer --optional --frozen-lockfile
      --immutable --production --silent --offline --check-cache --json | bun: -d -D -E --dev --exact
      --optional --frozen-lockfile --production --no-save --silent --verbose | pip,pip3: -U -q -v -r
      --upgrade --quiet --verbose --no-cache-dir --no-deps --pre --requirement --user
      --disable-pip-version-check --no-input --break-system-packages --format --outdated | uv: -q -v
      --upgrade --quiet --verbose --dev --frozen --locked --no-cache --offline --group --extra
      --all-extras | poetry: -q -v -n -D --quiet --verbose --no-interaction --dev --group --with
      --without --no-root --sync --dry-run --all-extras | apt,apt-get: -y -q -yq --yes --quiet
      --no-install-recommends --only-upgrade | brew: -q -v --quiet --verbose --cask --formula |
      make,gmake: -j -j4 -k -s -B -n -i --jobs --keep-going --silent --always-make --dry-run
      --no-print-directory | cargo: -q -v -p -r -F --release --all --workspace --features
      --all-features --no-default-features --all-targets --locked --offline --frozen --quiet
      --verbose --package --bin --lib --tests --examples --benches --example --test --no-run --jobs
      -j | go: -v -u -t -x -n -race -short -count=1 -run -bench -benchmem -timeout -cover -json
      -failfast -parallel -tags -mod -d | tsc: --noEmit --pretty --strict --listFiles --version |
      eslint: --quiet --max-warnings --ext --no-color --color | prettier: --check -c -l
      --list-different | ruff: -q -v --quiet --verbose --select --ignore | mypy: -p -m --strict
      --pretty --no-color-output --show-error-codes --package --module | pytest: -q -v -vv -x -s -k
      -m -l --quiet --verbose --exitfirst --lf --ff --tb --maxfail --durations --no-header
      --collect-only | gh: -L -R -s -l -t -b -B -H -q -a --limit --repo --state --label --title
      --body --base --head --json --jq --author --assignee --draft --fill --comments --name-only
      --log --log-failed --search | curl: -s -S -L -f -fsSL -I -i -v -H -A -X -m -4 -6 --silent
      --show-error --location --fail --head --include --verbose --header --user-agent --request
      --max-time --connect-timeout --retry --compressed --http1.1 --http2 | wget: -q -nv -c -S
      --quiet --no-verbose --continue --spider --timeout --tries --server-response`,
  },
  {
    title: 'a package manager runs the command behind options that take the next word',
    holds: (name, word) => runsLast([...name.split(' '), word, 'value', 'rm', 'x']),
    control: 'npm exec: -y',
    cases: `
      npm exec: -p --package -w --workspace --prefix | pnpm exec: -F -C --filter --dir --package |
      yarn run: -p --package --cwd | npx: -p --package -w --workspace | pnpx,bunx: -p --package |
      uvx: --from --with -p --python | uv run: --with -p --python --group --extra --only-group
      --no-group --env-file --directory --project --package --with-requirements --with-editable |
      poetry run: -C -P --directory --project | pipx run: --spec --python --pip-args --index-url`,
  },
  {
    title: 'a package manager runs the command behind options that stand alone',
    holds: (name, word) => runsLast([...name.split(' '), word, 'rm', 'x']),
    control: 'npm test: -y',
    cases: `
      npm exec,npm x: -y -q -s --yes --no --no-install --quiet --silent --workspaces --if-present |
      npm exec: --offline --prefer-offline | pnpm exec,pnpm dlx: -r -s -w --recursive --silent
      --parallel --stream --workspace-root | yarn exec,yarn dlx,yarn run: -B -q -s -T
      --binaries-only --quiet --silent --top-level | bun x: --bun | npx: -y -q -s --yes --no
      --no-install --quiet --silent --ignore-existing --workspaces --offline --prefer-offline |
      pnpx,bunx: -y -s --bun --yes --silent --no-install | uvx,uv run: -m -n -q -s -U -v --module
      --script --quiet --verbose --dev --no-dev --frozen --locked --no-sync --no-project --isolated
      --all-extras --all-groups --no-cache --offline --active --exact --refresh --upgrade
      --no-config | poetry run: -q -v -n --quiet --verbose --no-interaction --ansi --no-ansi |
      pipx run: -q -v --quiet --verbose --no-cache | pipenv run,bundle exec,bundler exec: --`,
  },
  {
    title: 'the network is expected of subcommands that load or send something, and of addresses',
    holds: (name, word) =>
      needsOf([name, word]) === `${/curl|wget/.test(name) ? name : `${name} ${word}`}: network`,
    control: 'npm: test',
    cases: `
      npm,pnpm,yarn,bun: i install ci add update upgrade up outdated audit publish create dlx view
      info search login whoami | pip,pip3: install download wheel index | uv: sync add lock |
      poetry: install add update lock | pipx: install run upgrade | gem: install update push fetch |
      bundle,bundler: install update add | composer: install update require | cargo: fetch add
      install update publish search | go: get | npx,pnpx,bunx,uvx: cowsay @a/b a@1.2 | curl,wget:
      https://h/x http://h FTP://h/x ftp://localhost.h/x a.com b.org c.net d.io e.dev f.app g.ai
      h.edu i.gov j.eu k.de l.uk a.b-c.com:80/x localhost.a.com a.com/localhost
      https://h/http://localhost`,
  },
  {
    title: 'packages of the system are expected to need all that is outside the sandbox',
    holds: (name, word) => needsOf([name, word]) === `${name} ${word}: outside`,
    control: 'apt: list',
    cases: `
      apt,apt-get,aptitude,apk,dnf,yum,zypper,snap,brew: install add remove update upgrade purge
      dist-upgrade full-upgrade`,
  },
  {
    title: 'nothing is expected of other subcommands, and of addresses of this machine',
    holds: (name, word) => needsOf([name, word]) === null,
    control: 'npm: ci',
    cases: `
      npm: test run | pip: list | apt: list | npx: ./x a:b -y --no | go: build mod install |
      curl,wget: localhost:3000 http://localhost https://u:p@localhost/x 127.0.0.1:80 http://127.1?x
      0.0.0.0/x http://[::1]:80/x http://[::]#x LOCALHOST file:///x file:///http://h out.json
      a.community http:// x/a.com ./a.com x/https://h a_com a.com.zip --url=https://h/x`,
  },
  {
    title: 'names of releases open git folders to targets, tasks and scripts',
    holds: (name, word) => accessOf(name, word) === 'write' && accessOf(name, 'test') === 'read',
    control: 'cargo: release',
    cases: `
      make,gmake,doit,inv,invoke,mage,rake,task,just: release | npm,pnpm,yarn,bun,deno: release |
      npx,uv,poetry,node,tsx,ts-node,php,python,python3,perl,ruby: release.x`,
  },
  {
    title: 'git folders are opened to programs that run git',
    holds: (name, word) => accessOf(name, word) === 'writePacks',
    control: 'legit-x: x',
    cases: `
      auto-changelog,bump-my-version,bump2version,bumpversion,changeset,cz,czg,cog,gitui,hub: x |
      husky,jj: x |
      lazygit,lefthook,lerna,lint-staged,pre-commit,release-it,semantic-release,standard-version: x
      | tbump,tig,commit-and-tag-version,git-lfs,git-x,gh,glab: x`,
  },
  {
    title: 'backticks are refused in a message',
    holds: isRefused,
    control: 'gh: --repo',
    cases: `
      gh: -t -b -n -m --title --body --notes --message --description --subject | glab: -t -d -m
      --title --description --message`,
  },
  {
    title: 'backticks are no fault in other options',
    holds: (name, option) => !isRefused(name, option),
    control: 'gh: -t',
    cases: `
      gh: -R --repo --titles --x--title | glab: -R --titles --x--title -b --body`,
  },
];

/** Each word with its program. */
const casesIn = (text: string): readonly (readonly [name: string, word: string])[] =>
  text
    .trim()
    .replace(/\s+/g, ' ')
    .split(' | ')
    .flatMap((entry) => {
      const [names = '', words = ''] = entry.split(': ');
      return names
        .split(',')
        .flatMap((name) => words.split(' ').map((word) => [name, word] as const));
    });

for (const { title, holds, control, cases } of TABLES)
  test(title, () => {
    const wrong = casesIn(cases).filter(([name, word]) => !holds(name, word));
    assert.deepEqual(wrong, []);
    assert.equal(casesIn(control).filter(([name, word]) => holds(name, word)).length, 0, 'control');
  });

/** What whole commands are expected to need. */
const NEEDS = `
  npx: | npx --no x: | npx -y x: | npx x --no: npx x: network | /bin/npx @a/b x: npx @a/b: network
  go mod download: go mod download: network | go mod tidy: go mod tidy: network | go mod edit:
  go work tidy: | go -v get x: go get: network | go install x@1: go install: network
  go install ./x: | go run x@1: | python -m pip install x: pip install: network | python -m pip:
  python3.11 -m pip wheel x: pip wheel: network | python -m pip list: | python -m venv install:
  python x pip install: | bpython -m pip install x: | /bin/curl -s https://h/x: curl: network`;

test('the network is expected of whole commands by their subcommands and operands', () => {
  for (const row of NEEDS.trim().split(/ \| |\n/)) {
    const [, text = '', expected] = /^ *(.*?):(?: (.*))?$/.exec(row) ?? [];
    assert.equal(needsOf(text.split(' ')), expected ?? null, text);
  }
});

test('git reaches an address of another machine by the network, and no path', () => {
  const remote =
    'https://h/x HTTP://h ssh://h/x git://h/x ftp://h ftps://h git@h:x h:x https://localhost.h';
  const local =
    '/srv/x x/https://h ../x x ./a:b a/b:c file:///x https://localhost/x ssh://git@127.0.0.1:22/x';
  assert.equal(`${remote} ${local}`.split(' ').filter(isRemoteAddress).join(' '), remote);
});

test('a rule for a program covers no text that runs another one, wherever it stands', () => {
  const rows: readonly (readonly [words: Words, uncovered: string | null])[] = [
    [['sqlite3', 'a.db', 'select 1;\n  .shell x'], 'select 1;\n  .shell x'],
    [['sqlite3', 'a.db', "select edit ('x')"], "select edit ('x')"],
    [['sqlite3', 'a.db', 'select a\nfrom b.c'], null],
    [['find', '.', '-name', '*.pyc', '-delete'], '-delete'],
    [['sed', '-n', null, 'w x'], null],
    [['tar', 'czf', 'a.tgz', 'LICENSE', 'Foo.txt'], null],
  ];
  for (const [words, uncovered] of rows)
    assert.equal(uncoveredWord(words, [words[0] ?? ''], 'fenced'), uncovered);
});
