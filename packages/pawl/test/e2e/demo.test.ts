import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { testDeep } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import {
  type Ended,
  expectCode,
  makePlace,
  type Place,
  runPawl,
  sessionOf,
  start,
} from './pawl.js';
import { openWindow } from './window.js';

/** `pawl demo` as a stranger runs it: no key, an empty home. */

const runDemo = async (place: Place): Promise<Ended & { readonly folder: string }> => {
  const ended = await runPawl(place, ['demo']);
  return { ...ended, folder: /^project +(.*)$/m.exec(ended.stdout)?.[1] ?? '' };
};

const pathOf = (printed: string): readonly string[] =>
  printed.split('\n').filter((line) => /^ *\d+ {2}[A-Z]\w+ +[A-Z]\w+( → [A-Z]\w+)+$/.test(line));

/** What the summary should say of these lines: how often each state was entered. */
const countsOf = (lines: readonly string[]): string => {
  const entered = lines.flatMap((line) => line.split(/ +→ +/).slice(1));
  const counted = [...new Set(entered)].map((name) => {
    const times = entered.filter((other) => other === name).length;
    return times === 1 ? name : `${name} ×${times}`;
  });
  return counted.join(' · ');
};

test('the demo ends with a green test and a commit, and its path is the one that replay finds', async (context) => {
  const place = makePlace(context);
  const demo = await runDemo(place);
  context.after(() => removeFolderSync(demo.folder));
  expectCode(demo, 0);
  assert.equal(demo.stderr, '');
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const inProject = { ...place, workspace: demo.folder, environment };
  expectCode(await start(inProject, process.execPath, ['--test']).ended, 0);
  const log = await start(inProject, 'git', ['log', '--format=%an %s']).ended;
  assert.equal(
    log.stdout,
    'Pawl Give the cents that are left over to the first people\nAnn Split a bill between friends\n',
  );
  const [, command = ''] = /^replay +(.*)$/m.exec(demo.stdout) ?? [];
  assert.match(command, new RegExp(`^node .*bin/pawl\\.js replay ${sessionOf(place)}$`));
  const replay = await start(place, 'bash', ['-c', command]).ended;
  expectCode(replay, 0);
  assert.match(replay.stderr, /all equal/);
  assert.ok(pathOf(demo.stdout).length > 10, demo.stdout);
  assert.deepEqual(pathOf(demo.stdout), pathOf(replay.stdout));
  assert.equal(/^path +(.*)$/m.exec(demo.stdout)?.[1], countsOf(pathOf(demo.stdout)));
  assert.match(
    demo.stdout.trimEnd().split('\n').at(-1) ?? '',
    new RegExp(`rm -rf ${demo.folder}$`),
  );
});

for (const sandbox of ['workspace', 'off']) {
  testDeep(
    `the demo of a crash: the command goes on, and its result is found (sandbox ${sandbox})`,
    async (context) => {
      const place = makePlace(context, { PAWL_SANDBOX: sandbox, PAWL_PRESET: 'plan' });
      const demo = await runPawl(place, ['demo', '--crash']);
      const folder = /^project +(.*)$/m.exec(demo.stdout)?.[1] ?? '';
      context.after(() => removeFolderSync(folder));
      expectCode(demo, 0);
      assert.equal(demo.stderr, '');
      assert.match(demo.stdout, sandbox === 'off' ? /run without a sandbox/ : /run in a sandbox/);
      const [, first = '', alone = '', resumed = ''] = demo.stdout.split(/^\d\. /m);
      assert.doesNotMatch(first, /step 8/, 'it is killed in the middle of the command');
      assert.match(alone, /goes on.*\n( +step \d of 8\n)+/);
      assert.match(resumed, /it still runs|it has ended meanwhile/);
      assert.match(resumed, /step 8 of 8\n[\s\S]*exit code 0.*\n.*this is the real result/);
      assert.equal(readFileSync(join(folder, 'starts.txt'), 'utf8'), 'started\n');
      const replay = await runInProcess(place, ['replay', sessionOf(place)]);
      expectCode(replay, 0);
    },
  );
}

test('the demo says so where git does not work', async (context) => {
  const place = makePlace(context);
  writeFileSync(join(place.folder, 'git'), '#!/bin/sh\necho "git is broken" >&2\nexit 1\n', {
    mode: 0o755,
  });
  const environment = { ...place.environment, PATH: `${place.folder}:${process.env.PATH}` };
  const ended = await runPawl({ ...place, environment }, ['demo']);
  expectCode(ended, 69);
  assert.match(ended.stderr, /git is broken/);
});

testDeep('in a terminal the demo is a session, with -p a log', async (context) => {
  const place = makePlace(context);
  const window = openWindow(context, place, { words: ['demo'], rows: 50 });
  await window.sees('> The tests fail. Find out why');
  await window.sees('Now the tests again.');
  await window.sees(/the repair is committed\.[\s\S]*ready ·/);
  window.press('\u0004');
  assert.equal(await window.ended, 0);
  const [, folder = ''] = /^project +(.*)$/m.exec(await window.text()) ?? [];
  context.after(() => removeFolderSync(folder));
  const log = await start(place, 'git', ['-C', folder, 'log', '--format=%an']).ended;
  assert.equal(log.stdout, 'Pawl\nAnn\n');
  const other = openWindow(context, place, { words: ['demo', '-p'], rows: 50 });
  assert.equal(await other.ended, 0);
  await other.sees(/Each dim line is a transition[\s\S]*To remove the project/);
  const [, second = ''] = /^project +(.*)$/m.exec(await other.text()) ?? [];
  context.after(() => removeFolderSync(second));
});
