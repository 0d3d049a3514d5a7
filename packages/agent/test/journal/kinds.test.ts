import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import {
  collect,
  headerOf,
  linesOf,
  makeFolder,
  tellFrom,
} from '../../../../test/kit/journal/story.js';
import { fileJournals, machineFileJournals } from '../../src/journal/file-store.js';
import { machineMemoryJournals } from '../../src/journal/memory-store.js';
import type { InspectableStore } from '../../src/journal/reader.js';
import { type JournaledMachine, replayWith } from '../../src/journal/replay.js';
import type { Header } from '../../src/ports/journal.js';

/** The smallest machine that is not the agent's: it adds up. */
type Adding = {
  readonly kind: 'ask';
  readonly event: { readonly type: 'Added'; readonly at: number; readonly by: number };
  readonly state: { readonly name: 'Adding' | 'Full'; readonly sum: number };
  readonly action: { readonly type: 'Tell' };
  readonly settings: { readonly model: string; readonly question: string; readonly from: number };
};

const adding: JournaledMachine<Adding> = {
  kind: 'ask',
  fingerprint: 'adding',
  version: 1,
  initialState: ({ from }) => ({ name: 'Adding', sum: from }),
  step: ({ sum }, { by }) => ({
    state: { name: sum + by < 100 ? 'Adding' : 'Full', sum: sum + by },
    actions: [],
    path: [],
    diagnostics: [],
  }),
  isAtRest: ({ name }) => name === 'Full',
  createCheck: () => (state) => JSON.stringify(state),
};

const { settings: _agents, ...common } = headerOf('run', 5_000);
const header: Header<Adding> = {
  ...common,
  kind: 'ask',
  machine: adding.fingerprint,
  machineVersion: adding.version,
  settings: { model: 'scripted/test', question: '  how many\n bugs?', from: 10 },
};

const drafts = [10, 20, 70].map((by, index, all) => {
  const sum = all.slice(0, index + 1).reduce((left, right) => left + right, 10);
  return {
    event: { type: 'Added', at: 6_000 + index, by },
    state: { name: sum < 100 ? 'Adding' : 'Full', sum },
  } as const;
});

const write = async (store: InspectableStore<Adding>): Promise<void> => {
  const journal = await store.create(header);
  await journal.append(drafts);
  await journal.close();
};

const stores: Readonly<Record<string, (folder: string) => InspectableStore<Adding>>> = {
  'on disk': (folder) => machineFileJournals(adding, { folder, checkEvery: 2 }),
  'in memory': () => machineMemoryJournals(adding, { checkEvery: 2 }),
};

for (const [where, makeStore] of Object.entries(stores)) {
  test(`${where}: a journal of another machine is folded, checked and gone on with as that machine says`, async (context) => {
    const store = makeStore(await makeFolder(context));
    await write(store);
    const { records } = await store.inspect('run');
    assert.deepEqual(
      records.map(({ check }) => check),
      [null, '{"name":"Adding","sum":40}', '{"name":"Full","sum":110}'],
    );
    const { state, checks, mismatches } = await replayWith(adding, header, records);
    assert.deepEqual([state, checks, mismatches], [{ name: 'Full', sum: 110 }, 2, []]);
    const opened = await store.open('run');
    assert.deepEqual([opened.state, opened.journal.seq], [{ name: 'Full', sum: 110 }, 3]);
    await opened.journal.close();
    const { header: peeked, ...folded } = await store.peek('run');
    assert.deepEqual([peeked.kind, folded], ['ask', { seq: 3, state: { name: 'Full', sum: 110 } }]);
    await store.fork('run', 1, 'fork', 7_000);
    assert.deepEqual((await store.peek('fork')).state, { name: 'Adding', sum: 20 });
  });
}

test('both kinds lie in one folder and are listed together; a run is named by its question', async (context) => {
  const folder = await makeFolder(context);
  await write(machineFileJournals(adding, { folder }));
  const agents = fileJournals({ folder });
  const session = await agents.create(headerOf('session'));
  await session.append(tellFrom(headerOf('session'), 2));
  await session.close();
  const listed = (await collect(agents.list())).map(({ sessionId, kind, title }) => [
    sessionId,
    kind,
    title,
  ]);
  assert.deepEqual(listed.sort(), [
    ['run', 'ask', 'how many bugs?'],
    ['session', 'agent', 'words 2 äöü €'],
  ]);
});

test("the header of the agent's sessions names no machine, as it did before there was another", async (context) => {
  const folder = await makeFolder(context);
  await (await fileJournals({ folder }).create(headerOf('session'))).close();
  const [line] = await linesOf(join(folder, 'sessions', 'session.jsonl'));
  assert.ok(line !== undefined && !('kind' in JSON.parse(line)));
});

test('a session whose machine refuses its settings leaves nothing behind', async (context) => {
  const folder = await makeFolder(context);
  const refusing = { ...adding, initialState: () => assert.fail('refused') };
  await assert.rejects(machineFileJournals(refusing, { folder }).create(header), /refused/);
  await (await machineFileJournals(adding, { folder }).create(header)).close();
});

const refusals = {
  open: (store: InspectableStore<never>, id: string) => store.open(id),
  peek: (store: InspectableStore<never>, id: string) => store.peek(id),
  inspect: (store: InspectableStore<never>, id: string) => store.inspect(id),
  read: (store: InspectableStore<never>, id: string) => collect(store.read(id)),
};

for (const [name, work] of Object.entries(refusals)) {
  test(`${name} of a journal of another machine is refused, both ways, and leaves it free`, async (context) => {
    const folder = await makeFolder(context);
    const [runs, agents] = [machineFileJournals(adding, { folder }), fileJournals({ folder })];
    await write(runs);
    await (await agents.create(headerOf('session'))).close();
    await assert.rejects(work(agents as never, 'run'), {
      kind: 'otherMachine',
      message: 'Session "run" is a run of code mode. To go on with it: pawl ask --resume run',
    });
    await assert.rejects(work(runs as never, 'session'), {
      kind: 'otherMachine',
      message:
        'Session "session" is a session of the agent\'s. To go on with it: pawl --resume session',
    });
    await (await runs.open('run')).journal.close();
    await (await agents.open('session')).journal.close();
  });
}
