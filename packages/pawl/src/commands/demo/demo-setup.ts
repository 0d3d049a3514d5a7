import { cpSync, existsSync, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { probeSandbox } from '@pawl/agent/command/sandbox/session/session-sandbox';
import { ownPrograms } from '@pawl/agent/platform/programs/find-program';
import { askProgramSync } from '@pawl/agent/platform/programs/start-program';
import { type Look, paint } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../../exit-codes.js';
import { packageFolder } from '../../package-folder.js';
import { consult } from '../../settings/apply-config.js';

/** The project of `pawl demo`, and what both demos do with it. */

export const say = (text: Safe): void => writeOut(safe`${text}\n`);

export const git = (folder: string, words: readonly string[]): string => {
  const stop = (why: string): Stop => new Stop(exitCodes.unavailable, 'unavailable', why);
  const programs = ownPrograms();
  const program = programs.find('git');
  const options = { environment: process.env, searchPath: programs.folders, folder };
  const ran = program === null ? null : askProgramSync(program, words, options);
  if (ran === null) throw stop('The demo needs git, which was not found. Install it.');
  if (ran.code !== 0) throw stop(`git ${words[0]} failed: ${ran.errors.trim()}`);
  return ran.output;
};

/** A fresh copy of the sample project in a repository with one commit. The user's git signing and hooks don't apply. */
export const prepareProject = (): string => {
  // The commands of the demo call `node`. If PATH has none, they get the one that runs Pawl.
  process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${dirname(process.execPath)}`;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-demo-')));
  cpSync(join(packageFolder(), 'demo', 'project'), folder, { recursive: true });
  git(folder, ['-c', 'init.defaultBranch=main', 'init', '--quiet', '--template=']);
  git(folder, ['config', 'commit.gpgsign', 'false']);
  git(folder, ['config', 'core.hooksPath', '.git/hooks']);
  git(folder, ['add', '--all']);
  const author = ['-c', 'user.name=Ann', '-c', 'user.email=ann@localhost'];
  git(folder, [...author, 'commit', '--quiet', '--message', 'Split a bill between friends']);
  return folder;
};

/** The model's name for a script in the folder `demo`. */
export const scriptedModelOf = (script: string): string =>
  `scripted/${join(packageFolder(), 'demo', script)}`;

/** The command that starts this program again: in a clone, and under npx, `pawl` is not on the PATH. */
export const ownCommand = (): string => {
  const folder = packageFolder();
  if (existsSync(join(folder, 'src'))) return `node ${relative(process.cwd(), join(folder, 'bin/pawl.js'))}`;
  return process.env.npm_command === 'exec' ? 'npx pawl' : 'pawl';
};

/** The sandbox level of the demo. Where none works it runs without: its commands are harmless, and the user is told. */
export const chooseSandbox = async (
  folder: string,
): Promise<{ readonly sandbox: 'workspace' | 'off'; readonly why: string }> => {
  const { resolved } = await consult(folder, process.env, {});
  if (resolved.find(({ setting }) => setting.key === 'sandbox')?.value === 'off')
    return { sandbox: 'off', why: 'Its commands run without a sandbox, because your settings turn it off.' };
  const probe = await probeSandbox(process.env, folder, 'kept');
  return probe.kind === 'works'
    ? {
        sandbox: 'workspace',
        why: 'Its commands run in a sandbox: they can write only in this folder and have no network.',
      }
    : {
        sandbox: 'off',
        why: `Its commands run without a sandbox: ${probe.reason} pawl doctor explains the repair.`,
      };
};

/** Facts at the end of a demo, each with a bold title. */
export const sayFacts = (look: Look, folder: string, facts: readonly (readonly [Safe, Safe])[]): void => {
  say(safe``);
  for (const [title, fact] of facts) say(safe`${paint(look, 'bold', title.padEnd(9))} ${fact}`);
  say(paint(look, 'dim', safe`To remove the project: rm -rf ${makeSafe(folder)}`));
};
