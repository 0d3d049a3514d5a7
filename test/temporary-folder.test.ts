import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { atEnd, temporaryFolder } from './temporary-folder.js';

/** Hooks of a test that ends when `end` is called: the first given first, as node:test runs them. */
const scope = () => {
  const hooks: (() => Promise<void>)[] = [];
  return {
    after: (hook: () => Promise<void>) => void hooks.push(hook),
    end: async () => {
      for (const hook of hooks) await hook();
    },
  };
};

describe('temporary folders', () => {
  it('processes of a folder end before the folder is removed', async () => {
    const test = scope();
    const seen: string[] = [];
    const folder = temporaryFolder(test, 'order');
    atEnd(test, () => seen.push(`first: ${existsSync(folder)}`));
    atEnd(test, () => seen.push(`second: ${existsSync(folder)}`));
    await test.end();
    assert.deepEqual([seen, existsSync(folder)], [['second: true', 'first: true'], false]);
  });

  it('a folder is removed also where an end before it fails, and the failure is told', async () => {
    const test = scope();
    const folder = temporaryFolder(test, 'failing');
    atEnd(test, () => Promise.reject(new Error('it does not end')));
    await assert.rejects(test.end(), /it does not end/);
    assert.equal(existsSync(folder), false);
  });
});
