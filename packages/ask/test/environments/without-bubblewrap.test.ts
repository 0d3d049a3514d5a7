import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { python } from '../../src/environments/python.js';
import { javascript } from '../../src/environments/sandboxed-node.js';

describe('an environment behind bubblewrap where there is no bubblewrap', () => {
  for (const kind of [javascript, python]) {
    it(`${kind.name} says so, when it is asked and when it is started`, async (t) => {
      const before = process.env.PATH;
      t.after(() => {
        process.env.PATH = before;
      });
      await kind.probe();
      process.env.PATH = '/nowhere';
      assert.match(
        (await kind.probe()) ?? 'it works',
        /not installed\. Install it: apt-get install bubblewrap/,
      );
      await assert.rejects(
        kind.start({ contexts: [], names: [], outputMax: 2_000, memoryMax: 512 * 1024 * 1024 }),
        /not installed/,
      );
    });
  }
});
