import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import { isEntry, isPiece, NodeClient } from '../../../test/kit/serve/node-client.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { fileSpending } from '../src/spending.js';
import { keyNamed, type MakeNodeRuntime, startTestNode, tokenOf } from './node-under-test.js';

/** What the HTTP API of a node promises, over any runtime. */

export type HttpCheck = {
  readonly name: string;
  run(context: TestContext, make: MakeNodeRuntime): Promise<void>;
};

const codeOf = (answer: {
  readonly status: number;
  readonly body: { readonly error?: { readonly code: string } };
}) => [answer.status, answer.body.error?.code];

const MEGABYTE = 1024 * 1024;

const approvalScript: Script = {
  replies: [
    { calls: [{ tool: 'change', callId: 'c1', input: { text: 'x' } }] },
    { text: 'It is done.' },
  ],
};

const admission: readonly HttpCheck[] = [
  {
    name: 'a wrong token, a missing one and the token of nobody get nothing',
    async run(context, make) {
      const { client, node } = await startTestNode(context, make);
      for (const token of [null, 'wrong', `${tokenOf('one')}x`, '']) {
        const answer = await new NodeClient(node.address, token).ask('GET', '/v1/sessions');
        assert.deepEqual(codeOf(answer), [401, 'wrongToken']);
        assert.match(answer.body.error?.message ?? '', /Authorization: Bearer/);
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
      }
      const metrics = await new NodeClient(node.address, null).ask('GET', '/metrics');
      assert.equal(metrics.status, 401);
      const health = await new NodeClient(node.address, null).ask('GET', '/health');
      assert.deepEqual([health.status, health.body.status], [200, 'ok']);
      assert.deepEqual(codeOf(await client.ask('GET', '/v1/nothing')), [404, 'notFound']);
      assert.deepEqual(codeOf(await client.ask('POST', '/metrics')), [405, 'wrongMethod']);
    },
  },
  {
    name: 'a foreign Host and a web page get nothing, not even from /health',
    async run(context, make) {
      const { client, node } = await startTestNode(context, make, { names: ['agents.example'] });
      const { port } = new URL(node.address);
      for (const host of [
        'evil.example',
        `evil.example:${port}`,
        `127.0.0.1:${Number(port) - 1}`,
      ]) {
        assert.deepEqual(codeOf(await client.ask('GET', '/v1/sessions', undefined, { host })), [
          403,
          'notAllowed',
        ]);
        assert.equal((await client.ask('GET', '/health', undefined, { host })).status, 403);
      }
      for (const host of [`localhost:${port}`, 'agents.example'])
        assert.equal((await client.ask('GET', '/v1/sessions', undefined, { host })).status, 200);
      const origin = { origin: 'http://evil.example' };
      assert.deepEqual(codeOf(await client.ask('GET', '/v1/sessions', undefined, origin)), [
        403,
        'notAllowed',
      ]);
      const rebound = { host: 'evil.example', origin: 'http://evil.example' };
      assert.equal((await client.ask('GET', '/v1/sessions', undefined, rebound)).status, 403);
    },
  },
  {
    name: 'a key that sends too much waits, and the others do not',
    async run(context, make) {
      let nowMs = 0;
      const keys = [keyNamed('one', { requestsPerMinute: 2 }), keyNamed('two')];
      const { client, clientOf } = await startTestNode(context, make, { keys, now: () => nowMs });
      const ask = async () => (await client.ask('GET', '/v1/sessions')).status;
      assert.deepEqual([await ask(), await ask()], [200, 200]);
      const refused = await client.ask('GET', '/v1/sessions');
      assert.deepEqual(codeOf(refused), [429, 'tooManyRequests']);
      assert.equal(refused.headers['retry-after'], '30');
      assert.equal((await clientOf('two').ask('GET', '/v1/sessions')).status, 200);
      nowMs = 30_000;
      assert.deepEqual([await ask(), await ask()], [200, 429]);
    },
  },
  {
    name: 'a key sees only its own sessions, and no session that does not exist',
    async run(context, make) {
      const { client, clientOf, workspace } = await startTestNode(context, make);
      const other = clientOf('two');
      const own = await client.create(workspace);
      const ids = [own, '20260101-000000-00000000', '..', 'x'.repeat(200)];
      for (const id of ids)
        for (const [method, part, body] of [
          ['GET', '', {}],
          ['GET', '/events', {}],
          ['POST', '/inputs', { text: 'hi' }],
          ['POST', '/fork', { seq: 1 }],
          ['POST', '/close', {}],
          ['POST', '/move', {}],
        ] as const)
          assert.deepEqual(codeOf(await other.ask(method, `/v1/sessions/${id}${part}`, body)), [
            404,
            'notFound',
          ]);
      assert.deepEqual((await other.ask('GET', '/v1/sessions')).body.sessions, []);
      assert.equal((await client.describe(own)).state, 'Ready');
    },
  },
];

