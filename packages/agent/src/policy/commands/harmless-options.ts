import type { ParsedCommand } from '../../machine/call.js';
import { programName } from './command-patterns.js';
import { riskyWord } from './risky-options.js';

/**
 * Which further words a rule that allows covers. Inside the sandbox all but those that are known to run programs or
 * write files (risky-options.ts). Where a rule widens what a command may reach, all that do not begin with a dash, and
 * options that are known to be harmless: any other option may run a program or write elsewhere.
 */

type Words = ParsedCommand['words'];

const names = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Programs of which risky-options.ts knows every option that runs something or writes a file. */
const KNOWN_WHOLE = names(`
  ls cat head tail wc grep egrep fgrep rg stat file du df pwd date basename dirname realpath readlink which uname
  whoami id ps pgrep diff cmp comm cut tr nl column sort uniq find fd fdfind sed jq md5sum sha1sum sha256sum cksum od
  hexdump strings tac rev seq sleep true false test printf echo nproc uptime free`);

/** Harmless options by program, or by program and subcommand. `-x` also within a cluster of such letters. */
const HARMLESS: Readonly<Record<string, ReadonlySet<string>>> = {
  'git status': names('-s -b -u -uno -uall --short --branch --porcelain --long --ignored --untracked-files'),
  'git log': names(
    '-n -p -1 --oneline --stat --graph --all --decorate --patch --max-count --since --until --author --grep --name-only --name-status --format --pretty --reverse --no-merges --abbrev-commit --follow --date',
  ),
  'git diff': names(
    '-w -b -U --stat --cached --staged --name-only --name-status --numstat --shortstat --word-diff --color --no-color --unified',
  ),
  'git show': names('-s -p --stat --name-only --name-status --format --pretty --oneline'),
  'git branch': names('-a -r -v -vv --list --all --remotes --show-current --merged --no-merged'),
  'git add': names('-A -u -v --all --update --verbose'),
  'git commit': names(
    '-m -a -s -v -q --message --all --signoff --quiet --verbose --amend --no-edit --allow-empty',
  ),
  'git fetch': names(
    '-p -t -v -q -f --all --prune --tags --no-tags --depth --unshallow --verbose --quiet --force --dry-run --progress',
  ),
  'git pull': names(
    '-r -v -q --rebase --ff-only --no-rebase --tags --prune --autostash --verbose --quiet --depth',
  ),
  'git push': names('-u -v -q -n --set-upstream --tags --follow-tags --dry-run --verbose --quiet --all'),
  'git clone': names(
    '-b -q -v --branch --depth --single-branch --no-single-branch --no-tags --no-checkout --quiet --verbose --progress --bare',
  ),
  'git ls-remote': names('-h -t -q --heads --tags --refs --quiet --symref'),
  npm: names(
    '-D -E -P -O -f --save --save-dev --save-exact --save-optional --save-peer --no-save --legacy-peer-deps --force --no-audit --no-fund --audit --fund --prefer-offline --prefer-online --offline --omit --include --silent --verbose --loglevel --json --long --depth --production --dry-run --package-lock-only --if-present --workspaces',
  ),
  pnpm: names(
    '-D -E -P -O -r --save-dev --save-exact --save-prod --save-optional --frozen-lockfile --no-frozen-lockfile --prefer-offline --offline --prod --dev --silent --recursive --lockfile-only --json',
  ),
  yarn: names(
    '-D -E -P -O --dev --exact --peer --optional --frozen-lockfile --immutable --production --silent --offline --check-cache --json',
  ),
  bun: names('-d -D -E --dev --exact --optional --frozen-lockfile --production --no-save --silent --verbose'),
  pip: names(
    '-U -q -v -r --upgrade --quiet --verbose --no-cache-dir --no-deps --pre --requirement --user --disable-pip-version-check --no-input --break-system-packages --format --outdated',
  ),
  uv: names(
    '-q -v --upgrade --quiet --verbose --dev --frozen --locked --no-cache --offline --group --extra --all-extras',
  ),
  poetry: names(
    '-q -v -n -D --quiet --verbose --no-interaction --dev --group --with --without --no-root --sync --dry-run --all-extras',
  ),
  cargo: names(
    '-q -v -p -r -F --release --all --workspace --features --all-features --no-default-features --all-targets --locked --offline --frozen --quiet --verbose --package --bin --lib --tests --examples --benches --example --test --no-run --jobs -j',
  ),
  go: names(
    '-v -u -t -x -n -race -short -count -run -bench -benchmem -timeout -cover -json -failfast -parallel -tags -mod -d',
  ),
  make: names('-j -k -s -B -n -i --jobs --keep-going --silent --always-make --dry-run --no-print-directory'),
  pytest: names(
    '-q -v -vv -x -s -k -m -l --quiet --verbose --exitfirst --lf --ff --tb --maxfail --durations --no-header --collect-only --co',
  ),
  'docker build': names('-t -q --tag --quiet --no-cache --pull --progress --platform --target'),
  'docker ps': names('-a -q -n -l -s --all --quiet --no-trunc --filter --format --last --latest --size'),
  'docker logs': names('-f -t -n --follow --timestamps --tail --since --until --details'),
  'docker images': names('-a -q --all --quiet --no-trunc --filter --format --digests'),
  'docker compose': names(
    '-d -q --detach --build --no-deps --force-recreate --remove-orphans --wait --quiet-pull --follow --tail --all --quiet',
  ),
  'docker pull': names('-a -q --all-tags --quiet --platform'),
  gh: names(
    '-L -R -s -l -t -b -B -H -q -a --limit --repo --state --label --title --body --base --head --json --jq --author --assignee --draft --fill --comments --name-only --log --log-failed --search',
  ),
  curl: names(
    '-s -S -L -f -I -i -v -H -A -X -m -4 -6 --silent --show-error --location --fail --head --include --verbose --header --user-agent --request --max-time --connect-timeout --retry --compressed --http1.1 --http2',
  ),
  wget: names('-q -nv -c -S --quiet --no-verbose --continue --spider --timeout --tries --server-response'),
  apt: names('-y -q --yes --quiet --no-install-recommends --only-upgrade'),
  'apt-get': names('-y -q --yes --quiet --no-install-recommends --only-upgrade'),
  brew: names('-q -v --quiet --verbose --cask --formula'),
  kubectl: names(
    '-n -A -o -l -w -f --namespace --all-namespaces --output --selector --watch --context --tail --since --follow --previous',
  ),
  tsc: names('--noEmit --pretty --strict --listFiles --version'),
  eslint: names('--quiet --max-warnings --ext --no-color --color'),
  prettier: names('--check -c -l --list-different'),
  ruff: names('-q -v --quiet --verbose --select --ignore'),
  mypy: names('-p -m --strict --pretty --no-color-output --show-error-codes --package --module'),
};
const SAME: Readonly<Record<string, string>> = {
  pip3: 'pip',
  python3: 'python',
  'docker-compose': 'docker compose',
};

