/**
 * Chooses the 1,000 everyday commands of packages/agent/test/shell/everyday/commands.json: run
 * once, before the rules of permissions were written, and kept for whoever wants to do it again.
 * Usage: `npm pack` the packages of SOURCES, unpack each into a folder of its own, then `node
 * --import tsx scripts/everyday-commands.ts FOLDER…` prints the file.
 *
 * The collections are instructions for coding agents: what their shell blocks say is what an agent
 * is told to run.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const SOURCES = ['ecc-universal@2.0.0 (MIT)', 'ai-labs-claude-skills@2.0.1 (MIT)'];
const SEED = 20_261_122;
const COUNT = 1000;

/**
 * Programs that a developer's agent runs. The list was written before the collections were read.
 */
const PROGRAMS = `
git gh npm npx pnpm yarn bun node deno tsc tsx eslint prettier biome jest vitest mocha playwright vite webpack esbuild
turbo python python3 pip pip3 pytest uv poetry ruff black flake8 mypy pyright tox coverage bandit pipx make cmake ctest
ninja gcc g++ clang clang-format clang-tidy cc ld gdb valgrind cargo rustc rustfmt go gofmt golangci-lint govulncheck
staticcheck java javac mvn ./mvnw gradle ./gradlew dotnet php composer ruby bundle rspec rubocop rake swift docker
docker-compose kubectl helm terraform grep egrep rg sed awk find fd xargs cut tr sort uniq wc head tail cat tac less tee
nl paste column comm join diff cmp patch ls tree cp mv rm mkdir rmdir touch ln chmod stat file du df pwd cd realpath
basename dirname readlink tar gzip gunzip zip unzip xz md5sum sha256sum base64 xxd od strings openssl curl wget ssh scp
rsync nc ping dig lsof netstat ss echo printf test [ [[ export env which type command date sleep time timeout watch
nohup kill pkill ps id whoami uname hostname jq yq sqlite3 psql mysql redis-cli bash sh source . set for while if`;

/**
 * Other people's translations repeat the same commands; these documents carry a licence of their
 * own.
 */
const LEFT_OUT = /\/docs\/[a-z]{2}-[A-Za-z]{2}\/|\/docs\/(?:tr|ru|es|fr)\/|\/document-skills\//;

/**
 * `<name>` in a document stands for what a reader fills in. A redirect has a blank or a file after
 * it, and no `>`.
 */
const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  [/<[^<>\n]*(?:url|link|endpoint)[^<>\n]*>/gi, 'https://example.com/page'],
  [/<[^<>\n]*(?:number|line|count|id|port|pid)[^<>\n]*>/gi, '42'],
  [/<[^<>\n]*(?:folder|dir|path)[^<>\n]*>/gi, 'src'],
  [/<[^<>\n]*(?:file|script)[^<>\n]*>/gi, 'src/main.ts'],
  [/<[a-z][a-z0-9 _.|-]*>/gi, 'example'],
];

const markdownFiles = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => path.join(folder, file))
    .filter((file) => file.endsWith('.md') && !LEFT_OUT.test(file))
    .sort();

const shellBlocks = (text: string): readonly (readonly string[])[] =>
  [...text.matchAll(/^([ \t]*)```(?:bash|sh|shell)[^\n]*\n([\s\S]*?)^[ \t]*```/gm)].map(
    ([, indent = '', block = '']) =>
      block.split('\n').map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line)),
  );

const isComplete = (text: string): boolean => {
  if (text.endsWith('\\')) return false;
  const { status, stderr } = spawnSync('bash', ['-n'], { input: `${text}\n`, encoding: 'utf8' });
  return status === 0 && !stderr.includes('here-document');
};

/** One entry a command: lines are joined until bash has a whole one. */
const commandsOf = (lines: readonly string[]): readonly string[] => {
  const found: string[] = [];
  let pending: string[] = [];
  for (const line of lines) {
    if (pending.length === 0 && /^\s*(?:#|$)/.test(line)) continue;
    pending.push(line);
    if (!isComplete(pending.join('\n'))) continue;
    found.push(pending.join('\n').trim());
    pending = [];
  }
  return found;
};

const filled = (command: string): string =>
  PLACEHOLDERS.reduce(
    (text, [pattern, words]) => text.replace(pattern, words),
    command.replace(/^\$ /, ''),
  );

const programOf = (command: string): string =>
  command.split(/\s+/).find((word) => !/^[A-Za-z_]\w*=/.test(word)) ?? '';

/** The order that the seed gives (mulberry32). */
const shuffled = (all: readonly string[]): readonly string[] => {
  let state = SEED;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return all
    .map((command) => ({ command, key: next() }))
    .sort((one, other) => one.key - other.key)
    .map(({ command }) => command);
};

const main = (folders: readonly string[]): void => {
  const programs = new Set(PROGRAMS.split(/\s+/).filter((word) => word !== ''));
  const commands = folders
    .flatMap(markdownFiles)
    .flatMap((file) => shellBlocks(readFileSync(file, 'utf8')))
    .flatMap(commandsOf)
    .map(filled)
    .filter((command) => programs.has(programOf(command)) && isComplete(command));
  const distinct = [...new Set(commands)].sort();
  console.error(`${distinct.length} commands, ${COUNT} chosen`);
  const chosen = shuffled(distinct).slice(0, COUNT).sort();
  console.log(
    JSON.stringify(
      { sources: SOURCES, seed: SEED, programs: [...programs], commands: chosen },
      null,
      2,
    ),
  );
};

main(process.argv.slice(2));
