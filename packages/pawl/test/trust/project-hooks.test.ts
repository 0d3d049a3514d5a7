import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { openTrust } from '@pawl/agent/extensions/trust';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { allowedHooks, hookSource } from '../../src/sessions/project-trust.js';
import { loadConfig } from '../../src/settings/configuration.js';

test('a hook of a project is bound to its declaration and to the files that it names', async (t) => {
  const top = temporaryFolder(t, 'project-hooks');
  const workspace = path.join(top, 'repository');
  for (const folder of ['.git', '.pawl', 'scripts'])
    mkdirSync(path.join(workspace, folder), { recursive: true });
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const trust = openTrust(path.join(top, 'state'), warn);
  const declare = (more = ''): void =>
    writeFileSync(
      path.join(workspace, '.pawl/config.toml'),
      `[hook.format]\non = "after-tool"\ncommand = "node ./scripts/format.mjs --all"\n${more}`,
    );
  const script = (text: string): void =>
    writeFileSync(path.join(workspace, 'scripts/format.mjs'), text);
  const allowed = async () => {
    const { projectHooks } = await loadConfig(workspace, { HOME: top });
    return allowedHooks(workspace, projectHooks, trust, warn);
  };
  declare();
  script('first');
  assert.deepEqual(await allowed(), []);
  assert.match(
    warnings.splice(0).join(),
    /^not run, since you have not allowed it: hook format\. /,
  );
  const [found] = await hookSource(workspace);
  assert.ok(found !== undefined);
  for (const text of [
    '"after-tool"',
    'scripts/format.mjs (sha256 ',
    'in the sandbox, writes in the workspace',
  ])
    assert.ok(found.content.includes(text), text);
  await trust.allow(workspace, found);

  const [hook] = await allowed();
  assert.deepEqual([hook?.name, hook?.sandbox, hook?.folder], ['format', 'workspace', workspace]);
  assert.equal(await hook?.whyNot?.(), null);
  script('second');
  assert.match((await hook?.whyNot?.()) ?? '', /its files have changed since you allowed it/);
  assert.deepEqual(await allowed(), []);
  script('first');
  assert.equal((await allowed()).length, 1);
  for (const more of [
    'sandbox = "off"\n',
    'tools = ["edit"]\n',
    'on_failure = "deny"\n',
    'timeout = 5\n',
  ]) {
    declare(more);
    assert.deepEqual(await allowed(), [], more);
  }
  declare('enabled = false\n');
  warnings.length = 0;
  assert.deepEqual(await allowed(), []);
  assert.deepEqual(warnings, []);
});

test('a hook is bound to the file that runs, however its command names it', async (t) => {
  const top = temporaryFolder(t, 'named-files');
  const repository = path.join(top, 'repository');
  // Started below the folder that has .pawl: hooks run here.
  const workspace = path.join(repository, 'packages/one');
  for (const folder of ['.git', '.pawl', 'packages/one/sub/deep', 'packages/one/pkg'])
    mkdirSync(path.join(repository, folder), { recursive: true });
  symlinkSync('sub/deep', path.join(workspace, 'jump'));
  const outside = path.join(top, 'outside.sh');
  symlinkSync(outside, path.join(workspace, 'out.sh'));
  const named: Readonly<Record<string, string>> = {
    'sh here.sh': 'here.sh',
    'sh < piped.sh': 'piped.sh',
    'sh<tight.sh': 'tight.sh',
    './first.sh|cat': 'first.sh',
    '(./group.sh)': 'group.sh',
    'echo $(./inner.sh)': 'inner.sh',
    'echo `./old.sh`>log': 'old.sh',
    "sh './two words.sh'": 'two words.sh',
    'sh ./with\\ escape.sh': 'with escape.sh',
    'sh "$PWD/variable.sh"': 'variable.sh',
    'sh "$(pwd)/substituted.sh"': 'substituted.sh',
    'sh ~/repository/packages/one/tilde.sh': 'tilde.sh',
    'sh "$HOME/repository/packages/one/home.sh"': 'home.sh',
    'node plain': 'plain.js',
    'python3 -m pkg.module': 'pkg/module.py',
    'cd sub && ./moved.sh': 'sub/moved.sh',
    'cd sub && cd deep && ./deeper.sh': 'sub/deep/deeper.sh',
    './jo"in"ed.sh': 'joined.sh',
    'python3 ./pkg': 'pkg/__main__.py',
    'python3 -m pkg.other': 'pkg/__init__.py',
    'node ./pkg': 'pkg/package.json',
    'sh jump/../through.sh': 'sub/through.sh',
  };
  const environment = { HOME: top };
  for (const [command, file] of Object.entries(named)) {
    writeFileSync(
      path.join(repository, '.pawl/config.toml'),
      `[hook.one]\non = "after-tool"\ncommand = ${JSON.stringify(command)}\n`,
    );
    writeFileSync(path.join(workspace, file), 'harmless');
    const trust = openTrust(path.join(top, 'state'), () => undefined);
    const { projectHooks } = await loadConfig(workspace, environment);
    const allowed = () =>
      allowedHooks(workspace, projectHooks, trust, () => undefined, environment);
    const [found] = await hookSource(workspace, environment);
    assert.ok(found !== undefined);
    await trust.allow(workspace, found);
    assert.equal((await allowed()).length, 1, command);
    writeFileSync(path.join(workspace, file), 'harmful');
    assert.equal((await allowed()).length, 0, command);
  }
  for (const [folders, isSaid] of [
    ['a b c d', false],
    ['a b c d e', true],
  ] as const) {
    for (const folder of folders.split(' '))
      mkdirSync(path.join(workspace, folder), { recursive: true });
    writeFileSync(
      path.join(repository, '.pawl/config.toml'),
      `[hook.one]\non = "turn-end"\ncommand = "ls ${folders}"\n`,
    );
    const [one] = await hookSource(workspace, environment);
    assert.equal(one?.content.includes('further folders that it names are not watched'), isSaid);
  }
  writeFileSync(
    path.join(repository, '.pawl/config.toml'),
    '[hook.one]\non = "turn-end"\ncommand = "./out.sh"\n',
  );
  writeFileSync(outside, 'harmless');
  const [found] = await hookSource(workspace, environment);
  assert.ok(
    found?.content.includes(
      `file of the project: out.sh (leads to ${outside}, which is not watched)`,
    ),
  );
});
