import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { faultsOf } from '../../../../test/kit/agent/walker.js';
import { collect, makeFolder } from '../../../../test/kit/journal/story.js';
import {
  callTools,
  command,
  hang,
  ok,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { moveSecret } from '../../../../test/move-secret.js';
import { chooseRows } from '../../../../test/tier.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { journalPath } from '../../src/journal/state-folder.js';
import { exportSession, importSession, verifyStored } from '../../src/journal/transfer.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { MACHINE_VERSION } from '../../src/machine/machine.js';
import type { Message } from '../../src/machine/message.js';
import type { State } from '../../src/machine/state.js';
import type { Tool } from '../../src/ports/tool.js';
import { openSession } from '../../src/session/create-agent.js';
import { type Edit, otherPawl, type Pawl } from './planted-machine.js';

/** Sessions of this machine, gone on with by later ones: no upgrade strands a session. */

const present: Pick<Pawl, 'openSession' | 'fileJournals'> = { openSession, fileJournals };

const fieldAdded: readonly Edit[] = [
  {
    file: 'agent/src/machine/machine.ts',
    from: '  epoch: 0,\n  reserved',
    to: '  epoch: 0,\n  planted: 0,\n  reserved',
  },
  {
    file: 'agent/src/machine/state.ts',
    from: '  epoch: newOr(parts.epoch, session.epoch),\n',
    to: '  epoch: newOr(parts.epoch, session.epoch),\n  planted: 0,\n',
  },
];
const idsOtherwise: readonly Edit[] = [
  {
    file: 'agent/src/machine/state.ts',
    from: "  request: 'req',\n  batch: 'batch',\n",
    to: "  request: 'asking',\n  batch: 'calls',\n",
  },
];
const table = readFileSync(new URL('../../src/machine/table.ts', import.meta.url), 'utf8');
const hookRow = table.slice(
  table.indexOf('    PostToolsHook: {\n'),
  table.indexOf('    CheckingBudget: {\n'),
);
const stateRemoved: readonly Edit[] = [
  { file: 'agent/src/machine/table.ts', from: hookRow, to: '' },
  {
    file: 'agent/src/machine/table.ts',
    from: "to: 'PostToolsHook', as: 'CheckingGitCommits', then: tools.settle }",
    to: "to: 'CheckingBudget', then: tools.settle }",
  },
  {
    file: 'agent/src/machine/names.ts',
    from: "    PostToolsHook: 'commits are looked for, formatters run, changes are committed',\n",
    to: '',
  },
  {
    file: 'agent/src/machine/moves/batch-events.ts',
    from: "    name: 'PostToolsHook',\n",
    to: "    name: 'CheckingBudget',\n",
  },
];

const machines = {
  'a state field added': fieldAdded,
  'ids computed otherwise': idsOtherwise,
  'a state removed from the middle of a turn': stateRemoved,
} as const;

const look = tool('look', ({ path }) => ok(`content of ${String(path)}`));
const act = (run: () => Promise<void> | void, text = 'acted'): Tool =>
  tool(
    'act',
    async () => {
      await run();
      return ok(text);
    },
    command,
  );

const textsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ role, parts }) =>
    parts.map((part) => `${role}: ${part.type === 'call' ? `call ${part.callId}` : part.text}`),
  );

const conversationOf = ({ session }: State): readonly string[] =>
  textsOf(messagesOf(session.conversation));

const settings = { hooks: 'mutating' } as const;
const batch = callTools(rawCall('one', 'look', { path: 'a.txt' }), rawCall('two', 'act'));

type Written = { readonly folder: string; readonly workspace: string; readonly id: string };

/** Copies the state folder as a crash would leave it, then ends the session that was copied. */
const crash = async (
  context: TestContext,
  { folder, ...rest }: Written,
  end: () => Promise<unknown>,
) => {
  const copy = await makeFolder(context);
  cpSync(folder, copy, { recursive: true, filter: (from) => !/\.lock|\.sock/.test(from) });
  moveSecret(copy);
  await end();
  return { ...rest, folder: copy };
};

const earlier = [
  'user: first',
  'assistant: call one',
  'assistant: call two',
  'user: content of a.txt',
  'user: acted',
  'assistant: done',
];

