import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { tree } from '../../../../test/kit/workspace-tree.js';
import { chooseRows } from '../../../../test/tier.js';
import type { HookReport } from '../../src/ports/hooks.js';
import { COMMITTED, rows } from './auto-commit-cases.js';
import { rowsOfTurns } from './auto-commit-turns.js';
import { makeRepository, makeSession, type Place, rest } from './place.js';

/** What must stay as it is: the index without the committed files, the files, the configuration. */
const belongings = async (place: Place, without: readonly string[]): Promise<readonly string[]> => {
  const index = (await place.shell('git ls-files --stage -v -z')).split('\0');
  const files = tree(place.workspace);
  const config = await place.read('.git/config');
  const home = await readFile(path.join(place.root, 'home/.gitconfig'), 'utf8').catch(() => 'none');
  const names = new Set(
    without.flatMap((line) => (line.startsWith('R') ? line.split('\t').slice(1) : [line.slice(2)])),
  );
  return [
    ...index.filter((line) => !names.has(line.slice(line.indexOf('\t') + 1))),
    files,
    config,
    home,
  ];
};

/** The last commit, 'none' of a branch without one. */
const headOf = async (place: Place): Promise<string> => {
  const head = await place.read('.git/HEAD');
  const [, ref] = /^ref: (.*)\n/.exec(head) ?? [];
  return ref === undefined ? head : place.read(`.git/${ref}`).catch(() => 'none');
};

/** `git show --name-status -z` as lines. */
const changesOf = async (place: Place): Promise<readonly string[]> => {
  const fields = (await place.shell('git show --format= --name-status -M -z HEAD')).split('\0');
  const changes: string[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    const length = fields[at]?.startsWith('R') ? 3 : 2;
    changes.push(fields.slice(at, at + length).join('\t'));
    at += length;
  }
  return changes;
};

for (const row of chooseRows([...rows, ...rowsOfTurns], ({ kind, title }) => kind ?? title)) {
  test(`auto-commit: ${row.title}`, async (t) => {
    const place = await makeRepository(t);
    await place.shell(`git config core.quotePath false; ${row.given ?? ''}`);
    const session = makeSession(place);
    let report: HookReport | undefined;
    let before: readonly string[] = [];
    let head = '';
    for (const step of row.when) {
      head = await headOf(place);
      if (typeof step === 'string') {
        await place.shell(step);
        await rest();
      } else {
        const calls = await session.batch(step);
        if (calls.length === 0) continue; // the turn was cancelled: no phase follows
        const context = session.context(calls, { write: async () => 'feat: something' });
        report = await session.commit(context, async () => {
          head = await headOf(place);
          before = await belongings(place, row.committed ?? []);
        });
      }
    }
    if (row.committed === undefined) assert.equal(await headOf(place), head);
    else assert.deepEqual(await changesOf(place), row.committed);
    assert.deepEqual(report?.commits.length, row.committed === undefined ? 0 : 1);
    const status = (await place.shell('git status --porcelain')).split('\n').filter(Boolean);
    assert.deepEqual(status, row.status ?? []);
    assert.deepEqual(await belongings(place, row.committed ?? []), before);
    assert.match(
      report?.note ?? '',
      row.committed === undefined ? /^(\[auto-commit\] Not.*)?$/s : COMMITTED,
    );
    assert.match(report?.note ?? '', row.note ?? /^((?!Not committed).)*$/s);
    assert.match(report?.warning ?? '', row.warning ?? /^$/);
    assert.equal(report?.dirty, row.dirty ?? status.length > 0);
    assert.equal(await place.shell('git fsck --no-dangling'), '');
  });
}
