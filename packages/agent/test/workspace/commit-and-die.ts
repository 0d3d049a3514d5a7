import { useRepository } from '../../src/workspace/git.js';
import { commitTree, prepareTree } from '../../src/workspace/make-commit.js';
import { takeSnapshot } from '../../src/workspace/repository-snapshot.js';

/**
 * A process of its own, to be killed: commits `a` and `new` and prints the effect that a journal would hold.
 *
 * WORKSPACE MOMENT    kills itself at that moment (interrupted-commit.ts)
 */
const [workspace = '', moment = ''] = process.argv.slice(2);

const dieAt = (now: string): void => {
  if (now === moment) process.kill(process.pid, 'SIGKILL');
};

const place = { workspace, environment: process.env, signal: new AbortController().signal };
await useRepository(place, async (repository) => {
  const moveRef: typeof repository.moveRef = async (move, watcher) => {
    const locked = (): void => {
      watcher.locked();
      dieAt('locked');
    };
    const outcome = await repository.moveRef(move, { ...watcher, locked });
    dieAt('moved');
    return outcome;
  };
  const prepared = await prepareTree(repository, await takeSnapshot(repository), ['a', 'new']);
  if (prepared.kind !== 'prepared') throw new Error(`nothing to commit: ${prepared.kind}`);
  await commitTree({ ...repository, moveRef }, prepared, 'feat: cut off', async (effect) => {
    process.stdout.write(JSON.stringify(effect));
    dieAt('prepared');
  });
});