const open = async (
  context: TestContext,
  tools: readonly Tool[],
  ...more: ReturnType<typeof say>[]
) => {
  const [folder, workspace] = [await makeFolder(context), await makeFolder(context)];
  const model = testModel(batch, say('done'), ...more);
  const session = await openSession({
    model,
    journals: fileJournals({ folder }),
    tools,
    workspace,
    sandbox: 'off',
    settings,
    onApproval: () => 'allow',
    report: () => undefined,
  });
  return { folder, workspace, id: session.id, session, model };
};

const begin = async (...options: Parameters<typeof open>) => {
  const opened = await open(...options);
  await opened.session.prompt('first');
  return opened;
};

type Stage = {
  readonly written: Written;
  /** The conversation that the later machine has to have before anything new is said. */
  readonly expected: readonly string[];
};

const stages: Readonly<Record<string, (context: TestContext) => Promise<Stage>>> = {
  'closed at rest': async (context) => {
    const { session, ...written } = await begin(context, [look, act(() => undefined)]);
    await session.close();
    return { written, expected: earlier };
  },
  'killed at rest': async (context) => {
    const { session, ...written } = await begin(context, [look, act(() => undefined)]);
    return { written: await crash(context, written, () => session.close()), expected: earlier };
  },
  'killed while a command runs': async (context) => {
    let count = 0;
    let release: () => void = () => undefined;
    let started: () => void = () => undefined;
    const runs = new Promise<void>((resolve) => {
      started = resolve;
    });
    const second = act(() => {
      count += 1;
      if (count === 1) return;
      started();
      return new Promise<void>((resolve) => {
        release = resolve;
      });
    });
    const again = callTools(rawCall('three', 'look', { path: 'b.txt' }), rawCall('four', 'act'));
    const { session, ...written } = await begin(context, [look, second], again, say('never said'));
    const prompting = session.prompt('second');
    await runs;
    const copy = await crash(context, written, async () => {
      release();
      await prompting;
      await session.close();
    });
    const expected = [
      ...earlier,
      'user: second',
      'assistant: call three',
      'assistant: call four',
      'user: content of b.txt',
      'user: outcome unknown after a crash',
    ];
    return { written: copy, expected };
  },
  // no state is checked before
  'killed while its first command runs': async (context) => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let started: () => void = () => undefined;
    const runs = new Promise<void>((resolve) => {
      started = resolve;
    });
    const waits = act(() => {
      started();
      return held;
    });
    const { session, ...written } = await open(context, [look, waits]);
    const prompting = session.prompt('first');
    await runs;
    const copy = await crash(context, written, async () => {
      release();
      await prompting;
      await session.close();
    });
    const expected = [...earlier.slice(0, 4), 'user: outcome unknown after a crash'];
    return { written: copy, expected };
  },
  'killed while the model is asked': async (context) => {
    let tell: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const silent: ReturnType<typeof say> = (request, signal) => {
      tell();
      return hang()(request, signal);
    };
    const { session, ...written } = await begin(context, [look, act(() => undefined)], silent);
    const prompting = session.prompt('second');
    await asked;
    const copy = await crash(context, written, async () => {
      await session.cancel();
      await prompting;
      await session.close();
    });
    return { written: copy, expected: [...earlier, 'user: second'] };
  },
};

const upgradesIn = (
  records: readonly { readonly entry: { readonly event: { readonly type: string } } }[],
) =>
  records.flatMap(({ entry: { event } }) =>
    'upgrade' in event && event.upgrade !== undefined
      ? [event.upgrade as { from: number; to: number }]
      : [],
  );

/** Each text of `expected`, in this order; other texts may stand between them. */
const assertHolds = (actual: readonly string[], expected: readonly string[]): void => {
  let from = 0;
  for (const text of expected) {
    const index = actual.findIndex((one, at) => at >= from && one.startsWith(text));
    assert.ok(index >= 0, `'${text}' is missing in ${JSON.stringify(actual, null, 1)}`);
    from = index + 1;
  }
};

const takeOvers = Object.entries(stages).flatMap(([situation, write]) =>
  Object.entries(machines).map(([change, edits]) => ({ situation, write, change, edits })),
);

