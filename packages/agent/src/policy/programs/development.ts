/**
 * Rows of programs of developers: package managers, compilers, interpreters, builds, tests and
 * linters, and of those that run git. program.ts explains the fields.
 *
 * A rule that allows a program does not allow its `risky` options. `harmless` ones are no reason to
 * ask; an option in neither list may be one. An absent field says that nothing is known of it.
 */

import { listWords, programName } from '../paths.js';
import { operandsIn } from './network.js';
import {
  isWholeOption,
  matchesOption,
  type NetworkPlace,
  type Rows,
  type Words,
} from './program.js';

// ---- Package managers ----

const PACKAGES = `
  i install ci add update upgrade up outdated audit publish create dlx view info search login
  whoami`;
const PYTHON_PACKAGES = 'install download wheel index';
const SYSTEM_PACKAGES = 'install add remove update upgrade purge dist-upgrade full-upgrade';
/** Risky options of npm and its like. */
const PACKAGES_RISKY = `
  -C --prefix --script-shell --shell --node-options --userconfig --globalconfig --cwd --dir --git
  --scripts-prepend-node-path --ignore-scripts`;

/** A program that `npx` and its like would load, in words. */
const runnerByNetwork = (words: Words, { isInstalled }: NetworkPlace): string | null => {
  const [name, first] = words;
  const [program] = operandsIn(words.slice(1));
  // an option before the program may say where it comes from
  if (program === undefined || first !== program) return null;
  return /^[@\w][\w@./-]*$/.test(program) && !isInstalled(program)
    ? `${programName(name ?? '')} ${program}`
    : null;
};

/** Options of `uv run` and `uvx` that take no value. */
const UV_FLAGS = `
  -m -n -q -s -U -v --module --script --quiet --verbose --dev --no-dev --frozen --locked --no-sync
  --no-project --isolated --all-extras --all-groups --no-cache --offline --active --exact --refresh
  --upgrade --no-config`;

const PACKAGE_MANAGERS: Rows = {
  npm: {
    runs: {
      after: 'exec x',
      valued: '-p --package -w --workspace --prefix',
      flags: `
        -y -q -s --yes --no-install --quiet --silent --workspaces --if-present --offline
        --prefer-offline`,
    },
    risky: PACKAGES_RISKY,
    harmless: `
      -D -E -P -O -f --save --save-dev --save-exact --save-optional --save-peer --no-save
      --legacy-peer-deps --force --no-audit --no-fund --audit --fund --prefer-offline
      --prefer-online --offline --omit --include --silent --verbose --loglevel --json --long
      --depth --production --dry-run --package-lock-only --if-present --workspaces`,
    repository: 'task',
    network: PACKAGES,
  },
  pnpm: {
    runs: {
      after: 'exec dlx',
      valued: '-F -C --filter --dir --package',
      flags: '-r -s -w --recursive --silent --parallel --stream --workspace-root',
    },
    risky: PACKAGES_RISKY,
    harmless: `
      -D -E -P -O -r --save-dev --save-exact --save-prod --save-optional --frozen-lockfile
      --no-frozen-lockfile --prefer-offline --offline --prod --dev --silent --recursive
      --lockfile-only --json`,
    repository: 'task',
    network: PACKAGES,
  },
  yarn: {
    runs: {
      after: 'exec dlx run',
      valued: '-p --package --cwd',
      flags: '-B -q -s -T --binaries-only --quiet --silent --top-level',
    },
    risky: PACKAGES_RISKY,
    harmless: `
      -D -E -P -O --dev --exact --peer --optional --frozen-lockfile --immutable --production
      --silent --offline --check-cache --json`,
    repository: 'task',
    network: PACKAGES,
  },
  bun: {
    runs: { after: 'x', flags: '--bun' },
    risky: PACKAGES_RISKY,
    harmless: `
      -d -D -E --dev --exact --optional --frozen-lockfile --production --no-save --silent --verbose`,
    repository: 'task',
    network: PACKAGES,
  },
  npx: {
    runs: {
      valued: '-p --package -w --workspace',
      flags: `
        -y -q -s --yes --no-install --quiet --silent --ignore-existing --workspaces --offline
        --prefer-offline`,
    },
    repository: 'script',
    network: runnerByNetwork,
  },
  'pnpx bunx': {
    runs: { valued: '-p --package', flags: '-y -s --bun --yes --silent --no-install' },
    network: runnerByNetwork,
  },
  uvx: {
    runs: { valued: '--from --with -p --python', flags: UV_FLAGS },
    network: runnerByNetwork,
  },
  'pip pip3': {
    harmless: `
      -U -q -v -r --upgrade --quiet --verbose --no-cache-dir --no-deps --pre --requirement --user
      --disable-pip-version-check --no-input --break-system-packages --format --outdated`,
    network: PYTHON_PACKAGES,
  },
  uv: {
    runs: {
      after: 'run',
      valued: `
        -p --python --group --extra --only-group --no-group --env-file --directory --project
        --package --with-requirements --with-editable`,
      flags: UV_FLAGS,
    },
    harmless: `
      -q -v --upgrade --quiet --verbose --dev --frozen --locked --no-cache --offline --group
      --extra --all-extras`,
    repository: 'script',
    network: 'sync add lock',
  },
  poetry: {
    runs: {
      after: 'run',
      valued: '-C -P --directory --project',
      flags: '-q -v -n --quiet --verbose --no-interaction --ansi --no-ansi',
    },
    harmless: `
      -q -v -n -D --quiet --verbose --no-interaction --dev --group --with --without --no-root
      --sync --dry-run --all-extras`,
    repository: 'script',
    network: 'install add update lock',
  },
  pipenv: { runs: { after: 'run' } },
  pipx: {
    runs: {
      after: 'run',
      valued: '--spec --python --pip-args --index-url',
      flags: '-q -v --quiet --verbose --no-cache',
    },
    network: 'install run upgrade',
  },
  gem: { network: 'install update push fetch' },
  'bundle bundler': { runs: { after: 'exec' }, network: 'install update add' },
  composer: { network: 'install update require' },
  'apt apt-get': {
    risky: '-o -c --option --config-file',
    harmless: '-y -q --yes --quiet --no-install-recommends --only-upgrade',
    system: SYSTEM_PACKAGES,
  },
  'aptitude apk dnf yum zypper snap': { system: SYSTEM_PACKAGES },
  brew: { harmless: '-q -v --quiet --verbose --cask --formula', system: SYSTEM_PACKAGES },
};

