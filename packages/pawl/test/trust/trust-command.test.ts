import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { type Executable, openTrust } from '@pawl/agent/extensions/trust';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { runTrust, type TrustFlags } from '../../src/commands/trust.js';
import { captureOutput } from '../terminal/surfaces/capture.js';

/** `pawl trust`, in this process, with what a project wants to run given by the test. */

const server = (content: string): Executable => ({
  kind: 'mcp-server',
  name: 'files',
  content,
  ...(content.startsWith('https:') ? {} : { levels: ['read-only', 'read-only+net', 'off'] }),
});

/** Contents that the project has one after the other, before the one of the stage. */
const changing: string[] = [];

const makeStage = (t: TestContext) => {
  const folder = temporaryFolder(t, 'trust-command');
  const before = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = `${folder}/state`;
  t.after(() => {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  });
  let content = 'npx files';
  const runWith = async (flags: TrustFlags, ...words: readonly string[]): Promise<string> => {
    let printed = '';
    const stop = captureOutput((text) => {
      printed += text;
    });
    try {
      assert.equal(
        await runTrust(words, { ...flags, workspace: folder }, [
          async () => [server(changing.shift() ?? content)],
        ]),
        0,
      );
    } finally {
      stop();
    }
    return printed;
  };
  return {
    folder,
    run: (...words: readonly string[]) => runWith({}, ...words),
    runWith,
    change: (next: string) => {
      content = next;
    },
    judge: async () =>
      (await openTrust(`${folder}/state/pawl`, () => undefined).judge(folder, server(content)))
        .kind,
  };
};

test('what a project wants to run is allowed by its name, and revoked', async (t) => {
  const { run, judge, change } = makeStage(t);
  assert.match(
    await run(),
    /^waiting mcp-server files not run: pawl trust allow mcp-server files$/m,
  );
  assert.equal(await judge(), 'unknown');
  assert.match(await run('allow', 'mcp-server', 'files'), /│ npx files/);
  assert.equal(await judge(), 'trusted');
  assert.match(await run('allow', 'mcp-server', 'files'), /is allowed already/);
  change('npx other');
  assert.equal(await judge(), 'changed');
  const listed = await run('list'); // it is not called allowed any more
  assert.match(listed, /^changed mcp-server files/);
  assert.ok(!listed.includes('allowed mcp-server'), listed);
  assert.match(await run('allow', 'mcp-server', 'files'), /- npx files.*\n.*\+ npx other/);
  assert.equal(await judge(), 'trusted');
  await run('revoke', 'mcp-server', 'files');
  assert.equal(await judge(), 'unknown');
});

test('a project that changes while it is read: what is printed is what is allowed', async (t) => {
  const { run, change, judge } = makeStage(t);
  for (const content of ['npx harmless', 'npx harmful', 'npx worse']) changing.push(content);
  const printed = await run('allow', 'mcp-server', 'files');
  assert.match(printed, /│ npx harmless/);
  assert.doesNotMatch(printed, /npx harmful/);
  changing.length = 0;
  change('npx harmless');
  assert.equal(await judge(), 'trusted');
});

test('the sandbox level is chosen, shown and changed', async (t) => {
  const { run, runWith, change } = makeStage(t);
  const words = ['allow', 'mcp-server', 'files'];
  assert.match(await run(...words), /^Allowed in .*: MCP server files, --sandbox read-only\./m);
  assert.match(await runWith({ sandbox: 'off' }, ...words), /, --sandbox off\./);
  assert.match(await run(...words), /is allowed already, --sandbox off\./);
  assert.match(await run('list'), /^allowed mcp-server files .*, --sandbox off$/m);
  await assert.rejects(
    runWith({ sandbox: 'none' }, ...words),
    /--sandbox needs one of read-only, /,
  );
  change('https://example.com');
  await assert.rejects(
    runWith({ sandbox: 'off' }, ...words),
    /--sandbox is for MCP servers that run here: leave it out for the MCP server files/,
  );
  assert.match(await run(...words), /^Allowed in .*: MCP server files\. pawl/m);
});

test('wrong words say what is right', async (t) => {
  const { run, judge } = makeStage(t);
  await assert.rejects(run('grant'), /pawl trust has list, allow and revoke, not 'grant'/);
  await assert.rejects(run('allow'), /needs a kind and a name/);
  await assert.rejects(run('allow', 'server', 'files'), /needs one of mcp-server, /);
  await assert.rejects(run('allow', 'mcp-server', 'other'), /This project has no MCP server other/);
  await assert.rejects(run('allow', 'hook', 'files'), /This project has no hook files/);
  await assert.rejects(
    run('revoke', 'mcp-server', 'files'),
    /There is no answer about the MCP server files/,
  );
  assert.equal(await judge(), 'unknown');
});

test('files of the project that are wrong are named, and nothing is said to be all', async (t) => {
  const { run, folder } = makeStage(t);
  mkdirSync(`${folder}/.pawl`);
  writeFileSync(`${folder}/.pawl/config.toml`, '[hook.a]\non = "nowhere"\n');
  writeFileSync(`${folder}/.mcp.json`, '{\n  "mcpServers": {"a": 1,}\n}');
  const printed = (await run()).replace(/\s+/g, ' '); // its lines break between words
  assert.match(printed, /\.pawl\/config\.toml:\d+: hook\.a\.on/);
  assert.match(printed, /\.mcp\.json is not used: it is not valid JSON: line 2, column 25\b/);
  assert.match(printed, /Correct it first\./);
  assert.doesNotMatch(printed, /wants to run nothing/);
});
