import { realpathSync } from 'node:fs';
import { findRepository } from '../../command/sandbox/protected/git-folders.js';
import { ProgramFailure } from '../run-program.js';

/**
 * Checks that a working tree's git folder is really its own.
 *
 * A hostile `.git` (a file, a symlink, a folder with `commondir`) may name another repository of the user. Commits
 * would go there, and the model could read its content. Git itself does not check this.
 */

const refused = (why: string): ProgramFailure => new ProgramFailure('refused', `git is not asked: ${why}`);

/** Throws a ProgramFailure if it is not. `shared`: the folder of the objects, according to git. */
export const checkOwnRepository = (workspace: string, shared: string): void => {
  const own = findRepository(workspace);
  if (own.kind === 'refused') throw refused(own.why);
  if (own.kind === 'found' && realpathSync(own.repository.folder) !== realpathSync(shared)) {
    throw refused(`the repository in ${own.repository.top} names another one, ${shared}, as its own`);
  }
};
