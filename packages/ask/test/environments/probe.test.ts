import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { type ContainerLimits, dockerOptions } from '@pawl/agent/command/sandbox/bubblewrap';
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
    title: 'bubblewrap is not there: how it is installed',
    given: null,
    then: /^bubblewrap \(bwrap\) is not installed\. Install it: apt-get install bubblewrap/,
  },
  {
    title: 'bubblewrap is too old: which version is needed',
    given: 'echo "bwrap: Unknown option --size" >&2; exit 1',
    then: /^bubblewrap is too old: bwrap: Unknown option --size\. Install version 0\.8 or newer$/,
  },
  {
    title: 'the system lets nobody make namespaces: what to set',
    given: 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1',
    then: /^bubblewrap may not work here: bwrap: setting up uid map: Permission denied\. Let users make user namespaces: sysctl/,
  },
  {
    title: 'the loopback may not be set up, as in some containers: the same',
    given: 'echo "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted" >&2; exit 1',
    then: /^bubblewrap may not work here: .*In a container/,
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

  it('says that Linux is needed where there is none', async (t) => {
    const { platform } = process;
    t.after(() => Object.defineProperty(process, 'platform', { value: platform }));
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    assert.equal(
      await probeProgramSandbox(await nodeOrder('')),
      'bubblewrap exists for Linux only',
    );
  });
});

const FREE: ContainerLimits = {
  seccomp: '0',
  profile: 'unconfined',
  mounts: '22 1 0:20 / /proc rw - proc proc rw\n23 22 0:21 / /dev rw - tmpfs tmpfs rw',
};
const limits: readonly (readonly [string, Partial<ContainerLimits>, readonly string[]])[] = [
  ['nothing of these', {}, []],
  ['a filter of system calls', { seccomp: '2' }, ['seccomp=unconfined']],
  ['a profile of AppArmor', { profile: 'docker-default (enforce)' }, ['apparmor=unconfined']],
  ['an AppArmor that only complains', { profile: 'docker-default (complain)' }, []],
  [
    'masked parts of /proc',
    { mounts: `${FREE.mounts}\n24 22 0:22 / /proc/kcore ro - tmpfs tmpfs rw` },
    ['systempaths=unconfined'],
  ],
];

describe('the advice for Docker names only what stands in the way', () => {
  for (const [title, limit, options] of limits)
    it(`with ${title}: ${options.join(' ') || 'no option'}`, () =>
      assert.deepEqual(dockerOptions({ ...FREE, ...limit }), options));
});
