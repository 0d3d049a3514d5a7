/**
 * `npm test`: builds, checks, then runs every test; stops at the first step that fails and says which.
 * `--fast` leaves out what starts the whole program (test/e2e, test/pack). Paths of test files run only these.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { missingNeeds } from './needs.js';
import { report } from './reporter.js';

type Step = { readonly title: string; readonly program: string; readonly words: readonly string[] };

const FILE_TIME_MAX_MS = 300_000;
/** As many test files at once: more than cores, since many wait for processes and clocks. */
const AT_ONCE = 3;

const root = fileURLToPath(new URL('..', import.meta.url));
const ownBin = (name: string): string => path.join(root, 'node_modules', '.bin', name);
const script = (file: string): readonly string[] => ['--import', 'tsx', `scripts/${file}`];

const BUILD: Step = { title: 'bundle', program: process.execPath, words: script('bundle.ts') };
const CHECKS: readonly Step[] = [
  { title: 'types', program: ownBin('tsc'), words: ['-p', 'tsconfig.json'] },
  { title: 'declarations', program: ownBin('tsc'), words: ['-p', 'tsconfig.types.json'] },
  { title: 'format and lint', program: ownBin('biome'), words: ['check', '--error-on-warnings', '.'] },
  { title: 'house rules', program: process.execPath, words: script('tidy.ts') },
  { title: 'dead exports', program: ownBin('knip'), words: ['--no-progress', '--no-config-hints'] },
  { title: 'package', program: ownBin('publint'), words: ['run', '--strict', '--pack', 'false'] },
];

/** What would let the machine of whoever runs the tests decide about them: keys, settings, colours. */
const FOREIGN =
  /^(ANTHROPIC|OPENAI|GOOGLE|XDG|GIT)_|^PAWL_(?!SEED$)|^(NO_COLOR|FORCE_COLOR|NODE_OPTIONS|NODE_TEST_CONTEXT|UPDATE)$/;

const cleanEnvironment = (): void => {
  for (const name of Object.keys(process.env)) if (FOREIGN.test(name)) delete process.env[name];
};

const succeeds = ({ title, program, words }: Step): boolean => {
  const startedAtMs = Date.now();
  const { status, error } = spawnSync(program, words, { cwd: root, stdio: 'inherit' });
  const seconds = ((Date.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`${status === 0 ? '✔' : '✖'} ${title}: ${seconds} s`);
  if (error) console.error(error.message);
  if (status !== 0)
    console.error(`npm test stopped at '${title}': ${path.basename(program)} ${words.join(' ')}`);
  return status === 0;
};

/** Units first, then what starts the whole program, last what installs the package. */
const rank = (file: string): number =>
  ['test/e2e/', 'test/pack/'].findIndex((folder) => file.startsWith(folder));

const allTests = (fast: boolean): readonly string[] =>
  readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => `test/${file}`)
    .filter((file) => file.endsWith('.test.ts') && !(fast && rank(file) >= 0))
    .sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1));

const runTests = async (files: readonly string[]): Promise<void> => {
  const events = run({
    files: files.map((file) => path.resolve(root, file)),
    concurrency: AT_ONCE,
    timeout: FILE_TIME_MAX_MS,
  });
  events.on('test:fail', () => {
    process.exitCode = 1;
  });
  for await (const text of report(events)) process.stdout.write(text);
};

const main = async (words: readonly string[]): Promise<void> => {
  const fast = words.includes('--fast');
  const chosen = words.filter((word) => !word.startsWith('--'));
  const faults = [
    ...words
      .filter((word) => word.startsWith('--') && word !== '--fast')
      .map((word) => `unknown flag ${word}`),
    ...chosen.filter((file) => !existsSync(file)).map((file) => `there is no ${file}`),
    ...missingNeeds(),
  ];
  for (const fault of faults) console.error(fault);
  process.exitCode = 1;
  if (faults.length > 0) return;
  cleanEnvironment();
  // A declaration of a file that is gone would go into the package.
  rmSync(path.join(root, 'dist', 'types'), { recursive: true, force: true });
  const steps = chosen.length > 0 ? [BUILD] : [BUILD, ...CHECKS];
  for (const step of steps) if (!succeeds(step)) return;
  process.exitCode = 0;
  await runTests(chosen.length > 0 ? chosen : allTests(fast));
};

await main(process.argv.slice(2));