const setFor = (words: Words): ReadonlySet<string> | undefined => {
  const plain = programName(words[0] ?? '');
  const name = Object.hasOwn(SAME, plain) ? (SAME[plain] ?? plain) : plain;
  const both = `${name} ${words[1] ?? ''}`;
  if (Object.hasOwn(HARMLESS, both)) return HARMLESS[both];
  return Object.hasOwn(HARMLESS, name) ? HARMLESS[name] : undefined;
};

const isCluster = (word: string, harmless: ReadonlySet<string>): boolean =>
  /^-[a-zA-Z]{2,}$/.test(word) && [...word.slice(1)].every((letter) => harmless.has(`-${letter}`));

const isHarmless = (word: string, harmless: ReadonlySet<string>): boolean =>
  harmless.has(word) ||
  harmless.has(word.split('=')[0] ?? word) ||
  (/^-[a-zA-Z]\d+$/.test(word) && harmless.has(word.slice(0, 2))) ||
  isCluster(word, harmless);

/** The first option that is not known to be harmless and that the rule does not name; null if there is none. */
const unknownOption = (words: Words, rule: readonly string[]): string | null => {
  if (KNOWN_WHOLE.has(programName(words[0] ?? ''))) return null;
  const harmless = setFor(words) ?? new Set();
  const option = words
    .slice(rule.length)
    .find(
      (word) => word !== null && /^[-+]./.test(word) && !rule.includes(word) && !isHarmless(word, harmless),
    );
  return option ?? null;
};

/** The first word that a rule with these words does not cover; null if it covers all. */
export const uncoveredWord = (
  words: Words,
  rule: readonly string[],
  reach: 'fenced' | 'widened',
): string | null =>
  riskyWord(words, rule.length) ?? (reach === 'widened' ? unknownOption(words, rule) : null);
