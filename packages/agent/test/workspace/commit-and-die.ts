import { useRepository } from '../../src/workspace/git.js';
import { commitTree, prepareTree, takeCommitSnapshot } from '../../src/workspace/make-commit.js';

/**
 * A process of its own, to be killed: commits `a` and `new` and prints the effect that a journal would hold.
 * It exits on SIGTERM.
 *
 * WORKSPACE [prepared]    kills itself when the intent is durable
 */
const [workspace = '', moment = ''] = process.argv.slice(2);

process.once('SIGTERM', () => process.exit());

const place = { workspace, environment: process.env, signal: new AbortController().signal };
await useRepository(place, async (repository) => {
  const snapshot = await takeCommitSnapshot(repository);
  const prepared = await prepareTree(repository, snapshot, ['a', 'new']);
  if (prepared.kind !== 'prepared') throw new Error(`nothing to commit: ${prepared.kind}`);
  await commitTree(repository, prepared, 'feat: cut off', async (effect) => {
    process.stdout.write(JSON.stringify(effect));
    if (moment === 'prepared') process.kill(process.pid, 'SIGKILL');
  });
});
