import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { HookEffect } from '../../src/agent/event.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { commitTouched } from '../../src/workspace/commits/auto-commit.js';
import { makeSession, type Place } from './place.js';

/** A commit of `a` (changed) and `new` (added) by a process of its own, which is killed in the middle of it. */

/** `prepared`: the intent is durable, no lock is taken. `locked`: git holds its locks too. `moved`: the branch moved. */
export type Moment = 'prepared' | 'locked' | 'moved' | 'never';
type CommitEffect = Extract<HookEffect, { readonly kind: 'commit' }>;

const module = (file: string): string => new URL(`../../src/workspace/${file}`, import.meta.url).href;

const program = (place: Place, moment: Moment): string => `
  import { useRepository } from '${module('git/git.ts')}';
  import { takeSnapshot } from '${module('worktree-snapshot.ts')}';
  import { commitTree, prepareTree } from '${module('commits/make-commit.ts')}';
  const die = (now) => { if (now === '${moment}') process.kill(process.pid, 'SIGKILL'); };
  const signal = new AbortController().signal;
  const place = { workspace: ${JSON.stringify(place.workspace)}, environment: process.env, signal };
  await useRepository(place, async (repository) => {
    const moveRef = async (move, watcher) => {
      const locked = () => { watcher.locked(); die('locked'); };
      const outcome = await repository.moveRef(move, { ...watcher, locked });
      die('moved');
      return outcome;
    };
    const snapshot = await takeSnapshot(repository);
    const prepared = await prepareTree(repository, snapshot, ['a', 'new']);
    await commitTree({ ...repository, moveRef }, prepared, 'feat: cut off', async (effect) => {
      process.stdout.write(JSON.stringify(effect));
      die('prepared');
    });
  });`;

/** Runs it and kills it; the effect that its journal would hold. */
export const interruptCommit = async (place: Place, moment: Moment): Promise<CommitEffect> => {
  await place.write('a', 'of the agent\n');
  await place.write('new', 'of the agent\n');
  const words = ['--import', 'tsx', '--input-type=module', '--eval', program(place, moment)];
  const env = { ...place.environment, TMPDIR: place.root };
  const ran = promisify(execFile)(process.execPath, words, { env });
  const killed = (error: { readonly stdout?: string }) => ({ stdout: error.stdout ?? '' });
  const { stdout } = await (moment === 'never'
    ? ran
    : ran.then(() => Promise.reject(new Error('alive')), killed));
  // the child wrote it
  return JSON.parse(stdout) as CommitEffect;
};

/** The phase of the resumed session. */
export const resumeCommit = (place: Place, effect: CommitEffect | null): Promise<HookReport> => {
  const session = makeSession(place);
  const context = session.context([]);
  const changed = ['a', 'new'].map((name) => place.path(name));
  const checked = { commits: [], changedFiles: changed, dirty: true, note: '', warning: '', proceed: true };
  return commitTouched(
    session.watch,
    { ...context, reports: [checked], interrupted: effect === null ? [] : [effect] },
    [],
  );
};
