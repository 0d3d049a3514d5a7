import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed } from './pawl.js';

// `pawl policy explain`, and rules of files as the program reads them.

test('policy explain says which rule decides, and where the command would run', async (context) => {
  const place = await makeServed(context, []);
  const folder = join(place.workspace, '.pawl');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'config.toml'),
    '[rules]\nallow = ["curl"]\ndeny = ["git push"]\n\n[rules.paths]\nask = [".env*"]\n',
  );
  const explain = (command: string, ...more: readonly string[]) =>
    runInProcess(place, [
      'policy',
      'explain',
      command,
      '--sandbox',
      'off',
      '--preset',
      'auto',
      ...more,
    ]);
  const denied = await explain('echo a; sudo git -C x push');
  expectCode(denied, 77);
  assert.match(denied.stdout, /^deny: a rule: deny "git push" \(.*config\.toml:3\)\n/);
  assert.match(denied.stdout, /└ git -C x push/);
  assert.match(denied.stderr, /allow "curl" .* is ignored: a project may only ask and deny/);
  const asked = await explain('cat .env.local', '--json');
  expectCode(asked, 1);
  const record = JSON.parse(asked.stdout);
  assert.deepEqual(
    [record.decision, record.place, record.reach.network],
    ['ask', 'unfenced', 'yes'],
  );
  expectCode(await explain('npm test'), 0);
  expectCode(await runInProcess(place, ['policy', 'what', 'x']), 2);
  const wordless = await runInProcess(place, ['policy', 'explain']);
  expectCode(wordless, 2);
  assert.match(wordless.stderr, /Which command\? For example: pawl policy explain "npm test"/);
});

test('a faulty rule stops the program with its line', async (context) => {
  const place = await makeServed(context, []);
  const folder = join(place.workspace, '.pawl');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'config.toml'),
    '[rules]\ndeny = ["git \'push\'"]\nforbid = ["x"]\nalow = ["x"]\n',
  );
  const ended = await runInProcess(place, ['-p', 'hi']);
  expectCode(ended, 78);
  assert.match(ended.stderr, /config\.toml:2: a rule of rules\.deny is the plain words/);
  assert.match(ended.stderr, /config\.toml:3: there is no rules\.forbid/);
  assert.match(
    ended.stderr,
    /config\.toml:4: there is no rules\.alow\. Did you mean rules\.allow\?/,
  );
});
