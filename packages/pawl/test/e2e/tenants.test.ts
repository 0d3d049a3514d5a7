import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { DEFAULT_MODEL } from '@pawl/agent/models/provider-table';
import { mayWrite } from '@pawl/agent/platform/files';
import { type Answered, NodeClient } from '../../../../test/kit/serve/node-client.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, makeServed, type Place, startPawl } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Two tenants of a node attack each other; what is theirs works. With the real program, git and sandbox. */

const SECRET = 'the-words-of-the-first-tenant';

const git = (folder: string, ...words: readonly string[]): string => {
  const author = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
  const { status, stdout, stderr } = spawnSync('git', [...author, ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout.trim();
};

/** A folder and a repository of a tenant, each with its words in a file. */
const makeTenant = (above: string, name: string, words: string) => {
  const [folder, repository] = [join(above, name, 'work'), join(above, name, 'api')];
  for (const made of [folder, repository]) {
    mkdirSync(made, { recursive: true });
    writeFileSync(join(made, 'words.txt'), words);
    git(made, 'init', '--quiet', '-b', 'main');
  }
  git(repository, 'add', '.');
  git(repository, 'commit', '--quiet', '-m', words);
  return { folder, repository, commit: git(repository, 'rev-parse', 'HEAD') };
};
type Tenant = ReturnType<typeof makeTenant>;

const tokenOf = (name: string): string => `the-token-of-the-key-${name}`;
const keyOf = (name: string, { folder, repository }: Tenant, more: object = {}) => ({
  ...{ name, token: tokenOf(name), folders: [folder], repositories: { api: repository } },
  ...{ models: [DEFAULT_MODEL], usdPerSession: 2, usdPerDay: 50, labels: { team: name } },
  ...more,
});
const OPERATOR = { name: 'operator', token: tokenOf('operator'), operator: true, folders: [] };

const serveTenants = async (place: Place, keys: readonly object[]) => {
  const file = join(place.folder, 'keys.json');
  const write = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
  write(JSON.stringify({ keys }));
  const running = startPawl(place, ['serve', '--port', '0', '--keys', file], null);
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  const clientOf = (name: string): NodeClient => new NodeClient(address, tokenOf(name));
  return { running, write, file, clientOf };
};

type Attack = (
  attacker: NodeClient,
  about: {
    readonly id: string;
    readonly worktree: string;
    readonly first: Tenant;
    readonly second: Tenant;
  },
) => Promise<Answered>;

const inFolder =
  (find: (about: Parameters<Attack>[1]) => string): Attack =>
  (attacker, about) =>
    attacker.ask('POST', '/v1/sessions', { workspace: { folder: find(about) } });
const inRepository =
  (find: (about: Parameters<Attack>[1]) => { repository: string; commit: string }): Attack =>
  (attacker, about) =>
    attacker.ask('POST', '/v1/sessions', { workspace: find(about) });
const wishing =
  (wish: object): Attack =>
  (attacker, { second }) =>
    attacker.ask('POST', '/v1/sessions', { workspace: { folder: second.folder }, ...wish });
const at =
  (method: string, part: string, body: object = {}): Attack =>
  (attacker, { id }) =>
    attacker.ask(method, `/v1/sessions/${id}${part}`, body);
/** A link in the attacker's repository, as a command of it can make one, to a part of the other. */
const linking =
  (find: (first: Tenant) => string): Attack =>
  async (attacker, { first, second }) => {
    const link = join(second.repository, find(first));
    const aside = join(second.repository, '.git', 'aside');
    mkdirSync(dirname(link), { recursive: true });
    // both may have objects whose names begin alike
    if (existsSync(link)) renameSync(link, aside);
    symlinkSync(join(first.repository, find(first)), link);
    const workspace = { repository: 'api', commit: first.commit };
    const answer = await attacker.ask('POST', '/v1/sessions', { workspace });
    rmSync(link);
    if (existsSync(aside)) renameSync(aside, link);
    return answer;
  };
const answerTo = { type: 'ApprovalAnswered', batchId: 'batch-1', callId: 'c1', scope: 'session' };

const attacks: Readonly<Record<string, readonly [number, Attack]>> = {
  'reads its state': [404, at('GET', '')],
  'follows its events': [404, at('GET', '/events')],
  'sends it an input': [404, at('POST', '/inputs', { text: 'show me your words' })],
  'answers its question': [404, at('POST', '/inputs', { ...answerTo, answer: { kind: 'allow' } })],
  'stops its turn': [404, at('POST', '/inputs', { type: 'CancelTurn' })],
  'forks it': [404, at('POST', '/fork', { seq: 1 })],
  'closes it': [404, at('POST', '/close')],
  'moves it': [404, at('POST', '/move')],
  'asks it as its user': [404, at('POST', '/own', { method: 'state' })],
  'works in its folder': [403, inFolder(({ first }) => first.folder)],
  'works above its folder': [403, inFolder(({ second }) => `${second.folder}/../../first/work`)],
  'works behind a link': [403, inFolder(({ second }) => join(second.folder, 'link'))],
  'works in its worktree': [403, inFolder(({ worktree }) => worktree)],
  'takes its repository by path': [
    403,
    inRepository(({ first }) => ({ repository: first.repository, commit: 'main' })),
  ],
  'takes its repository by address': [
    403,
    inRepository(({ first }) => ({ repository: `file://${first.repository}`, commit: 'main' })),
  ],
  'takes its commit': [
    400,
    inRepository(({ first }) => ({ repository: 'api', commit: first.commit })),
  ],
  'takes its commit by alternates': [
    403,
    async (attacker, { first, second }) => {
      const alternates = join(second.repository, '.git/objects/info/alternates');
      writeFileSync(alternates, `${first.repository}/.git/objects\n`);
      const workspace = { repository: 'api', commit: first.commit };
      const answer = await attacker.ask('POST', '/v1/sessions', { workspace });
      rmSync(alternates);
      return answer;
    },
  ],
  'takes its commit by a linked folder of objects': [
    403,
    linking(({ commit }) => `.git/objects/${commit.slice(0, 2)}`),
  ],
  'takes its commit by a linked object': [
    403,
    linking(({ commit }) => `.git/objects/${commit.slice(0, 2)}/${commit.slice(2)}`),
  ],
  'uses another model': [403, wishing({ model: 'anthropic/claude-opus-4-8' })],
  'widens its preset': [400, wishing({ preset: 'full' })],
  'takes a label': [403, wishing({ labels: { team: 'first' } })],
  'raises a limit': [403, at('POST', '/inputs', { type: 'ApproveBudget', dimension: 'usd' })],
  'changes settings': [403, at('POST', '/inputs', { type: 'SettingsChanged', patch: {} })],
  'reads the figures': [403, (attacker) => attacker.ask('GET', '/metrics')],
};

/** What a command of the attacker tries: each line says what it sees. */
const snoop = (place: Place, above: string, { folder, repository, commit }: Tenant): string =>
  [
    `cat ${folder}/words.txt`,
    `cat ${repository}/words.txt`,
    `git -C ${repository} log -p`,
    `ls ${repository}/.git/objects`,
    `git --git-dir=${repository}/.git show ${commit}`,
    `GIT_ALTERNATE_OBJECT_DIRECTORIES=${repository}/.git/objects git show ${commit}`,
    `cat ${place.state}/pawl/serve/audit.jsonl ${place.folder}/keys.json`,
    `ls ${place.state}/pawl/live ${place.home}/.local/share/pawl/worktrees`,
    'cat link/words.txt',
    // the control: a folder of nobody is seen
    `cat words.txt ${above}/nobody.txt`,
  ].join('; ');

test("two tenants can do nothing with what is the other one's, and everything with their own", async (t) => {
  const place = await makeServed(t, (body) =>
    JSON.stringify(body).includes('tool_result')
      ? done
      : JSON.stringify(body).includes('look around')
        ? message(
            call('c1', 'bash', { command: snoop(place, above, first) }),
            call('c2', 'read', { path: 'link/words.txt' }),
            call('c3', 'read', { path: join(first.folder, 'words.txt') }),
          )
        : done,
  );
  // commands see /opt and not the folder of the test: what is hidden there is hidden for a tenant
  const isSeen = await mayWrite('/opt');
  const above = realpathSync(mkdtempSync(isSeen ? '/opt/pawl-tenants-' : join(place.folder, 't-')));
  chmodSync(above, 0o755); // as for everybody
  atEnd(t, () => rmSync(above, { recursive: true, force: true }));
  writeFileSync(join(above, 'nobody.txt'), 'the words of nobody');
  const first = makeTenant(above, 'first', SECRET);
  const second = makeTenant(above, 'second', 'others');
  symlinkSync(first.folder, join(second.folder, 'link'));
  const keys = [keyOf('first', first), keyOf('second', second), OPERATOR];
  const { running, write, clientOf } = await serveTenants(place, keys);
  atEnd(t, () => void running.child.kill('SIGKILL'));
  const [victim, attacker] = [clientOf('first'), clientOf('second')];

  // the control: what is its own works
  const wanted = { workspace: { repository: 'api', commit: 'main' }, labels: { ticket: '7' } };
  const once = { 'idempotency-key': 'one' };
  const { body } = await victim.ask('POST', '/v1/sessions', wanted, once);
  const [id, worktree] = [body.sessionId ?? '', String(body.workspace?.path)];
  assert.deepEqual(body.labels, { team: 'first', ticket: '7' });
  const reader = await victim.events(id);
  await reader.untilRestAfter(await victim.send(id, { text: 'hello' }));
  const listed = async (client: NodeClient, query: string) =>
    (await client.ask('GET', `/v1/sessions${query}`)).body.sessions?.map(
      ({ sessionId }) => sessionId,
    );
  assert.deepEqual(await listed(victim, '?label=team=first,ticket=7'), [id]);
  assert.deepEqual(await listed(victim, '?label=ticket=8'), []);
  const before = await victim.describe(id);

  const about = { id, worktree, first, second };
  for (const [name, [status, attack]] of Object.entries(attacks)) {
    const answer = await attack(attacker, about);
    assert.equal(answer.status, status, `${name}: ${answer.text}`);
    assert.doesNotMatch(answer.text, new RegExp(`${SECRET}|${id}`), name);
  }
  for (const query of ['', `?before=${id}`, '?label=team=first'])
    assert.deepEqual(await listed(attacker, query), [], query);
  // the other's Idempotency-Keys mean nothing, and limits can only be lowered
  const own = { workspace: { folder: second.folder }, limits: { usd: 1_000 }, preset: 'plan' };
  const made = await attacker.ask('POST', '/v1/sessions', { ...own, model: DEFAULT_MODEL }, once);
  const ownId = made.body.sessionId ?? '';
  assert.notEqual(ownId, id);
  const header = JSON.parse(
    readFileSync(join(place.state, 'pawl', 'sessions', `${ownId}.jsonl`), 'utf8').split('\n')[0] ??
      '',
  );
  assert.equal(header.settings.limits.usd, 2);
  const inside = await attacker.create(second.folder);
  const look = await attacker.events(inside);
  await look.untilRestAfter(await attacker.send(inside, { text: 'look around' }));
  const seen = JSON.stringify(look.entries);
  assert.match(seen, isSeen ? /othersthe words of nobody/ : /others/, 'the command ran');
  assert.doesNotMatch(seen, new RegExp(`${SECRET}|the-token-of`), 'the attacker sees nothing');
  assert.deepEqual(await victim.describe(id), before, 'nothing has changed');

  const { text: figures } = await clientOf('operator').ask('GET', '/metrics');
  assert.match(figures, /gen_ai_client_token_usage_total\{pawl_key="first",.*"output"\} 5\n/);
  assert.match(figures, /pawl_tool_calls_total\{pawl_key="second",status="ok"\} 1\n/);

  const log = join(place.state, 'pawl', 'serve', 'audit.jsonl');
  assert.equal(statSync(log).mode & 0o777, 0o600);
  const lines = readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const actions = (key: string): readonly string[] => [
    ...new Set(lines.filter((line) => line.key === key).map(({ action }) => action)),
  ];
  assert.deepEqual(actions('first'), ['create', 'input']);
  assert.deepEqual(actions('second').toSorted(), [
    ...['approval', 'close', 'create', 'fork', 'input', 'move', 'own', 'settings'],
  ]);
  const asked = lines.filter(({ action }) => action !== undefined);
  const answers = new Map(lines.flatMap((line) => (line.status ? [[line.id, line.status]] : [])));
  assert.equal(
    asked.every((line) => answers.has(line.id)),
    true,
    'each has its answer',
  );
  assert.doesNotMatch(readFileSync(log, 'utf8'), /look around|the-token-of/);

  // a file that can't be used changes nothing; without the key its access ends at once
  write('{ "keys": [');
  await until('the node says so', () => /The keys stay as they were/.test(running.stderr()));
  assert.equal((await attacker.describe(inside)).isOpen, true);
  const open = await attacker.events(inside);
  await open.until('that it has caught up', ({ event }) => event === 'state');
  write(JSON.stringify({ keys: keys.filter(({ name }) => name !== 'second') }));
  await open.over();
  assert.equal(open.messages.at(-1)?.content.reason, 'revoked');
  assert.equal((await attacker.ask('GET', '/v1/sessions')).status, 401);
  assert.equal((await victim.describe(id)).isOpen, true);
  await until('the log tells of the keys', () => /"action":"keys"/.test(readFileSync(log, 'utf8')));
  // nothing is done that the log can't tell
  rmSync(log);
  mkdirSync(log);
  const silent = await victim.ask('POST', `/v1/sessions/${id}/inputs`, { text: 'more' });
  assert.deepEqual([silent.status, silent.body.error?.code], [503, 'unavailable']);
  assert.deepEqual((await victim.describe(id)).seq, before.seq);
  running.child.kill('SIGTERM');
  assert.equal((await running.ended).code, 0, running.stderr());
  const words = ['serve', '--keys', join(place.folder, 'keys.json'), '--sandbox', 'off'];
  const unfenced = await runInProcess(place, words);
  expectCode(unfenced, 78);
  assert.match(unfenced.stderr, /without a sandbox commands see all of them/);
});
