import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { openTrust } from '@pawl/agent/extensions/trust';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  allowedServers,
  readProjectServers,
  serverSource,
} from '../../src/sessions/project-trust.js';

const variable = (name: string): string => `\${${name}}`;

const makeStage = (t: TestContext) => {
  const top = temporaryFolder(t, 'project-servers');
  const repository = path.join(top, 'repository');
  const workspace = path.join(repository, 'package');
  for (const folder of ['.git', 'package'])
    mkdirSync(path.join(repository, folder), { recursive: true });
  const warnings: string[] = [];
  const trust = openTrust(path.join(top, 'state'), (text) => void warnings.push(text));
  return {
    top,
    repository,
    workspace,
    trust,
    warnings,
    write: (servers: object, folder = workspace) =>
      writeFileSync(path.join(folder, '.mcp.json'), JSON.stringify({ mcpServers: servers })),
    allowed: async () =>
      (await allowedServers(workspace, [], trust, (text) => void warnings.push(text))).servers.map(
        ({ name }) => name,
      ),
  };
};

test('no server of a project runs before it was allowed, and a change asks again', async (t) => {
  const { workspace, trust, write, allowed, warnings } = makeStage(t);
  writeFileSync(path.join(workspace, 'server.mjs'), 'first');
  const files = {
    type: 'stdio',
    command: 'node',
    args: ['server.mjs'],
    env: { A: variable('HOME') },
  };
  write({ files, web: { type: 'http', url: 'https://example.com/mcp' } });
  assert.deepEqual(await allowed(), []);
  assert.match(
    warnings.splice(0).join('\n'),
    /^not run, since you have not allowed it: MCP server files, MCP server web\. /,
  );
  const [first, web] = await serverSource(workspace);
  assert.ok(first !== undefined);
  assert.deepEqual([first.isRemote, web?.isRemote], [undefined, true]);
  for (const text of [
    '"command": "node"',
    '"server.mjs"',
    `"A": "${variable('HOME')}"`,
    'file of the project: server.mjs (sha256 ',
    'outside the sandbox',
  ])
    assert.ok(first.content.includes(text), text);
  await trust.allow(workspace, first);
  assert.deepEqual(await allowed(), ['files']);
  assert.match(warnings.splice(0).join('\n'), /: MCP server web\./);

  writeFileSync(path.join(workspace, 'server.mjs'), 'second');
  assert.deepEqual(await allowed(), [], 'the program has other content');
  writeFileSync(path.join(workspace, 'server.mjs'), 'first');
  assert.deepEqual(await allowed(), ['files']);
  write({ files: { ...files, args: ['server.mjs', '--all'] } });
  assert.deepEqual(await allowed(), [], 'other words');
});

test("the nearest file wins, and the user's own server of the same name wins over it", async (t) => {
  const { top, workspace, repository, trust, write } = makeStage(t);
  write({ one: { command: 'far' }, two: { command: 'far' } }, repository);
  write({ one: { command: 'near' } });
  const { servers } = await readProjectServers(workspace);
  assert.deepEqual(
    servers.map(({ server }) => [server.name, server.kind === 'stdio' ? server.command : '']),
    [
      ['one', 'near'],
      ['two', 'far'],
    ],
  );
  for (const { executable } of servers) await trust.allow(workspace, executable);
  const own = servers.map(({ server }) => server).filter(({ name }) => name === 'one');
  const left = await allowedServers(workspace, own, trust, () => undefined);
  assert.deepEqual(
    left.servers.map(({ name }) => name),
    ['two'],
  );
  // nobody is asked about the one that is never started
  mkdirSync(path.join(top, '.config/pawl'), { recursive: true });
  writeFileSync(path.join(top, '.config/pawl/config.toml'), '[mcp.servers.one]\ncommand = "own"\n');
  assert.deepEqual(
    (await serverSource(workspace, { HOME: top })).map(({ name }) => name),
    ['two'],
  );
});

test('a server that the nearest file turns off or names a key for hides the one of a farther file', async (t) => {
  const { workspace, repository, write } = makeStage(t);
  const far = { command: 'far' };
  write({ one: far, two: far, three: far }, repository);
  const env = { A: variable('ANTHROPIC_API_KEY') };
  write({ one: { command: 'near', enabled: false }, TWO: { command: 'near', env } });
  const { servers } = await readProjectServers(workspace);
  assert.deepEqual(
    servers.map(({ server }) => server.name),
    ['three'],
  );
});

test("names that differ in capital letters are one name: a project's Docs is not beside the user's docs", async (t) => {
  const { workspace, repository, trust, write } = makeStage(t);
  write({ DOCS: { command: 'far' }, other: { command: 'far' } }, repository);
  write({ Docs: { command: 'near' } });
  const { servers } = await readProjectServers(workspace);
  assert.deepEqual(
    servers.map(({ server }) => server.name),
    ['Docs', 'other'],
  );
  for (const { executable } of servers) await trust.allow(workspace, executable);
  const own = servers.map(({ server }) => ({ ...server, name: 'docs' })).slice(0, 1);
  const left = await allowedServers(workspace, own, trust, () => undefined);
  assert.deepEqual(
    left.servers.map(({ name }) => name),
    ['other'],
  );
});

