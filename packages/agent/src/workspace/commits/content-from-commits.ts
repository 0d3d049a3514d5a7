import path from 'node:path';
import { isWithin } from '../../platform/files/is-within.js';
import type { HookContext } from '../../ports/after-tool-hooks.js';
import { ABSENT, hashOf } from '../../tools/files/file-text.js';
import type { ContentBefore } from '../formatters/content-before-calls.js';
import { type GitPlace, type Repository, useRepository } from '../git/git.js';
import type { WorktreeSnapshot } from '../worktree-snapshot.js';

/** Reads the earlier content of files from commits. Rejects if git fails. */

const UNKNOWN: ContentBefore = { kind: 'unknown' };
/** A regular file in a tree, with its object. */
const FILE = /^100(?:644|755) blob ([0-9a-f]+)\t/;

const read = async (repository: Repository, commit: string, file: string): Promise<ContentBefore> => {
  if (!isWithin(file, repository.top)) return UNKNOWN;
  const entry = await repository.ask(['ls-tree', '-z', commit, '--', path.relative(repository.top, file)]);
  if (entry === '') return { kind: 'absent' };
  const object = FILE.exec(entry)?.[1];
  if (object === undefined) return UNKNOWN;
  const { code, output } = await repository.run(['cat-file', 'blob', object]);
  return code === 0 ? { kind: 'bytes', bytes: output } : UNKNOWN;
};

const readAt = async (commit: string, file: string, place: GitPlace): Promise<ContentBefore> =>
  (await useRepository(place, (repository) => read(repository, commit, file))) ?? UNKNOWN;

/** The content at the time of a snapshot; known if the file had no uncommitted changes then. */
const contentAt = async (
  snapshot: WorktreeSnapshot,
  file: string,
  place: GitPlace,
): Promise<ContentBefore> => {
  if (snapshot.changed.has(path.relative(snapshot.top, file))) return UNKNOWN;
  return snapshot.head.hash === null ? { kind: 'absent' } : readAt(snapshot.head.hash, file, place);
};

/**
 * The content before the first call that names the file; known if its hash in the journal equals that of the committed
 * content.
 */
const contentRecorded = async (
  { calls, recorded }: HookContext,
  file: string,
  place: GitPlace,
): Promise<ContentBefore> => {
  const first = calls.find(({ facts }) => facts.paths.includes(file));
  const hash = first === undefined ? undefined : recorded.get(first.callId);
  if (hash === undefined) return UNKNOWN;
  if (hash === ABSENT) return { kind: 'absent' };
  const found = await readAt('HEAD', file, place);
  return found.kind === 'bytes' && hashOf(found.bytes) === hash ? found : UNKNOWN;
};

/**
 * The content of a file when the batch began. `began`: the snapshot of that time; null if there is none, as after a
 * crash.
 */
export const committedContent = (
  file: string,
  began: WorktreeSnapshot | null,
  context: HookContext,
  place: GitPlace,
): Promise<ContentBefore> =>
  began === null ? contentRecorded(context, file, place) : contentAt(began, file, place);
