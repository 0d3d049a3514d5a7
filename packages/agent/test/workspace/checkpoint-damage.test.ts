/** Attacks on the store of checkpoints and on restores: damage, and folders with odd names. */

import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { hashBytes } from '../../src/journal/state-folder.js';
import { performPlan } from '../../src/workspace/checkpoints/restore.js';
import { CheckpointStore } from '../../src/workspace/checkpoints/store.js';
import { WorkspaceLister } from '../../src/workspace/checkpoints/workspace-lister.js';
import { KnownRepository } from '../../src/workspace/git.js';

const scratch = (): string => realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-damage-')));

const fileOf = (text: string, mode = 0o644) => ({
  kind: 'file' as const,
  sha256: hashBytes(Buffer.from(text)),
  bytes: Buffer.byteLength(text),
  mode,
});

describe('damage to checkpoints', () => {
  it('writes a damaged object again', async () => {
    const folder = scratch();
    const sha256 = await new CheckpointStore(folder).put(Buffer.from('precious'));
    writeFileSync(path.join(folder, 'objects', sha256.slice(0, 2), sha256.slice(2)), 'torn');
    const store = new CheckpointStore(folder);
    assert.equal(await store.get(sha256), null);
    await store.has(sha256);
    await store.put(Buffer.from('precious'));
    assert.equal((await store.get(sha256))?.toString(), 'precious');
  });

  it('leaves no draft when a file vanishes while its content is read', async () => {
    const [workspace, folder] = [scratch(), scratch()];
    const store = new CheckpointStore(folder);
    await store.put(Buffer.from('old'));
    writeFileSync(path.join(workspace, 'a'), 'new', { mode: 0o644 });
    const get = store.get.bind(store);
    // the file becomes a folder after it was looked at
    store.get = async (sha256) => {
      execFileSync('sh', ['-c', 'rm a && mkdir a'], { cwd: workspace });
      return get(sha256);
    };
    const changes = [{ path: 'a', before: fileOf('new'), after: fileOf('old') }];
    const plan = { version: 1 as const, workspace, changes, left: [] };
    const outcome = await performPlan(store, hashBytes(Buffer.from('plan')), plan);
    assert.equal(outcome.left.length, 1);
    assert.deepEqual(readdirSync(workspace), ['a']);
  });

  it('lists a workspace whose name has characters of patterns', async () => {
    const top = scratch();
    const workspace = path.join(top, 'a[b]');
    mkdirSync(workspace);
    writeFileSync(path.join(workspace, 'own'), 'text');
    mkdirSync(path.join(top, ':x'));
    writeFileSync(path.join(top, ':x', 'own'), 'text');
    execFileSync('git', ['init', '-q'], { cwd: top });
    for (const folder of [workspace, path.join(top, ':x')]) {
      const signal = new AbortController().signal;
      const environment = process.env as never;
      const known = new KnownRepository(environment);
      const lister = new WorkspaceLister({ workspace: folder, environment, signal, known });
      const listing = await lister.list(true);
      assert.deepEqual([[...listing.names], listing.clean === null], [['own'], false]);
    }
  });
});
