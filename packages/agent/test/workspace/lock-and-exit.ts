import { existsSync } from 'node:fs';
import { CommitClaim, newClaimName } from '../../src/workspace/commit-claim.js';
import { useRepository } from '../../src/workspace/git.js';
import { lockIndex } from '../../src/workspace/make-commit.js';

/**
 * A process of its own, which exits while it holds the lock of the index and git runs.
 *
 * WORKSPACE FILE    exits as soon as the file exists
 */
const [workspace = '', file = ''] = process.argv.slice(2);

const place = { workspace, environment: process.env, signal: new AbortController().signal };
await useRepository(place, async (repository) => {
  const claim = new CommitClaim(repository.gitFolder, newClaimName());
  claim.make({ ref: 'HEAD', before: null, commit: '' });
  lockIndex(repository.indexFile, claim);
  if (!existsSync(`${repository.indexFile}.lock`)) process.exit(1);
  setInterval(() => existsSync(file) && process.exit(0), 10);
  await repository.run(['status']);
});