const inputs: readonly HttpCheck[] = [
  {
    name: 'what is no valid request is refused with the field and what to do',
    async run(context, make) {
      const { client, workspace } = await startTestNode(context, make);
      const id = await client.create(workspace);
      const inputsPath = `/v1/sessions/${id}/inputs`;
      const cases: readonly (readonly [string, object | string, number, RegExp])[] = [
        [inputsPath, '{"text": ', 400, /not JSON/],
        [inputsPath, `{"text":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, 400, /nests deeper/],
        [inputsPath, '[]', 400, /type: must be one of/],
        [inputsPath, '"text"', 400, /type: must be one of/],
        [inputsPath, {}, 400, /type: must be one of/],
        [inputsPath, { type: 'constructor' }, 400, /type: must be one of/],
        [inputsPath, { text: 5 }, 400, /text is 5; it must be a text/],
        [inputsPath, { text: 'x', more: 1 }, 400, /more/],
        [
          inputsPath,
          { type: 'SettingsChanged', patch: { sandbox: 'off' } },
          403,
          /choice of the operator/,
        ],
        [inputsPath, { type: 'ApproveBudget', dimension: 'usd', limit: 99 }, 403, /Limits are set/],
        [inputsPath, { type: 'ShutdownRequested' }, 403, /close/],
        ['/v1/sessions', {}, 400, /workspace/],
        ['/v1/sessions', { workspace: { folder: workspace }, sandbox: 'off' }, 400, /sandbox/],
        [
          '/v1/sessions',
          { workspace: { folder: workspace }, preset: 'auto' },
          400,
          /can only be "plan"/,
        ],
        [
          '/v1/sessions',
          { workspace: { folder: workspace }, limits: { usd: -1 } },
          400,
          /limits\.usd: must be above 0/,
        ],
        ['/v1/sessions', { workspace: { folder: '/' } }, 403, /has not allowed the folder/],
        ['/v1/sessions', { workspace: { folder: `${workspace}/../..` } }, 403, /has not allowed/],
        ['/v1/sessions', { workspace: { folder: 'work' } }, 403, /has not allowed/],
        [
          '/v1/sessions',
          { workspace: { repository: 'api', commit: 'main' } },
          403,
          /does not offer/,
        ],
        [`${inputsPath}?mode=steer`, { text: 'x' }, 400, /takes no parameters; not mode/],
        [`/v1/sessions/${id}/fork`, { seq: 'x' }, 400, /seq/],
        [`/v1/sessions/${id}/fork`, { seq: 1_000 }, 400, /no entry 1000/],
      ];
      for (const [path, body, status, message] of cases) {
        const answer = await client.ask('POST', path, body);
        assert.equal(answer.status, status, answer.text);
        assert.match(answer.body.error?.message ?? '', message);
      }
      const asText = await client.ask('POST', inputsPath, '{"text":"x"}', {
        'content-type': 'text/plain',
      });
      assert.deepEqual(codeOf(asText), [415, 'wrongType']);
      for (const [query, message] of [
        ['limit=0', /limit: must be a number from 1 to 1000/],
        ['limit=5000', /limit/],
        ['limit=1?0', /limit: must be a number/],
        ['label=a=b&label=c=d', /label stands twice/],
        ['page=2', /takes limit, before, label; not page/],
      ] as const) {
        const listed = await client.ask('GET', `/v1/sessions?${query}`);
        assert.deepEqual(codeOf(listed), [400, 'badRequest']);
        assert.match(listed.body.error?.message ?? '', message);
      }
      const oddKey = await client.ask(
        'POST',
        inputsPath,
        { text: 'x' },
        { 'idempotency-key': ' ' },
      );
      assert.deepEqual(codeOf(oddKey), [400, 'badRequest']);
      const streamed = await client.ask('GET', `/v1/sessions/${id}/events?after=7`);
      assert.deepEqual(codeOf(streamed), [400, 'badRequest']);
      assert.equal((await client.describe(id)).seq, 0);
    },
  },
  {
    name: 'an input of 10 MB is taken whole, and one over the limit is refused with words while it is sent',
    async run(context, make) {
      const keys = [keyNamed('one'), keyNamed('two', { inputBytes: MEGABYTE })];
      const { client, clientOf, workspace } = await startTestNode(context, make, { keys });
      const id = await client.create(workspace);
      const text = randomBytes(5 * MEGABYTE).toString('hex');
      const seq = await client.send(id, { text });
      const reader = await client.events(id, seq - 1);
      const { content } = await reader.until('the input', isEntry('UserInput'));
      assert.equal((content.event as { readonly text: string }).text === text, true);
      const refused = await client.ask('POST', `/v1/sessions/${id}/inputs`, {
        text: 'x'.repeat(17 * MEGABYTE),
      });
      assert.deepEqual(codeOf(refused), [413, 'tooLarge']);
      assert.match(
        refused.body.error?.message ?? '',
        /larger than 16 MB.*Put the text into a file/,
      );
      // without a length the limit counts what has come
      const small = clientOf('two');
      const other = await small.create(workspace);
      const chunked = { 'transfer-encoding': 'chunked' };
      const path = `/v1/sessions/${other}/inputs`;
      const late = await small.ask('POST', path, { text: 'x'.repeat(3 * MEGABYTE) }, chunked);
      assert.deepEqual(codeOf(late), [413, 'tooLarge']);
      assert.equal((await small.describe(other)).seq, 0);
      reader.close();
    },
  },
  {
    name: 'a session waits for an approval, and the answer decides',
    async run(context, make) {
      const { presetRules } = await import('@pawl/agent/policy/presets');
      const settings = { rules: presetRules.careful };
      const { client, workspace } = await startTestNode(context, make, {
        script: approvalScript,
        settings,
      });
      const id = await client.create(workspace);
      const reader = await client.events(id);
      await client.send(id, { text: 'change it' });
      const { content } = await reader.until('the question', (message) =>
        message.event === 'state'
          ? (message.content.approvals as readonly unknown[]).length === 1
          : false,
      );
      assert.deepEqual(content.state, 'ExecutingTools');
      const { approvals = [], state } = await client.describe(id);
      assert.equal(state, 'ExecutingTools');
      const [asked] = approvals;
      assert.match(asked?.why ?? '', /careful asks before changes/);
      assert.equal(reader.messages.some(isEntry('ToolStarted')), false);
      assert.ok(asked !== undefined);
      const { batchId, callId, code } = asked;
      assert.match(code, /^[0-9a-f]{8}$/);
      const about = { type: 'ApprovalAnswered', batchId, callId, scope: 'once' };
      const allows = { ...about, answer: { kind: 'allow' } };
      for (const [wrong, refusal] of [
        ['00000000', [409, 'conflict']],
        [1, [400, 'badRequest']],
      ] as const) {
        const path = `/v1/sessions/${id}/inputs`;
        const refused = await client.ask('POST', path, { ...allows, code: wrong });
        assert.deepEqual(codeOf(refused), refusal);
      }
      assert.equal((await client.describe(id)).approvals?.length, 1, 'it waits as before');
      const answered = await client.send(id, { ...allows, code });
      await reader.untilRestAfter(answered);
      assert.equal(reader.messages.some(isEntry('ToolStarted')), true);
      reader.close();
    },
  },
];

const lives: readonly HttpCheck[] = [
  {
    name: 'a request that is sent again with its Idempotency-Key counts once, also to a restarted node',
    async run(context, make) {
      const started = await startTestNode(context, make);
      const { workspace } = started;
      const [first, other] = [{ 'idempotency-key': 'first' }, { 'idempotency-key': 'other' }];
      const body = { workspace: { folder: workspace } };
      const create = (headers: Record<string, string>, client = started.client) =>
        client.ask('POST', '/v1/sessions', body, headers);
      const [made, again, another] = await Promise.all([
        create(first),
        create(first),
        create(other),
      ]);
      assert.deepEqual([made.status, again.status, another.status], [201, 201, 201]);
      assert.equal(made.body.sessionId, again.body.sessionId);
      assert.notEqual(made.body.sessionId, another.body.sessionId);
      // another key has requests of its own
      const foreign = await create(first, started.clientOf('two'));
      assert.notEqual(foreign.body.sessionId, made.body.sessionId);

      const path = `/v1/sessions/${made.body.sessionId}`;
      const say = (headers: Record<string, string>, client = started.client) =>
        client.ask('POST', `${path}/inputs`, { text: 'echo one' }, headers);
      const said = await Promise.all([say(first), say(first), say(other)]);
      const seqs = said.map((answer) => answer.body.seq);
      assert.equal(seqs[0], seqs[1]);
      assert.notEqual(seqs[0], seqs[2]);
      const fork = (client = started.client) =>
        client.ask('POST', `${path}/fork`, { seq: seqs[0] }, { 'idempotency-key': 'fork' });
      const forks = [await fork(), await fork()];
      assert.equal(forks[0]?.body.sessionId, forks[1]?.body.sessionId);
      const forked = await started.client.ask('POST', `${path}/fork`, { seq: seqs[0] }, first);
      assert.notEqual(forked.body.sessionId, made.body.sessionId);

      const { client } = await started.again();
      assert.equal((await say(first, client)).body.seq, seqs[0]);
      assert.equal((await create(first, client)).body.sessionId, made.body.sessionId);
      assert.equal((await fork(client)).body.sessionId, forks[0]?.body.sessionId);
    },
  },
  {
    name: 'an input that the key can not pay for today is refused at once, and one that was accepted before is not',
    async run(context, make) {
      const spending = fileSpending(temporaryFolder(context, 'spending'));
      const keys = [{ ...keyNamed('one'), perDay: { tokens: 100 } }, keyNamed('two')];
      const { client, clientOf, workspace } = await startTestNode(context, make, {
        keys,
        spending,
      });
      const id = await client.create(workspace);
      const say = (requestId: string, body: object = { text: 'hi' }) =>
        client.ask('POST', `/v1/sessions/${id}/inputs`, body, { 'idempotency-key': requestId });
      const accepted = await say('first');
      assert.equal(accepted.status, 202, accepted.text);
      const day = new Date().toISOString().slice(0, 10);
      await spending.charge('one', { kind: 'settle', day, reserved: 0, usd: 0, tokens: 100 });
      const refused = await say('second');
      assert.deepEqual(codeOf(refused), [429, 'quotaExhausted']);
      assert.match(refused.body.error?.message ?? '', /one has used its 100 tokens of this day/);
      const seconds = Number(refused.headers['retry-after']);
      assert.ok(seconds > 0 && seconds <= 24 * 60 * 60, String(seconds));
      assert.equal((await say('first')).body.seq, accepted.body.seq);
      assert.equal((await say('third', { type: 'CancelTurn' })).status, 202);
      const other = clientOf('two');
      await other.send(await other.create(workspace), { text: 'hi' });
    },
  },
  {
    name: 'a key lists its sessions in pages, the newest first',
    async run(context, make) {
      const { client, clientOf, workspace } = await startTestNode(context, make);
      const ids: string[] = [];
      for (let count = 0; count < 5; count += 1) ids.push(await client.create(workspace));
      await clientOf('two').create(workspace);
      const listed: string[] = [];
      let query = '?limit=2';
      for (let pages = 1; ; pages += 1) {
        const { sessions = [], next } = (await client.ask('GET', `/v1/sessions${query}`)).body;
        listed.push(...sessions.map(({ sessionId }) => sessionId));
        if (next === null) break;
        assert.ok(pages < 3, 'more pages than sessions');
        query = `?limit=2&before=${next}`;
      }
      assert.deepEqual(listed, ids.toSorted().toReversed());
      const whole = (await client.ask('GET', '/v1/sessions')).body;
      assert.deepEqual([whole.sessions?.length, whole.next], [5, null]);
    },
  },
  {
    name: 'a session is created, goes on, is forked, listed, closed, and opened again by an input',
    async run(context, make) {
      const { client, workspace } = await startTestNode(context, make);
      const id = await client.create(workspace);
      const reader = await client.events(id);
      await reader.until('that it has caught up', ({ event }) => event === 'state');
      const seq = await client.send(id, { text: 'echo one' });
      await reader.untilRestAfter(seq);
      const deltas = reader.messages.flatMap(({ event, content }) =>
        event === 'delta' ? [String(content.text)] : [],
      );
      assert.equal(deltas.join(''), 'one');
      assert.deepEqual(
        reader.entries.map((entry) => entry.seq),
        reader.entries.map((_, index) => index + 1),
      );
      const forked = await client.ask('POST', `/v1/sessions/${id}/fork`, { seq });
      assert.equal(forked.status, 201, forked.text);
      assert.deepEqual(forked.body.parent, { sessionId: id, seq });
      const closed = await client.ask('POST', `/v1/sessions/${id}/close`);
      assert.equal(closed.status, 200, closed.text);
      const { content } = await reader.until('the last event', ({ event }) => event === 'end');
      assert.deepEqual([content.reason, content.seq], ['closed', reader.entries.at(-1)?.seq]);
      const sessions = (await client.ask('GET', '/v1/sessions')).body.sessions ?? [];
      assert.deepEqual(
        sessions.map(({ sessionId, isOpen, title }) => [sessionId, isOpen, title]).toSorted(),
        [
          [id, false, 'echo one'],
          [forked.body.sessionId, false, 'echo one'],
        ].toSorted(),
      );
      const stored = await client.events(id, 1);
      await stored.over();
      assert.deepEqual([stored.entries[0]?.seq, stored.messages.at(-1)?.event], [2, 'end']);
      const later = await client.send(id, { text: 'echo two' });
      assert.equal((await client.describe(id)).isOpen, true);
      const again = await client.events(id);
      await again.untilRestAfter(later);
      again.close();
    },
  },
  {
    name: 'a node that was restarted closes a session that it has not used since, also in the middle of a turn',
    async run(context, make) {
      const started = await startTestNode(context, make);
      const id = await started.client.create(started.workspace);
      const reader = await started.client.events(id);
      await started.client.send(id, { text: 'wait' });
      await reader.until('a piece of the reply', isPiece);
      reader.close();
      const { client } = await started.again();
      const closed = await client.ask('POST', `/v1/sessions/${id}/close`);
      assert.equal(closed.status, 200, closed.text);
      const { state, isOpen, busy } = await client.describe(id);
      assert.deepEqual([state, isOpen, busy], ['ShuttingDown', false, false]);
    },
  },
  {
    name: 'a key opens no more sessions than it may, also at once, and a closed one makes room',
    async run(context, make) {
      const { client, clientOf, workspace } = await startTestNode(context, make, {
        keys: [keyNamed('one', { sessions: 2 }), keyNamed('two')],
      });
      const create = () => client.ask('POST', '/v1/sessions', { workspace: { folder: workspace } });
      const answers = await Promise.all(Array.from({ length: 6 }, create));
      const statuses = answers.map(({ status }) => status).toSorted();
      assert.deepEqual(statuses, [201, 201, 429, 429, 429, 429]);
      assert.deepEqual(codeOf(await create()), [429, 'tooManySessions']);
      const [{ sessionId = '' } = {}] = answers.flatMap(({ status, body }) =>
        status === 201 ? [body] : [],
      );
      // a fork is closed until its first input
      const seq = await client.send(sessionId, { text: 'hi' });
      const forked = await client.ask('POST', `/v1/sessions/${sessionId}/fork`, { seq });
      assert.equal(forked.status, 201, forked.text);
      await clientOf('two').create(workspace);
      await client.ask('POST', `/v1/sessions/${sessionId}/close`);
      assert.equal((await create()).status, 201);
      const reopened = await client.ask('POST', `/v1/sessions/${sessionId}/inputs`, {
        text: 'hi',
      });
      assert.deepEqual(codeOf(reopened), [429, 'tooManySessions']);
    },
  },
];

export const httpChecks: readonly HttpCheck[] = [...admission, ...inputs, ...lives];