for (const { situation, write, change, edits } of chooseRows(takeOvers, ({ situation }) =>
  situation.includes('at rest') ? 'at rest' : 'at work',
)) {
  test(`${change}: a session that was ${situation} opens, reads, exports, verifies, forks and goes on`, async (context) => {
    const { written, expected } = await write(context);
    const { folder, workspace, id } = written;
    const pawl = await otherPawl(1, edits);
    const journals = pawl.fileJournals({ folder });

    // reading
    const before = await journals.replay(id);
    assert.deepEqual([before.damage, before.mismatches], [null, []]);
    const isRunning = situation.endsWith('command runs');
    const known = isRunning ? expected.slice(0, -2) : expected;
    assertHolds(conversationOf((await journals.peek(id)).state), known);
    assert.equal((await pawl.verifyStored(join(folder, 'sessions', `${id}.jsonl`))).fault, null);

    // export, import, fork
    const [exported, elsewhere] = [join(folder, 'x.pawl'), await makeFolder(context)];
    await pawl.exportSession(folder, id, exported);
    await pawl.importSession(elsewhere, exported);
    assertHolds(
      conversationOf((await pawl.fileJournals({ folder: elsewhere }).peek(id)).state),
      known,
    );
    await journals.fork(id, before.seq, 'forked', 1);
    assertHolds(conversationOf((await journals.peek('forked')).state), known);

    // going on
    const model = testModel(
      ...(situation.includes('at rest') ? [] : [say('went on')]),
      say('third answer'),
    );
    const options = {
      model,
      journals,
      workspace,
      tools: [look, act(() => undefined)],
      onApproval: () => 'allow' as const,
      report: () => undefined,
    };
    const session = await pawl.openSession({ ...options, resume: id });
    await session.idle();
    await session.prompt('third');
    assertHolds(textsOf(model.requests.at(-1)?.messages ?? []), [...expected, 'user: third']);
    await session.close();

    const { records } = await journals.inspect(id);
    assert.deepEqual(
      upgradesIn(records).map(({ from, to }) => [from, to]),
      [[MACHINE_VERSION, MACHINE_VERSION + 1]],
    );
    const after = await journals.replay(id);
    assert.deepEqual([after.damage, after.mismatches], [null, []]);
    assert.ok(after.checks > 0, 'states of the later machine are compared');

    // once only, and again in a process that folds the whole journal
    const again = await pawl.openSession({
      ...options,
      model: testModel(say('fourth answer')),
      resume: id,
    });
    await again.prompt('fourth');
    await again.close();
    assert.equal(upgradesIn((await journals.inspect(id)).records).length, 1);
    assert.deepEqual((await journals.replay(id)).mismatches, []);

    // an older Pawl
    const old = present.fileJournals({ folder });
    const refused = { kind: 'newerVersion', message: /written by a newer Pawl .*update Pawl/ };
    await assert.rejects(old.open(id), refused);
    await assert.rejects(old.peek(id), refused);
    await assert.rejects(old.replay(id), refused);
    const { seq: last } = await journals.peek(id);
    await assert.rejects(old.fork(id, last, 'fork', 1), refused);
    await assert.rejects(exportSession(folder, id, join(folder, 'newer.pawl')), refused);
    // the entries before the take-over are this machine's
    const [taken] = (await journals.inspect(id)).records.filter(
      (record) => upgradesIn([record]).length > 0,
    );
    await old.fork(id, (taken?.entry.seq ?? 0) - 1, 'earlier', 1);
    assert.equal((await old.replay('earlier')).damage, null);
    const listed = (await collect(old.list())).find(({ sessionId }) => sessionId === id);
    assert.equal(listed?.title, 'first');
  });
}

test('a session goes through several machines, each of which reads what those before have written', async (context) => {
  const { session, ...written } = await begin(context, [look, act(() => undefined)]);
  await session.close();
  const { folder, workspace, id } = written;
  const later = [
    await otherPawl(1, idsOtherwise),
    await otherPawl(2, [...fieldAdded, ...stateRemoved]),
    await otherPawl(3, [...fieldAdded, ...idsOtherwise]),
  ];
  let expected: readonly string[] = earlier;
  for (const [index, pawl] of later.entries()) {
    const model = testModel(
      callTools(
        rawCall(`look-${index}`, 'look', { path: 'c.txt' }),
        rawCall(`act-${index}`, 'act'),
      ),
      say(`answer ${index}`),
    );
    const journals = pawl.fileJournals({ folder });
    const tools = [look, act(() => undefined)];
    const opened = await pawl.openSession({
      model,
      journals,
      workspace,
      tools,
      resume: id,
      onApproval: () => 'allow',
      report: () => undefined,
    });
    await opened.prompt(`prompt ${index}`);
    expected = [
      ...expected,
      `user: prompt ${index}`,
      `assistant: call look-${index}`,
      'user: content of c.txt',
    ];
    assertHolds(textsOf(model.requests.at(-1)?.messages ?? []), expected);
    expected = [...expected, `assistant: answer ${index}`];
    await opened.close();
    assert.deepEqual((await journals.replay(id)).mismatches, []);
    assertHolds(conversationOf((await journals.peek(id)).state), expected);
  }
});

