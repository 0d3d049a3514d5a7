import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { makeServed, root } from './pawl.js';

/** Repositories that the agent works in, with this project's Prettier. */

export const GOOD = 'export const a = { b: 1 };\n';

export type Repository = Awaited<ReturnType<typeof makeServed>> & {
  /** Runs git as the user does. */
  git(...words: readonly string[]): string;
  write(name: string, text: string): void;
};

/** As npm installs it: a link out of the workspace would lead nowhere in the sandbox. */
const installPrettier = (workspace: string): void => {
  const modules = join(workspace, 'node_modules');
  cpSync(join(root, 'node_modules', 'prettier'), join(modules, 'prettier'), { recursive: true });
  mkdirSync(join(modules, '.bin'));
  symlinkSync('../prettier/bin/prettier.cjs', join(modules, '.bin', 'prettier'));
};

/** One commit: Prettier's settings, `a.ts`, and `mine.ts`, which is the user's. */
export const makeRepository = async (
  context: TestContext,
  replies: Parameters<typeof makeServed>[1],
  more: NodeJS.ProcessEnv = {},
): Promise<Repository> => {
  const place = await makeServed(context, replies, more);
  const { workspace } = place;
  const author = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.org' };
  const committer = { GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.org' };
  const env = { PATH: process.env.PATH, HOME: place.home, ...author, ...committer };
  const git = (...words: readonly string[]): string =>
    execFileSync('git', words, { cwd: workspace, env, encoding: 'utf8' });
  const write = (name: string, text: string): void => writeFileSync(join(workspace, name), text);
  write('.gitignore', 'node_modules\n');
  write('.prettierrc', '{}\n');
  write('a.ts', GOOD);
  write('mine.ts', 'export const mine = 1;\n');
  installPrettier(workspace);
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-qm', 'first');
  return { ...place, git, write };
};

/** A program of that name at the head of the PATH. It is a script of bash. */
export const shadow = (place: Repository, name: string, script: string): NodeJS.ProcessEnv => {
  const programs = join(place.folder, 'programs');
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, name), `#!/bin/bash\n${script}\n`);
  chmodSync(join(programs, name), 0o755);
  return { ...place.environment, PATH: `${programs}:${process.env.PATH}` };
};
