import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { makeRepository } from './after-tools.js';
import { runInProcess } from './in-process.js';
import { expectCode, expectValid } from './pawl.js';
import { call, done, message, text } from './wire-words.js';

/** What a command wrote that did not end well is the agent's all the same: formatted, committed, told. */

const ROUGH = 'export const a = {b:2}';
const SMOOTH = 'export const a = { b: 2 };\n';

/** How a command ends that has written `new.ts` and changed `a.ts`. */
const endings: readonly (readonly [title: string, ending: string, timeoutMs?: number])[] = [
  ['ended well', 'true'],
  ['failed', 'exit 3'],
  ['ran into its time limit', 'sleep 600', 5_000],
];

for (const [title, ending, timeoutMs] of chooseRows(endings, () => 'files'))
  test(`files of a command that ${title} are formatted and committed as the agent's`, async (context) => {
    const command = `echo '${ROUGH}' | tee a.ts > new.ts; ${ending}`;
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const place = await makeRepository(context, [
      message(call('b', 'bash', { command, ...limit })),
      message(text('feat: new')),
      message(call('s', 'bash', { command: 'echo "// more" >> new.ts' })),
      message(text('feat: more')),
      done,
    ]);
    place.write('mine.ts', 'export const mine = 2; // not ready\n');
    const ended = await runInProcess(place, ['-p', 'go', '--auto-commit']);
    expectCode(ended, 0);
    expectValid(place.server);
    assert.match(ended.stderr, /^· formatted a\.ts\n· formatted new\.ts$/m);
    // Why a commit is missing stands in what was said.
    const commits = place.git('log', '--format=%s').trim();
    assert.equal(commits, 'feat: more\nfeat: new\nfirst', ended.stderr);
    assert.equal(place.git('show', 'HEAD~1:new.ts'), SMOOTH);
    assert.equal(place.git('show', '--format=', '--name-only', 'HEAD~1').trim(), 'a.ts\nnew.ts');
    assert.equal(place.git('status', '--porcelain'), ' M mine.ts\n');
    assert.doesNotMatch(ended.stderr, /Not committed/);
  });

for (const [title, ending, timeoutMs] of chooseRows(endings, () => 'commit'))
  test(`a commit of a command that ${title} is noticed in that round, by default`, async (context) => {
    const command = `echo x > new.txt; git add new.txt; git commit -qm "Add new"; ${ending}`;
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const place = await makeRepository(context, [
      message(call('b', 'bash', { command, ...limit })),
      done,
    ]);
    const ended = await runInProcess(place, ['-p', 'go']);
    expectCode(ended, 0);
    assert.match(ended.stderr, /^· new commit [0-9a-f]{8} Add new \(1 file, \+1 -0\)$/m);
  });

test('where only calls that end well count, a command that failed is not looked at', async (context) => {
  const command = `echo '${ROUGH}' > new.ts; exit 3`;
  const place = await makeRepository(context, [message(call('b', 'bash', { command })), done]);
  const ended = await runInProcess(place, ['-p', 'go', '--auto-commit', '--hooks', 'mutatingOk']);
  expectCode(ended, 0);
  assert.equal(place.git('status', '--porcelain'), '?? new.ts\n');
});