// ---- Compilers, interpreters and builds ----

/** What go does by the network, in words. */
const goByNetwork = (words: Words): string | null => {
  const [command, second] = operandsIn(words.slice(1));
  if (command === 'get') return 'go get';
  if (command === 'mod' && (second === 'download' || second === 'tidy')) return `go mod ${second}`;
  return command === 'install' && second?.includes('@') === true ? 'go install' : null;
};

const JEST_RISKY = `
  -c --config --globalSetup --globalTeardown --setupFilesAfterEnv --runner
  --testRunner --reporters --transform --resolver --rootDir --dir
  --testEnvironment --outputFile --coverageDirectory --cacheDirectory --prettierPath -u --update`;

const BUILDS: Rows = {
  'gcc g++ cc c++ clang clang++': {
    risky: (word) =>
      /^@/.test(word) || matchesOption(word, '-wrapper -specs --specs -fplugin -B -Xclang -load'),
    losses: { makes: '-o --output -MF' },
  },
  'ld as rustc gfortran': { losses: { makes: '-o --output -Map' } },
  esbuild: { losses: { makes: '--outfile' } },
  'make gmake': {
    risky: (word) =>
      /^[^-].*=/s.test(word) ||
      matchesOption(word, '-f -C -I -E --file --makefile --directory --eval --include-dir'),
    harmless:
      '-j -k -s -B -n -i --jobs --keep-going --silent --always-make --dry-run --no-print-directory',
    repository: 'targets',
  },
  'doit inv invoke mage rake task': { repository: 'targets' },
  just: {
    risky: `
      --shell-arg --justfile -f --working-directory -d --set --command -c --chooser
      --edit -e`,
    repository: 'targets',
  },
  gradle: {
    risky: `
      -I --init-script -b --build-file -c --settings-file -p --project-dir -D -P -g
      --gradle-user-home --include-build`,
  },
  ninja: { risky: '-f -C -t' },
  cargo: {
    risky: '--config --manifest-path -C -Z --target-dir',
    harmless: `
      -q -v -p -r -F --release --all --workspace --features --all-features --no-default-features
      --all-targets --locked --offline --frozen --quiet --verbose --package --bin --lib --tests
      --examples --benches --example --test --no-run --jobs -j`,
    network: 'fetch add install update publish search',
  },
  go: {
    risky: (word) =>
      isWholeOption(
        word,
        `
        -exec -toolexec -overlay -modfile -o -C -vettool -ldflags -gcflags -asmflags -compiler
        -pkgdir -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir
        -gccgoflags`,
      ),
    harmless: `
      -v -u -t -x -n -race -short -count -run -bench -benchmem -timeout -cover -json -failfast
      -parallel -tags -mod -d`,
    losses: {
      makes: `
        -o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace`,
    },
    network: goByNetwork,
  },
  gofmt: { risky: '-w -cpuprofile' },
  node: {
    risky: `
      -e -p -r --eval --print --require --import --loader --experimental-loader --env-file --run
      --build-snapshot --openssl-config`,
    repository: 'script',
  },
  'tsx ts-node php': { repository: 'script' },
  python: {
    alsoNamed: /^python[\d.]*$/,
    repository: 'script',
    network: ([, option, module, command]) =>
      option === '-m' && module === 'pip' && listWords(PYTHON_PACKAGES).includes(command ?? '')
        ? `pip ${command}`
        : null,
  },
  deno: {
    risky: (word) =>
      /^(eval|run|repl|task|install|compile|serve)$/.test(word) ||
      matchesOption(
        word,
        '-A -W -c --allow-all --allow-run --allow-write --allow-ffi --config --import-map',
      ),
    repository: 'task',
  },
  tsc: {
    // `--outDir` and `-outdir` are the same
    risky: (word) =>
      isWholeOption(
        word.toLowerCase(),
        `
        -outdir -outfile -p -project -build -b -tsbuildinfofile -declarationdir -generatetrace`,
      ),
    harmless: '--noEmit --pretty --strict --listFiles --version',
  },
  gdb: { risky: '-x -e' },
};

