import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { hostSockets, privatePlaces, viewHome } from '../../src/command/sandbox/host.js';

test('a large folder does not keep a private one beside it from being found', (t) => {
  const top = temporaryFolder(t, 'host');
  mkdirSync(path.join(top, 'conda'));
  for (let at = 0; at < 30; at++) writeFileSync(path.join(top, 'conda', String(at)), '');
  const secrets = path.join(top, 'secrets');
  mkdirSync(secrets);
  chmodSync(secrets, 0o700);
  assert.deepEqual(privatePlaces(top, 10), [secrets]);
});

test('of a linked secret the target is masked, as far as commands see it', (t) => {
  const home = realpathSync(temporaryFolder(t, 'host'));
  const at = (name: string): string => path.join(home, name);
  for (const name of ['.conda', 'miniconda3', 'dotfiles']) mkdirSync(at(name));
  for (const name of ['dotfiles/condarc', '.conda/own']) writeFileSync(at(name), 'token');
  symlinkSync('../dotfiles/condarc', at('.conda/.condarc'));
  symlinkSync('../.conda/own', at('miniconda3/.condarc'));
  const workspace = at('work');
  const { masked } = viewHome({ environment: {}, home, workspace, hidden: [] });
  assert.deepEqual(masked, [at('.conda/own')]);
});

test('a socket is found by its whole name', async (t) => {
  const name = path.join(temporaryFolder(t, 'host'), 'two  blanks');
  const server = createServer().listen(name);
  t.after(() => server.close());
  await once(server, 'listening');
  assert.ok(hostSockets().paths.includes(name));
});
