import { rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import { hasEnded } from '../../platform/programs/process-identity.js';
import { type CommitClaim, type CommitIntent, listClaims } from '../git/commit-claim.js';
import type { Repository } from '../git/git.js';
import { applyCommit, applyIndex, commitOf, currentRef, type IndexChange, refLocks } from './apply-commit.js';
import { shortHash } from './head-movement.js';
import { underWay } from './make-commit.js';

/**
 * Settles a commit whose program was killed, by looking at the repository.
 *
 * 1. Locks are removed only if they are provably ours: a second hard link is in the claim, or the lock of the branch
 *    holds our commit. A git process of ours that still runs is waited for.
 * 2. If the branch has the commit, only the index is completed. If the branch is as it was, the commit is finished or
 *    given up. If the branch is elsewhere, nothing changes.
 */

export type SettledCommit =
  | { readonly kind: 'made'; readonly warning: string }
  | { readonly kind: 'notMade'; readonly why: string };

const WAIT_MS = 10_000;
const STEP_MS = 20;
const LOCK_BYTES_MAX = 256;

/** Whether the git process that moves the branch has ended. */
const moverEnded = async (claim: CommitClaim): Promise<boolean> => {
  const mover = claim.mover();
  for (let waitedMs = 0; mover !== null && !hasEnded(mover); waitedMs += STEP_MS) {
    if (waitedMs >= WAIT_MS) return false;
    await delay(STEP_MS);
  }
  return true;
};

/** Rule 1. */
const releaseLocks = (repository: Repository, claim: CommitClaim, { ref, commit }: CommitIntent): void => {
  for (const lock of [`${repository.indexFile}.lock`, ...refLocks(repository, ref)]) {
    claim.release(lock);
    const isBranch = lock.endsWith(`${ref}.lock`);
    if (isBranch && readTextOrEmptySync(lock, LOCK_BYTES_MAX).trim() === commit) rmSync(lock);
  }
};

const RECORD = /^:\d+ (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*$/;
const NO_OBJECT = /^0+$/;

/** What a commit changes in an index that is as its parent. */
const changesOf = async (
  repository: Repository,
  { before, commit }: CommitIntent,
): Promise<readonly IndexChange[]> => {
  const from = before ?? (await repository.ask(['mktree', '-z'], { input: '' })).trim();
  const output = await repository.ask(['diff-tree', '-r', '-z', '--raw', '--no-renames', from, commit]);
  const fields = output.split('\0');
  const changes: IndexChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode, old, now] = RECORD.exec(fields[at] ?? '') ?? [];
    const name = fields[at + 1];
    if (mode === undefined || old === undefined || now === undefined || name === undefined) continue;
    const entry = NO_OBJECT.test(now) ? `0 ${now} 0\t${name}` : `${mode} ${now} 0\t${name}`;
    changes.push({ name, entry, staged: NO_OBJECT.test(old) ? null : old });
  }
  return changes;
};

const isAncestor = async (repository: Repository, commit: string, tip: string): Promise<boolean> =>
  (await repository.run(['merge-base', '--is-ancestor', commit, tip])).code === 0;

const completeIndex = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
): Promise<SettledCommit> => {
  const made = (warning: string): SettledCommit => ({ kind: 'made', warning });
  // the index belongs to another branch now
  if ((await currentRef(repository)) !== intent.ref) return made('');
  const changes = await changesOf(repository, intent);
  claim.remove();
  const outcome = await applyIndex(repository, { intent, claim, changes });
  if (outcome.kind === 'committed') return made('');
  const what = `the commit ${shortHash(intent.commit)} is made, but the index could not be updated`;
  return made(`${what}: ${outcome.why}. Then run: git reset -q`);
};

const finish = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
): Promise<SettledCommit> => {
  const unmerged = (await repository.ask(['ls-files', '--unmerged', '-z'])) !== '';
  const why = unmerged ? 'files are not merged yet' : await underWay(repository);
  if (why !== null) return { kind: 'notMade', why };
  const changes = await changesOf(repository, intent);
  claim.remove();
  const outcome = await applyCommit(repository, { intent, claim, changes, why: 'commit (pawl), resumed' });
  return outcome.kind === 'committed' ? { kind: 'made', warning: '' } : { kind: 'notMade', why: outcome.why };
};

/** Rule 2. */
const decide = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  unmade: 'finish' | 'giveUp',
): Promise<SettledCommit> => {
  const { ref, before, commit } = intent;
  if ((await repository.run(['cat-file', '-e', `${commit}^{commit}`])).code !== 0)
    return { kind: 'notMade', why: 'the repository does not have the commit, so it is another one' };
  const tip = await commitOf(repository, ref);
  if (tip === commit) return completeIndex(repository, claim, intent);
  if (tip === before) {
    const interrupted = 'the session was interrupted before the branch moved';
    return unmade === 'finish' ? finish(repository, claim, intent) : { kind: 'notMade', why: interrupted };
  }
  if (tip !== null && (await isAncestor(repository, commit, tip))) return { kind: 'made', warning: '' };
  return { kind: 'notMade', why: 'the branch has been moved since' };
};

/** Settles an interrupted commit. `unmade`: what happens with a commit that the branch does not have yet. */
export const settleCommit = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  unmade: 'finish' | 'giveUp',
): Promise<SettledCommit> => {
  if (!(await moverEnded(claim)))
    return { kind: 'notMade', why: `git (process ${claim.mover()?.pid}) still moves the branch: end it` };
  releaseLocks(repository, claim, intent);
  try {
    return await decide(repository, claim, intent, unmade);
  } finally {
    claim.remove();
  }
};

/**
 * Settles the interrupted commits of sessions whose processes are dead. Returns a sentence for each; commits that are
 * being made now are left alone.
 */
export const settleAbandoned = async (repository: Repository): Promise<readonly string[]> => {
  const told: string[] = [];
  for (const claim of listClaims(repository.gitFolder)) {
    const record = claim.read();
    if (record === null || !hasEnded(record.owner)) continue;
    const { commit } = record.intent;
    const settled = await settleCommit(repository, claim, record.intent, 'giveUp');
    const what = `An automatic commit (${shortHash(commit)}) was interrupted by a crash`;
    told.push(
      settled.kind === 'made'
        ? `${what}. It is made${settled.warning === '' ? '' : `: ${settled.warning}`}.`
        : `${what} and was not made: ${settled.why}. Its files are uncommitted.`,
    );
  }
  return told;
};
