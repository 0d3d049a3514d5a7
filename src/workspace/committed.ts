import path from 'node:path';
import type { HookContext } from '../needs-hooks.js';
import { ABSENT, hashOf } from '../tools/file-text.js';
import type { Earlier } from './earlier-content.js';
import { type GitPlace, type Repository, useRepository } from './git.js';
import { isWithin } from './locate.js';
import type { Look } from './look.js';

/** What files held earlier, as far as it is committed. Rejects where git fails. */

const UNKNOWN: Earlier = { kind: 'unknown' };
/** A regular file in a tree: its object. */
const FILE = /^100(?:644|755) blob ([0-9a-f]+)\t/;

const read = async (repository: Repository, commit: string, file: string): Promise<Earlier> => {
  if (!isWithin(file, repository.top)) return UNKNOWN;
  const entry = await repository.ask(['ls-tree', '-z', commit, '--', path.relative(repository.top, file)]);
  if (entry === '') return { kind: 'absent' };
  const object = FILE.exec(entry)?.[1];
  if (object === undefined) return UNKNOWN;
  const { code, output } = await repository.run(['cat-file', 'blob', object]);
  return code === 0 ? { kind: 'bytes', bytes: output } : UNKNOWN;
};

const readAt = async (commit: string, file: string, place: GitPlace): Promise<Earlier> =>
  (await useRepository(place, (repository) => read(repository, commit, file))) ?? UNKNOWN;

/** At the time of a look: known of a file that had no uncommitted changes then. */
const contentAt = async (look: Look, file: string, place: GitPlace): Promise<Earlier> => {
  if (look.changed.has(path.relative(look.top, file))) return UNKNOWN;
  return look.head.hash === null ? { kind: 'absent' } : readAt(look.head.hash, file, place);
};

/** Before the first call that names the file, where the journal has its hash: known if that is what is committed. */
const contentRecorded = async (
  { calls, recorded }: HookContext,
  file: string,
  place: GitPlace,
): Promise<Earlier> => {
  const first = calls.find(({ facts }) => facts.paths.includes(file));
  const hash = first === undefined ? undefined : recorded.get(first.callId);
  if (hash === undefined) return UNKNOWN;
  if (hash === ABSENT) return { kind: 'absent' };
  const found = await readAt('HEAD', file, place);
  return found.kind === 'bytes' && hashOf(found.bytes) === hash ? found : UNKNOWN;
};

/** What a file held when the batch began. `began`: the look at that time; null where nobody looked, after a crash. */
export const committedContent = (
  file: string,
  began: Look | null,
  context: HookContext,
  place: GitPlace,
): Promise<Earlier> =>
  began === null ? contentRecorded(context, file, place) : contentAt(began, file, place);
