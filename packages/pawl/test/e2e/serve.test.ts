import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isEntry, NodeClient } from '../../../../test/kit/serve/node-client.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place, root, start, startPawl, uniqueSleep } from './pawl.js';
import { call, done, message, text } from './wire-words.js';

// `pawl serve` as operators start it, and the examples of docs/build/serve.md.

const TOKEN = 'the-token-of-this-test';

const makeRepository = (place: Place): string => {
  const git = (...words: readonly string[]): void => {
    const own = [
      '-c',
      'user.name=Test',
      '-c',
      'user.email=test@example.com',
      '-c',
      'init.defaultBranch=main',
    ];
    const { status, stderr } = spawnSync('git', [...own, ...words], {
      cwd: place.workspace,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
  };
  git('init', '--quiet');
  git('commit', '--quiet', '--allow-empty', '-m', 'first');
  return place.workspace;
};

const serve = async (place: Place, repository: string) => {
  const words = [
    'serve',
    '--port',
    '0',
    '--repository',
    `api=${repository}`,
    '--drain-seconds',
    '1',
    '--max-usd',
    '5',
  ];
  const running = startPawl(place, words, null);
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  return { running, client: new NodeClient(address, TOKEN) };
};

/** The commands of docs/build/serve.md for clients, in their order. */
const exampleScript = (address: string): string => {
  const page = readFileSync(join(root, 'docs/build/serve.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  assert.equal(blocks.length, 2);
  // A stream has no end of its own: it is read until the turn is over.
  const brief = `curl() { case "$1" in
    -sN) command curl "$@" > stream.txt &
      until grep -q WaitingForUserInput stream.txt; do sleep 0.05; done; kill $!; cat stream.txt ;;
    *) command curl "$@" ;;
  esac; }`;
  return [brief, ...blocks].join('\n').replace(/^NODE=.*$/m, `NODE=${address}`);
};

test('a node serves the examples of its page, ends on SIGTERM with nothing lost, and goes on after a restart', async (t) => {
  const sleep = uniqueSleep(t);
  const place = await makeServed(
    t,
    [
      message(text('The parser has its test.')),
      message(call('c1', 'bash', { command: `echo begun > begun.txt; sleep ${sleep}` })),
      done,
    ],
    { PAWL_SERVE_TOKEN: TOKEN },
  );
  const repository = makeRepository(place);
  const first = await serve(place, repository);
  atEnd(t, () => void first.running.child.kill('SIGKILL'));
  const examples = await start(place, 'bash', ['-c', exampleScript(first.client.address)]).ended;
  expectCode(examples, 0);
  assert.match(
    examples.stdout,
    /event: entry\ndata: .*"type":"UserInput".*Add a test for the parser/,
  );
  assert.match(
    examples.stdout,
    /event: entry\ndata: .*"type":"LlmCompleted".*The parser has its test/,
  );
  assert.match(examples.stdout, /"state":"WaitingForUserInput"/);
  assert.match(examples.stdout, /\{"workspace":\{"kind":"(kept|removed)"/);
  assert.match(
    examples.stdout,
    /"code":"conflict","message":"The workspace .* was removed with nothing lost/,
  );
  assert.doesNotMatch(examples.stdout, /"code":"(?!conflict)/);

  // what others left was looked for once: the names of all sessions are not read for each new one
  const leftover = join(place.state, 'pawl/sessions/20260101-000000-00000000.jsonl.new');
  writeFileSync(leftover, '');
  const wanted = { workspace: { repository: 'api', commit: 'main' } };
  const { body } = await first.client.ask('POST', '/v1/sessions', wanted);
  assert.equal(existsSync(leftover), true);
  const [id, worktree] = [body.sessionId ?? '', String(body.workspace?.path)];
  const reader = await first.client.events(id);
  const seq = await first.client.send(id, { text: 'wait long' });
  // The shell that runs it has the same words, a moment before it begins.
  await until('the command runs', () => existsSync(join(worktree, 'begun.txt')));
  first.running.child.kill('SIGTERM');
  assert.equal((await first.running.ended).code, 0, first.running.stderr());
  await until('no process is left', () => processesWith(sleep).length === 0);
  assert.equal(reader.messages.at(-1)?.content.reason, 'draining');
  const token = readdirSync(join(place.state, 'pawl'), {
    recursive: true,
    encoding: 'utf8',
  }).filter((name) => {
    const file = join(place.state, 'pawl', name);
    return /\.(json|jsonl)$/.test(name) && readFileSync(file, 'utf8').includes(TOKEN);
  });
  assert.deepEqual(token, []);
  expectCode(await runInProcess(place, ['verify', id]), 0);

  const second = await serve(place, repository);
  atEnd(t, () => void second.running.child.kill('SIGKILL'));
  const again = await second.client.events(id);
  // its client has not closed it, so it opens for its reader, and waits
  const { content } = await again.until('that it has caught up', ({ event }) => event === 'state');
  assert.equal(content.state, 'WaitingForUserInput');
  const audit = readFileSync(join(place.state, 'pawl', 'serve', 'audit.jsonl'), 'utf8');
  assert.match(audit, new RegExp(`"key":"default","action":"open","sessionId":"${id}"`));
  assert.equal(
    again.entries.some((entry) => entry.seq === seq && entry.event.type === 'UserInput'),
    true,
  );
  again.close();
  const next = await second.client.send(id, { text: 'go on' });
  const live = await second.client.events(id, next);
  const answer = await live.until('the answer', isEntry('LlmCompleted'));
  assert.match(JSON.stringify(answer.content), /Done\./);
  second.running.child.kill('SIGINT');
  assert.equal((await second.running.ended).code, 0);
});

test('a node that offers a folder that is no repository does not start', async (t) => {
  const place = await makeServed(t, () => done);
  const ended = await runInProcess(place, ['serve', '--repository', `api=${place.home}`]);
  expectCode(ended, 2);
  assert.match(ended.stderr, /--repository api=.* is not the working tree of a git repository/);
});