test('a journal whose header is of a newer machine is refused in words, and listed', async (context) => {
  const { session, ...written } = await begin(context, [look, act(() => undefined)]);
  await session.close();
  const pawl = await otherPawl(1, fieldAdded);
  const folder = await makeFolder(context);
  const newer = await pawl.openSession({
    model: testModel(say('hello')),
    journals: pawl.fileJournals({ folder }),
    workspace: written.workspace,
    sandbox: 'off',
    tools: [],
    report: () => undefined,
  });
  await newer.prompt('in a newer Pawl');
  await newer.close();
  const old = fileJournals({ folder });
  await assert.rejects(old.open(newer.id), {
    kind: 'newerVersion',
    message: new RegExp(
      `machine has version ${MACHINE_VERSION + 1}, this one has version ${MACHINE_VERSION}`,
    ),
  });
  assert.deepEqual(
    (await collect(old.list())).map(({ title }) => title),
    ['in a newer Pawl'],
  );
  const refused = { kind: 'newerVersion', message: /written by a newer Pawl .*update Pawl/ };
  await assert.rejects(exportSession(folder, newer.id, join(folder, 'x.pawl')), refused);
  await assert.rejects(old.fork(newer.id, 1, 'fork', 1), refused);
  const journal = journalPath(folder, newer.id);
  await assert.rejects(importSession(await makeFolder(context), journal), refused);
  assert.equal((await verifyStored(journal)).fault, null);
});

for (const [change, edits] of chooseRows(Object.entries(machines))) {
  test(`${change}: a session that ended at any of its entries goes on`, async (context) => {
    const { session, ...written } = await begin(
      context,
      [look, act(() => undefined)],
      batch,
      say('done again'),
    );
    await session.prompt('second');
    await session.close();
    const { folder, workspace, id } = written;
    const pawl = await otherPawl(1, edits);
    const journals = pawl.fileJournals({ folder });
    const { seq: last } = await journals.peek(id);
    assert.ok(last > 12, 'the session has hooks, approvals and calls');
    for (let seq = 1; seq <= last; seq++) {
      const fork = `fork-${seq}`;
      await journals.fork(id, seq, fork, 1);
      const model = testModel(say('a reply'), say('one more reply'), say('one more reply'));
      const forked = await pawl.openSession({
        model,
        journals,
        workspace,
        tools: [look, act(() => undefined)],
        onApproval: () => 'allow',
        resume: fork,
        report: () => undefined,
      });
      await forked.idle();
      await forked.prompt('go on');
      const { messages } = model.requests.at(-1) ?? { messages: [] };
      assert.deepEqual(faultsOf(messages), [], `at ${seq}`);
      assert.ok(textsOf(messages).includes('user: go on'), `at ${seq}`);
      await forked.close();
      assert.deepEqual((await journals.replay(fork)).mismatches, [], `at ${seq}`);
    }
  });
}

const golden = fileURLToPath(new URL('golden', import.meta.url));
const goldenNames = readdirSync(golden).filter((name) => name.endsWith('.pawl'));

for (const [change, edits] of chooseRows(Object.entries(machines))) {
  test(`${change}: every golden journal, of this and of earlier versions, goes on`, async (context) => {
    const pawl = await otherPawl(1, edits);
    const workspace = await makeFolder(context);
    for (const name of goldenNames) {
      const folder = await makeFolder(context);
      const { sessionId } = await pawl.importSession(folder, join(golden, name));
      const journals = pawl.fileJournals({ folder });
      const before = await journals.replay(sessionId);
      assert.deepEqual([before.damage, before.mismatches], [null, []], name);
      const model = testModel(say('a reply'), say('one more reply'));
      const tools = [look, act(() => undefined)];
      const options = {
        model,
        journals,
        workspace,
        tools,
        resume: sessionId,
        report: () => undefined,
      };
      const opened = await pawl.openSession({ ...options, onApproval: () => 'allow' });
      await opened.idle();
      await opened.prompt('go on');
      const { messages } = model.requests.at(-1) ?? { messages: [] };
      assert.deepEqual(faultsOf(messages), [], name);
      assertHolds(textsOf(messages), [...conversationOf(before.state).slice(-1), 'user: go on']);
      await opened.close();
      assert.deepEqual((await journals.replay(sessionId)).mismatches, [], name);
    }
  });
}
