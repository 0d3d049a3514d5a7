import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { removeFolderSync } from '../../../../../test/temporary-folder.js';

/**
 * What bash itself makes of a shell text: it runs in a sandbox whose only programs are stand-ins that log their words.
 *
 * 1. Every program that was started is in the answer, with the words that it was given; so is each variable that was
 *    exported to it (`<variable>`), and that files were made or changed (`<file>`).
 * 2. Builtins are seen by what they lead to, not by themselves.
 */

export type Ran = readonly (readonly string[])[];

const HERE = import.meta.dirname;

/** The programs that there are. What is not among them is logged as well, by its name. */
const PROGRAMS = `awk bash cargo cat chmod cp curl dash dd docker echo env evil ex false find flock gcc git grep head kill
less ln ls make man mkdir mv nc nice node nohup npm npx perl printf python3 rg rm rsync sed setsid sh sleep sort ssh
stdbuf sudo tail tar tee test time timeout touch tr true uniq vim watch wc wget xargs zip [`;

const real = (name: string): string => {
  const folder = ['/usr/bin', '/bin'].find((one) => existsSync(path.join(one, name)));
  if (folder === undefined) throw new Error(`${name} is missing`);
  return realpathSync(path.join(folder, name));
};

const place = (texts: readonly string[], exitCode: number): string => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-oracle-'));
  for (const name of ['bin', 'log', 'cases']) mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, 'exit'), `${exitCode}\n`);
  const program = path.join(folder, 'bin', 'evil');
  copyFileSync(path.join(HERE, 'any-program.sh'), program);
  chmodSync(program, 0o755);
  for (const name of PROGRAMS.split(/\s+/))
    if (name !== 'evil') linkSync(program, path.join(folder, 'bin', name));
  for (const [index, text] of texts.entries())
    writeFileSync(path.join(folder, 'cases', String(index).padStart(7, '0')), text);
  return folder;
};

const sandbox = (folder: string): readonly string[] => [
  ...['--unshare-all', '--die-with-parent', '--new-session', '--tmpfs', '/'],
  ...['/lib', '/lib64', '/usr/lib', '/usr/lib64'].flatMap((lib) =>
    existsSync(lib) ? ['--ro-bind', realpathSync(lib), lib] : [],
  ),
  ...['bash', 'sh', 'rm', 'ln', 'mkdir', 'env', 'timeout'].flatMap((name) => [
    '--ro-bind',
    real(name),
    `/real/${name}`,
  ]),
  ...['--ro-bind', path.join(HERE, 'run-all.sh'), '/real/run-all'],
  ...['--ro-bind', path.join(folder, 'exit'), '/real/exit'],
  ...['--ro-bind', path.join(folder, 'bin'), '/bin', '--symlink', '/bin', '/usr/bin'],
  ...[
    '--ro-bind',
    path.join(folder, 'cases'),
    '/cases',
    '--bind',
    path.join(folder, 'log'),
    '/log',
  ],
  ...['--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--tmpfs', '/w', '--clearenv'],
];

/** What each text ran, in the order of the texts. `exitCode`: that of all programs. */
export const runByBash = (texts: readonly string[], exitCode = 0): readonly Ran[] => {
  if (texts.length === 0) return [];
  const folder = place(texts, exitCode);
  try {
    const { status, stderr } = spawnSync(
      'bwrap',
      [...sandbox(folder), '/real/sh', '/real/run-all'],
      {
        encoding: 'utf8',
      },
    );
    const log = path.join(folder, 'log', 'words');
    if (status !== 0 && !existsSync(log)) throw new Error(`the oracle did not run: ${stderr}`);
    const ran: string[][][] = texts.map(() => []);
    let since: string[][] = [];
    let ended = 0;
    for (const line of readFileSync(log, 'utf8').split('\0<.>\0')) {
      const words = line.split('\0');
      if (words[0] !== '<end>') {
        if (line !== '') since.push(words);
        continue;
      }
      ran[Number(words[1])] = since;
      since = [];
      ended++;
    }
    if (ended !== texts.length)
      throw new Error(`the oracle ended after ${ended} of ${texts.length}: ${stderr}`);
    return ran;
  } finally {
    removeFolderSync(folder);
  }
};

const PRINT_WORDS = `f() { printf '%s\\0' "$@" '<end>'; }
while IFS= read -r -d '' text; do eval "$text"; printf '%s\\0' '<text>'; done`;

/**
 * The words that each text passes to the command `f`, each with a NUL behind it. Runs without a
 * sandbox: pass only texts that can run nothing else.
 */
export const wordsByBash = (texts: readonly string[], locale: string): readonly string[] => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-words-')); // no pattern matches in it
  const { stdout } = spawnSync('/bin/bash', ['-c', PRINT_WORDS], {
    input: texts.map((text) => `${text}\0`).join(''),
    env: { LC_ALL: locale, PATH: '' },
    cwd: folder,
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  removeFolderSync(folder);
  return stdout.toString('latin1').split('<text>\0').slice(0, -1);
};