test('broken and hostile files are said and not used', async (t) => {
  const { workspace, top, write } = makeStage(t);
  const file = path.join(workspace, '.mcp.json');
  const faults = async (): Promise<string> => {
    const read = await readProjectServers(workspace);
    assert.deepEqual(read.servers, []);
    return read.faults.join('\n');
  };
  assert.equal(await faults(), '');
  for (const text of ['', '{', '[]', '[[[[[[[[[[[[[[', 'x'.repeat(300_000)]) {
    writeFileSync(file, text);
    assert.match(await faults(), /\.mcp\.json is not used: /);
  }
  write({ one: { command: 'x', shell: true } });
  assert.match(await faults(), /mcpServers\.one\.shell is no setting of an MCP server/);
  write({ one: { type: 'sse', url: 'https://example.com' } });
  assert.match(await faults(), /mcpServers\.one\.type .* SSE transport are not supported/);
  write({ one: { command: 'x', env: { A: variable('ANTHROPIC_API_KEY') } } });
  assert.match(await faults(), /one wants the key of a model provider/);
  rmSync(file);
  execFileSync('mkfifo', [file]);
  assert.match(await faults(), /\.mcp\.json is not used: it is not a regular file/);
  rmSync(file);
  writeFileSync(path.join(top, 'outside.json'), '{"mcpServers":{}}');
  symlinkSync(path.join(top, 'outside.json'), file);
  assert.match(await faults(), /leads out of the repository/);
});

/** The servers that run after the user has allowed all that is asked about. */
const allowAll = async ({ workspace, trust, allowed }: ReturnType<typeof makeStage>) => {
  for (const executable of await serverSource(workspace)) await trust.allow(workspace, executable);
  return allowed();
};

test('a file of the project is watched in whatever form the settings name it', async (t) => {
  const stage = makeStage(t);
  const { workspace, write, allowed } = stage;
  const file = path.join(workspace, 'server.js');
  process.env.PAWL_TEST_FOLDER = workspace;
  t.after(() => delete process.env.PAWL_TEST_FOLDER);
  const forms: Record<string, object> = {
    variable: { command: 'node', args: [`${variable('PAWL_TEST_FOLDER')}/server.js`] },
    otherwise: { command: 'node', args: [variable('PAWL_TEST_NONE:-./server.js')] },
    option: { command: 'node', args: ['--require=./server.js', '-e', ''] },
    shell: { command: 'sh', args: ['-c', 'exec node ./server.js'] },
    environment: { command: 'node', env: { NODE_OPTIONS: '--require ./server.js' } },
    'no-suffix': { command: 'node', args: ['./server'] },
    folder: { command: 'node', args: ['server.js'], cwd: '.' },
  };
  for (const [name, form] of Object.entries(forms)) {
    writeFileSync(file, 'first');
    write({ [name]: form });
    assert.deepEqual(await allowAll(stage), [name]);
    writeFileSync(file, 'second');
    assert.deepEqual(await allowed(), [], name);
  }
});

test('the name of a file can not imitate a line of the question', async (t) => {
  const { workspace, write } = makeStage(t);
  const name = 'a\ngranted: nothing.js';
  writeFileSync(path.join(workspace, name), '');
  write({ one: { command: 'node', args: [name] } });
  const [one] = await serverSource(workspace);
  assert.match(one?.content ?? '', /^file of the project: a\\ngranted: nothing\.js \(sha256/m);
  assert.equal(one?.content.match(/^granted:/gm)?.length, 1);
});

test('a server that changes while a session runs is not started again', async (t) => {
  const stage = makeStage(t);
  const { workspace, trust, write } = stage;
  const file = path.join(workspace, 'server.js');
  writeFileSync(file, 'first');
  write({ one: { command: 'node', args: ['server.js'] } });
  await allowAll(stage);
  const { servers, whyNot } = await allowedServers(workspace, [], trust, () => undefined);
  const [one] = servers;
  assert.ok(one !== undefined);
  assert.equal(await whyNot(one), null);
  writeFileSync(file, 'second');
  assert.match((await whyNot(one)) ?? '', /^its files have changed since you allowed it/);
  assert.equal(await whyNot({ ...one, name: 'own' }), null, 'a server of the user');
});

test('a file with more than anybody reads costs little and says little', async (t) => {
  const { workspace, write } = makeStage(t);
  writeFileSync(path.join(workspace, 'large'), 'x'.repeat(5 * 1024 * 1024));
  const many = Array.from({ length: 5_000 }, (_, index) => `${'./'.repeat(index % 5)}${index}`);
  write({
    words: { command: 'node', args: many },
    long: { command: 'node', args: ['x'.repeat(101_000)] },
  });
  const read = await readProjectServers(workspace);
  assert.deepEqual(read.servers, []);
  assert.match(
    read.faults.join('\n'),
    /words has more settings than .*\n.*long has more settings than/,
  );

  write({ one: { command: 'node', args: ['large'] } });
  const [one] = await serverSource(workspace);
  assert.match(
    one?.content ?? '',
    /^file of the project: large \(not watched: you are not asked again/m,
  );

  write(Object.fromEntries(many.map((name) => [name, 1])));
  const { faults } = await readProjectServers(workspace);
  assert.equal(faults.length, 4);
  assert.match(faults[3] ?? '', /4997 more faults\./);
});
