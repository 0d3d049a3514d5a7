import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import type { Tool } from '@pawl/agent/ports/tool';
import { type AnswerBody, isEntry, type NodeClient } from '../../../test/kit/serve/node-client.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { until } from '../../../test/until.js';
import { NodeWorkspaces } from '../src/workspaces.js';
import { makeLocalNode } from './local-node-runtime.js';
import { keyNamed, type MakeNodeRuntime, startTestNode } from './node-under-test.js';

/** Sessions of a node in worktrees: with real git, and a repository that would run programs if it could. */

const git = (folder: string, ...words: readonly string[]): string => {
  const own = [
    '-c',
    'user.name=Test',
    '-c',
    'user.email=test@example.com',
    '-c',
    'init.defaultBranch=main',
  ];
  const { status, stdout, stderr } = spawnSync('git', [...own, ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, `git ${words.join(' ')}: ${stderr}`);
  return stdout.trim();
};

/** A repository with one commit, whose every hook, filter and monitor would leave a mark. */
const hostileRepository = (folder: string, mark: string): string => {
  const repository = path.join(folder, 'api');
  mkdirSync(repository);
  git(repository, 'init', '--quiet');
  writeFileSync(path.join(repository, 'a.txt'), 'one\n');
  writeFileSync(path.join(repository, '.gitignore'), 'ignored\n');
  writeFileSync(path.join(repository, '.gitattributes'), '*.txt filter=evil\n');
  git(repository, 'add', '.');
  git(repository, 'commit', '--quiet', '-m', 'first');
  const program = path.join(folder, 'evil.sh');
  writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> '${mark}'\ncat\n`);
  chmodSync(program, 0o755);
  for (const hook of [
    'post-checkout',
    'reference-transaction',
    'pre-commit',
    'post-index-change',
    'pre-auto-gc',
  ]) {
    writeFileSync(path.join(repository, '.git', 'hooks', hook), readFileSync(program));
    chmodSync(path.join(repository, '.git', 'hooks', hook), 0o755);
  }
  for (const [name, value] of [
    ['filter.evil.smudge', program],
    ['filter.evil.clean', program],
    ['filter.evil.process', program],
    ['core.fsmonitor', program],
    ['core.sshCommand', program],
    ['diff.external', program],
    ['core.pager', program],
  ] as const)
    git(repository, 'config', name, value);
  return realpathSync(repository);
};

/** Writes a file, and reports its hash as the tools for files do. */
const editTool: Tool = {
  name: 'edit',
  description: 'Writes a file.',
  inputSchema: { type: 'object' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 60_000 },
  judge: (input, workspace) => {
    const facts = { argv: [], paths: [workspace], hosts: [], shape: 'edit' };
    return { kind: 'ok', input, facts };
  },
  run: async ({ path: name, text }, { workspace, files }) => {
    const file = path.join(workspace, String(name));
    writeFileSync(file, String(text));
    const sha256 = createHash('sha256').update(String(text)).digest('hex');
    files.set(file, sha256);
    return { status: 'ok', text: 'written' };
  },
};

const start = async (
  context: TestContext,
  script?: Script,
  make: MakeNodeRuntime = makeLocalNode,
) => {
  const folder = temporaryFolder(context, 'worktrees');
  const mark = path.join(folder, 'mark');
  const repository = hostileRepository(folder, mark);
  const commit = readFileSync(
    path.join(repository, '.git', 'refs', 'heads', 'main'),
    'utf8',
  ).trim();
  const { signal } = new AbortController();
  const started = await startTestNode(context, make, {
    keys: [keyNamed('one')],
    tools: [editTool],
    workspaces: {
      folders: [],
      repositories: new Map([['api', repository]]),
      dataFolder: path.join(folder, 'data'),
      environment: process.env,
      signal,
    },
    ...(script === undefined ? {} : { script }),
  });
  const create = async (): Promise<{ readonly id: string; readonly place: string }> => {
    const workspace = { repository: 'api', commit: 'main' };
    const { status, body, text } = await started.client.ask('POST', '/v1/sessions', { workspace });
    assert.equal(status, 201, text);
    assert.equal(body.workspace?.commit, commit);
    return { id: body.sessionId ?? '', place: String(body.workspace?.path) };
  };
  const linked = (): readonly string[] => {
    const worktrees = path.join(repository, '.git', 'worktrees');
    return existsSync(worktrees) ? readdirSync(worktrees) : [];
  };
  return { ...started, repository, commit, mark, create, linked };
};

const close = async (client: NodeClient, id: string): Promise<AnswerBody['workspace']> => {
  const { status, body, text } = await client.ask('POST', `/v1/sessions/${id}/close`);
  assert.equal(status, 200, text);
  return body.workspace;
};

test('a place that the operator has taken is used no more, also where this node does not look', async (context) => {
  const folder = temporaryFolder(context, 'taken');
  const worktree = { kind: 'worktree', path: folder, commit: 'main', state: 'present' } as const;
  const workspaces = new NodeWorkspaces({
    folders: [path.join(folder, 'work')],
    repositories: new Map([['api', folder]]),
    dataFolder: folder,
    environment: {},
    signal: new AbortController().signal,
  });
  workspaces.refuseTaken({ kind: 'folder', path: path.join(folder, 'work', 'on-another-node') });
  workspaces.refuseTaken({ ...worktree, repository: 'api' });
  const taken = { ...worktree, repository: 'taken' };
  assert.throws(() => workspaces.refuseTaken(taken), /no longer offers the repository taken/);
  writeFileSync(path.join(folder, 'file'), '');
  assert.equal(await workspaces.isPresent({ kind: 'folder', path: folder }), true);
  const file = { kind: 'folder', path: path.join(folder, 'file') } as const;
  assert.equal(await workspaces.isPresent(file), false);
  const outside = { kind: 'folder', path: path.join(folder, 'workshop') } as const;
  assert.throws(() => workspaces.refuseTaken(outside), /has not allowed the folder/);
  const why = 'This node no longer offers the repository taken of this session.';
  assert.deepEqual(await workspaces.release(taken), { kind: 'kept', path: folder, why });
});

test('a session works in a worktree, nothing of the repository is executed, and a clean one goes and comes', async (context) => {
  const { client, create, linked, mark, repository } = await start(context);
  const { id, place } = await create();
  assert.equal(readFileSync(path.join(place, 'a.txt'), 'utf8'), 'one\n');
  assert.equal(linked().length, 1);
  writeFileSync(path.join(place, 'ignored'), 'x');
  assert.deepEqual(await close(client, id), { kind: 'removed' });
  assert.deepEqual([existsSync(place), linked().length], [false, 0]);
  const moved = await client.ask('POST', `/v1/sessions/${id}/move`);
  assert.match(moved.body.error?.message ?? '', /was removed with nothing lost.*nothing needs to/);
  await client.send(id, { text: 'echo back' });
  assert.equal(readFileSync(path.join(place, 'a.txt'), 'utf8'), 'one\n');
  assert.equal(existsSync(mark), false, existsSync(mark) ? readFileSync(mark, 'utf8') : '');
  assert.equal(existsSync(path.join(repository, '.git', 'hooks', 'post-checkout')), true);
});

test('a worktree with work in it is kept and named', async (context) => {
  const { client, create, mark } = await start(context);
  const [changed, committed, left] = [await create(), await create(), await create()];
  writeFileSync(path.join(changed.place, 'new.txt'), 'new');
  writeFileSync(path.join(changed.place, 'a.txt'), 'two\n');
  const kept = await close(client, changed.id);
  assert.deepEqual([kept?.kind, kept?.path], ['kept', changed.place]);
  assert.match(String(kept?.why), /not committed: a\.txt, new\.txt/);
  assert.equal(existsSync(mark), false);
  // with the user's git, which does run the hooks
  const quiet = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false'];
  for (const { place } of [committed, left])
    git(place, ...quiet, 'commit', '--quiet', '--allow-empty', '-m', 'own');
  git(left.place, ...quiet, 'checkout', '--quiet', 'HEAD~1');
  rmSync(mark, { force: true });
  assert.match(String((await close(client, left.id))?.why), /commits that no branch has/);
  assert.match(String((await close(client, committed.id))?.why), /commits that no branch has/);
  git(committed.place, '-c', 'core.fsmonitor=false', 'branch', 'kept');
  rmSync(mark, { force: true });
  await client.send(committed.id, { text: 'hi' });
  assert.deepEqual(await close(client, committed.id), { kind: 'removed' });
  assert.equal(existsSync(mark), false);
});

test('a worktree is kept for what git does not look at: submodules, and files that it is to skip', async (context) => {
  const { client, create, repository } = await start(context);
  const quiet = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false'];
  const [skipped, sparse, module] = [await create(), await create(), await create()];
  for (const { place } of [skipped, sparse])
    git(place, ...quiet, 'update-index', '--skip-worktree', 'a.txt');
  writeFileSync(path.join(skipped.place, 'a.txt'), 'two\n');
  rmSync(path.join(sparse.place, 'a.txt'));
  assert.match(String((await close(client, skipped.id))?.why), /not looked at by git: a\.txt/);
  assert.deepEqual(await close(client, sparse.id), { kind: 'removed' }, 'control');

  const local = [...quiet, '-c', 'protocol.file.allow=always'];
  git(module.place, ...local, 'submodule', '--quiet', 'add', repository, 'sub');
  git(module.place, ...quiet, 'commit', '--quiet', '-m', 'sub');
  git(module.place, ...quiet, 'branch', 'kept');
  writeFileSync(path.join(module.place, 'sub', 'a.txt'), 'two\n');
  assert.match(String((await close(client, module.id))?.why), /not looked at by git: sub/);
  git(module.place, ...quiet, 'submodule', '--quiet', 'deinit', '--force', 'sub');
  await client.send(module.id, { text: 'hi' });
  assert.match(String((await close(client, module.id))?.why), /not looked at by git: sub/);
});

test('sessions that share a worktree keep it until the last one is closed', async (context) => {
  const { client, create } = await start(context);
  const { id, place } = await create();
  const reader = await client.events(id);
  const seq = await client.send(id, { text: 'hi' });
  await reader.until('the reply', isEntry('LlmCompleted'));
  reader.close();
  const forked =
    (await client.ask('POST', `/v1/sessions/${id}/fork`, { seq })).body.sessionId ?? '';
  await client.send(forked, { text: 'hi too' });
  assert.match(String((await close(client, id))?.why), /another open session/);
  assert.deepEqual(await close(client, forked), { kind: 'removed' });
  await client.send(id, { text: 'hi again' });
  assert.equal(existsSync(path.join(place, 'a.txt')), true);
});

test('a lost worktree stops the session with words, and a move lists what is lost to user and model', async (context) => {
  const script: Script = {
    replies: [
      { calls: [{ tool: 'edit', callId: 'c1', input: { path: 'a.txt', text: 'two\n' } }] },
      { text: 'It is changed.' },
      {
        text: 'I know.',
        expect: { last: { contains: ['The workspace was lost', '- a.txt', 'go on'] } },
      },
    ],
  };
  const { client, create, linked } = await start(context, script);
  const { id, place } = await create();
  const reader = await client.events(id);
  await client.send(id, { text: 'change it' });
  const told = await reader.until('the second reply', (message) =>
    isEntry('LlmCompleted')(message)
      ? JSON.stringify(message.content).includes('It is changed')
      : false,
  );
  assert.equal(readFileSync(path.join(place, 'a.txt'), 'utf8'), 'two\n');
  assert.equal((await client.ask('POST', `/v1/sessions/${id}/move`)).status, 409);
  rmSync(place, { recursive: true });
  const refused = await client.ask('POST', `/v1/sessions/${id}/inputs`, { text: 'go on' });
  assert.deepEqual([refused.status, refused.body.error?.code], [409, 'workspaceGone']);
  assert.match(refused.body.error?.message ?? '', /POST \/v1\/sessions\/ID\/move/);
  assert.equal((await client.describe(id)).workspace?.isPresent, false);
  const moved = await client.ask('POST', `/v1/sessions/${id}/move`);
  assert.equal(moved.status, 200, moved.text);
  assert.deepEqual(moved.body.lost, ['a.txt']);
  assert.deepEqual([moved.body.workspace?.path, linked().length], [place, 1]);
  assert.equal(readFileSync(path.join(place, 'a.txt'), 'utf8'), 'one\n');
  const goOn = (text = 'go on') =>
    client.ask('POST', `/v1/sessions/${id}/inputs`, { text }, { 'idempotency-key': 'go-on' });
  const seq = (await goOn()).body.seq ?? 0;
  assert.equal((await goOn()).body.seq, seq, 'sent again, without the notice that went with it');
  const other = await goOn('stop');
  assert.deepEqual([other.status, other.body.error?.code], [409, 'conflict']);
  const after = await client.events(id, Number(told.id));
  await after.until('the answer of the model, which was told', isEntry('LlmCompleted'));
  const input = after.entries.find((entry) => entry.seq === seq);
  assert.match(
    input?.event.type === 'UserInput' ? input.event.text : '',
    /lost[\s\S]*a\.txt[\s\S]*\n\ngo on$/,
  );
  assert.equal((await client.describe(id)).notice, '');
  after.close();
});

test('the notice of a move that comes while an input with an earlier one is sent is kept', async (context) => {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const call = { tool: 'edit', callId: 'c1', input: { path: 'a.txt', text: 'two\n' } };
  const script = { replies: [{ calls: [call] }, { text: 'It is changed.' }] };
  const { client, create } = await start(context, script, async (world, folder) => {
    const made = await makeLocalNode(world, folder);
    const send: typeof made.runtime.send = async (...input) => {
      const result = await made.runtime.send(...input);
      await held;
      return result;
    };
    return { ...made, runtime: { ...made.runtime, send } };
  });
  const { id, place } = await create();
  const move = async () => {
    rmSync(place, { recursive: true });
    const { status, text } = await client.ask('POST', `/v1/sessions/${id}/move`);
    assert.equal(status, 200, text);
  };
  await move();
  const sending = client.send(id, { text: 'change it' });
  const isWritten = () => readFileSync(path.join(place, 'a.txt'), 'utf8') === 'two\n';
  await until(
    'the end of the turn',
    async () => isWritten() && (await client.describe(id)).state === 'WaitingForUserInput',
  );
  await move();
  goOn();
  await sending;
  assert.match((await client.describe(id)).notice ?? '', /- a\.txt/);
});