const CHECKS: Rows = {
  eslint: {
    risky: `
      -c -o --config --fix --rulesdir --plugin --parser --resolve-plugins-relative-to --output-file
      --init --format -f`,
    harmless: '--quiet --max-warnings --ext --no-color --color',
  },
  prettier: {
    risky: '-w --write --config --plugin-search-dir',
    harmless: '--check -c -l --list-different',
  },
  ruff: { harmless: '-q -v --quiet --verbose --select --ignore' },
  mypy: {
    risky: `
      --python-executable --config-file --cache-dir --custom-typeshed-dir --junit-xml
      --install-types`,
    harmless: '-p -m --strict --pretty --no-color-output --show-error-codes --package --module',
  },
  pytest: {
    risky: `
      -p -c -o --rootdir --confcutdir --override-ini --basetemp --junitxml --junit-xml`,
    harmless: `
      -q -v -x -s -k -m -l --quiet --verbose --exitfirst --lf --ff --tb --maxfail --durations
      --no-header --collect-only`,
  },
  'jest vitest': { risky: JEST_RISKY },
  mocha: { risky: '-r --require --config --opts --ui --reporter -R -u --import --loader' },
};

// ---- Programs that run git ----

const GIT_RUNNERS: Rows = {
  [`
      auto-changelog bump-my-version bump2version bumpversion changeset cz czg cog gitui hub husky
      jj lazygit lefthook lerna lint-staged pre-commit release-it semantic-release standard-version
      tbump tig commit-and-tag-version`]: {
    alsoNamed: /^git-/,
    repository: 'runsGit',
  },
  gh: {
    harmless: `
      -L -R -s -l -t -b -B -H -q -a --limit --repo --state --label --title --body --base --head
      --json --jq --author --assignee --draft --fill --comments --name-only --log --log-failed
      --search`,
    repository: 'runsGit',
    messages: /^(?:-t|-b|-n|-m|--title|--body|--notes|--message|--description|--subject)$/,
  },
  glab: { repository: 'runsGit', messages: /^(?:-t|-d|-m|--title|--description|--message)$/ },
  hg: {
    risky: `
      --config --cwd -R --repository --tool -t --ssh -e --remotecmd --output -o`,
  },
};

export const DEVELOPMENT_PROGRAMS = [PACKAGE_MANAGERS, BUILDS, CHECKS, GIT_RUNNERS];
