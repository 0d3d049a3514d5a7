import { execFile } from 'node:child_process';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleProgram } from '../../../../test/bundled-program.js';
import type { HookEffect } from '../../src/machine/event.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { commitTouched } from '../../src/workspace/auto-commit.js';
import { makeSession, type Place } from './place.js';

/** A commit of `a` (changed) and `new` (added) by a process of its own, which is killed in the middle of it. */

/** `prepared`: the intent is durable, no lock is taken. `locked`: git holds its locks too. `moved`: the branch moved. */
export type Moment = 'prepared' | 'locked' | 'moved' | 'never';
type CommitEffect = Extract<HookEffect, { readonly kind: 'commit' }>;

const program = await bundleProgram(
  { after },
  {
    file: fileURLToPath(new URL('commit-and-die.ts', import.meta.url)),
  },
);

/** Runs it and kills it; the effect that its journal would hold. */
export const interruptCommit = async (place: Place, moment: Moment): Promise<CommitEffect> => {
  await place.write('a', 'of the agent\n');
  await place.write('new', 'of the agent\n');
  const words = [program, place.workspace, moment];
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
  const checked = {
    commits: [],
    changedFiles: changed,
    dirty: true,
    note: '',
    warning: '',
    proceed: true,
  };
  return commitTouched(
    session.watch,
    { ...context, reports: [checked], interrupted: effect === null ? [] : [effect] },
    [],
  );
};
