import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DEFAULT_MODEL } from '@pawl/agent/models/provider-table';
import { mayAccess } from '@pawl/agent/platform/files';
import type { Answered, NodeClient } from '../../../../test/kit/serve/node-client.js';
import { atEnd, type TestScope } from '../../../../test/temporary-folder.js';
import { makeServed, type Place } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Two tenants of one or several nodes, and what one of them tries against the other. */

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

export const tokenOf = (name: string): string => `the-token-of-the-key-${name}`;
const keyOf = (name: string, { folder, repository }: Tenant, more: object = {}) => ({
  ...{ name, token: tokenOf(name), folders: [folder], repositories: { api: repository } },
  ...{ models: [DEFAULT_MODEL], usdPerSession: 2, usdPerDay: 50, labels: { team: name } },
  ...more,
});
const OPERATOR = { name: 'operator', token: tokenOf('operator'), operator: true, folders: [] };

type Victim = {
  readonly id: string;
  readonly worktree: string;
  readonly first: Tenant;
  readonly second: Tenant;
};
type Attack = (attacker: NodeClient, about: Victim) => Promise<Answered>;

const inFolder =
  (find: (about: Victim) => string): Attack =>
  (attacker, about) =>
    attacker.ask('POST', '/v1/sessions', { workspace: { folder: find(about) } });
const inRepository =
  (find: (about: Victim) => { repository: string; commit: string }): Attack =>
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

/** A client of a node, by the name of its key. */
type ClientOf = (name: string) => NodeClient;
export type Tenants = Awaited<ReturnType<typeof makeTenants>>;

/** `answer`: what the model says if nobody looks around; `ofFirst`: more about the key of the first tenant. */
export const makeTenants = async (
  t: TestScope,
  answer = done,
  ofFirst: object = {},
  more: NodeJS.ProcessEnv = {},
) => {
  const isLooking = (text: string) => text.includes('look around') && !text.includes('tool_result');
  const looks = () =>
    message(
      call('c1', 'bash', { command: snoop(place, above, first) }),
      call('c2', 'read', { path: 'link/words.txt' }),
      call('c3', 'read', { path: join(first.folder, 'words.txt') }),
    );
  const reply = (body: unknown) => (isLooking(JSON.stringify(body)) ? looks() : answer);
  const place = await makeServed(t, reply, more);
  // commands see /opt and not the folder of the test: what is hidden there is hidden for a tenant
  const isSeen = mayAccess('/opt', constants.W_OK);
  const above = realpathSync(mkdtempSync(isSeen ? '/opt/pawl-tenants-' : join(place.folder, 't-')));
  chmodSync(above, 0o755); // as for everybody
  atEnd(t, () => rmSync(above, { recursive: true, force: true }));
  writeFileSync(join(above, 'nobody.txt'), 'the words of nobody');
  const first = makeTenant(above, 'first', SECRET);
  const second = makeTenant(above, 'second', 'others');
  symlinkSync(first.folder, join(second.folder, 'link'));
  const keys = [keyOf('first', first, ofFirst), keyOf('second', second), OPERATOR];
  const file = join(place.folder, 'keys.json');
  const writeKeys = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
  writeKeys(JSON.stringify({ keys }));
  return { place, isSeen, first, second, keys, file, writeKeys };
};

/** The ids of the sessions that a client sees. */
const listed = async (client: NodeClient, query: string) =>
  (await client.ask('GET', `/v1/sessions${query}`)).body.sessions?.map(
    ({ sessionId }) => sessionId,
  );

/** The first tenant works at the first node, the second one attacks it at each; all must fail. */
export const attackEverywhere = async (
  { first, second, isSeen }: Tenants,
  nodes: readonly [ClientOf, ...ClientOf[]],
) => {
  const [victim, attacker] = [nodes[0]('first'), nodes[0]('second')];
  // the control: what is its own works
  const wanted = { workspace: { repository: 'api', commit: 'main' }, labels: { ticket: '7' } };
  const once = { 'idempotency-key': 'one' };
  const { body } = await victim.ask('POST', '/v1/sessions', wanted, once);
  const [id, worktree] = [body.sessionId ?? '', String(body.workspace?.path)];
  assert.deepEqual(body.labels, { team: 'first', ticket: '7' });
  const reader = await victim.events(id);
  await reader.untilRestAfter(await victim.send(id, { text: 'hello' }));
  assert.deepEqual(await listed(victim, '?label=team=first,ticket=7'), [id]);
  assert.deepEqual(await listed(victim, '?label=ticket=8'), []);
  const before = await victim.describe(id);

  const about = { id, worktree, first, second };
  for (const clientOf of nodes) {
    for (const [name, [status, attack]] of Object.entries(attacks)) {
      const answer = await attack(clientOf('second'), about);
      assert.equal(answer.status, status, `${name}: ${answer.text}`);
      assert.doesNotMatch(answer.text, new RegExp(`${SECRET}|${id}`), name);
    }
    for (const query of ['', `?before=${id}`, '?label=team=first'])
      assert.deepEqual(await listed(clientOf('second'), query), [], query);
  }
  // the other's Idempotency-Keys mean nothing, and limits can only be lowered
  const own = { workspace: { folder: second.folder }, limits: { usd: 1_000 }, preset: 'plan' };
  const made = await attacker.ask('POST', '/v1/sessions', { ...own, model: DEFAULT_MODEL }, once);
  const ownId = made.body.sessionId ?? '';
  assert.notEqual(ownId, id);
  const inside = await attacker.create(second.folder);
  const look = await attacker.events(inside);
  await look.untilRestAfter(await attacker.send(inside, { text: 'look around' }));
  const seen = JSON.stringify(look.entries);
  assert.match(seen, isSeen ? /othersthe words of nobody/ : /others/, 'the command ran');
  assert.doesNotMatch(seen, new RegExp(`${SECRET}|the-token-of`), 'the attacker sees nothing');
  assert.deepEqual(await victim.describe(id), before, 'nothing has changed');
  return { victim, attacker, id, before, ownId, inside };
};
