import { existsSync } from 'node:fs';
import { useRepository } from '../../src/workspace/git.js';

/**
 * A process of its own, which exits while git runs.
 *
 * WORKSPACE FILE    exits as soon as the file exists
 */
const [workspace = '', file = ''] = process.argv.slice(2);

const place = { workspace, environment: process.env, signal: new AbortController().signal };
await useRepository(place, async (repository) => {
  setInterval(() => existsSync(file) && process.exit(0), 10);
  await repository.run(['status']);
});
