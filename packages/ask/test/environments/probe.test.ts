import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { probeProgramSandbox } from '../../src/environments/run-program.js';
import { nodeOrder } from './sandboxed.js';

/** Whether a program runs behind bubblewrap here; each row has a bwrap of its own on the PATH. */

type Row = {
  readonly title: string;
  /** A script that stands for bwrap; null: there is none. */
  readonly given: string | null;
  readonly then: RegExp;
};

const rows: readonly Row[] = [
  {
    title: 'bubblewrap is not there',
    given: null,
    then: /bubblewrap \(bwrap\) is not installed\. pawl doctor says what to do; --environment quickjs/,
  },
  {
    title: 'bubblewrap is too old',
    given: 'echo "bwrap: Unknown option --size" >&2; exit 1',
    then: /bubblewrap is too old: bwrap: Unknown option --size\. pawl doctor/,
  },
  {
    title: 'the system lets nobody make namespaces',
    given: 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1',
    then: /bubblewrap may not make namespaces: bwrap: setting up uid map: Permission denied\. pawl/,
  },
  {
    title: 'the loopback may not be set up, as in some containers: the same',
    given: 'echo "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted" >&2; exit 1',
    then: /bubblewrap may not make namespaces: bwrap: loopback/,
  },
  {
    title: 'the program does not start there: what it said',
    given: 'echo "error while loading shared libraries: libodd.so" >&2; exit 126',
    then: /does not start behind bubblewrap: error while loading shared libraries: libodd\.so\. Try another/,
  },
  {
    title: 'it ends without a word: how it ended',
    given: 'kill -9 $$',
    then: /does not start behind bubblewrap: it ended with SIGKILL/,
  },
];

const withPath = async (script: string | null, look: () => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-bwrap-'));
  const before = process.env.PATH;
  try {
    if (script !== null) {
      const file = path.join(folder, 'bwrap');
      writeFileSync(file, `#!/bin/sh\n${script}\n`);
      chmodSync(file, 0o755);
    }
    process.env.PATH = folder;
    await look();
  } finally {
    process.env.PATH = before;
    removeFolderSync(folder);
  }
};

describe('the probe of the sandbox', () => {
  it('says nothing where the program runs', async () => {
    assert.equal(await probeProgramSandbox(await nodeOrder('')), null);
  });

  for (const { title, given, then } of rows) {
    it(title, async () => {
      const order = await nodeOrder('');
      await withPath(given, async () =>
        assert.match((await probeProgramSandbox(order)) ?? 'it works', then),
      );
    });
  }

  it('refuses a machine for which there is no filter: a program could start others', async (t) => {
    const { arch } = process;
    t.after(() => Object.defineProperty(process, 'arch', { value: arch }));
    Object.defineProperty(process, 'arch', { value: 'mips' });
    assert.match(
      (await probeProgramSandbox(await nodeOrder(''))) ?? 'it works',
      /^Pawl has no filter of system calls for mips\. .*quickjs/,
    );
  });

  it('names no program of Linux on another system', async (t) => {
    const { platform } = process;
    t.after(() => Object.defineProperty(process, 'platform', { value: platform }));
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    assert.equal(
      await probeProgramSandbox(await nodeOrder('')),
      'This is macOS, where Pawl has no sandbox for this. pawl doctor says what to do; ' +
        '--environment quickjs needs no sandbox of the system',
    );
  });
});
