import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { InspectableStore } from '@pawl/agent/journal/reader';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import {
  answers,
  askAbout,
  endOf,
  environments,
  journaled,
  memoryRuns,
  notingModel,
  program,
  stepOf,
} from '../../../../test/kit/ask/ask-stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { createAsker } from '../../src/create-asker.js';
import type { AskTypes, EnvironmentKind, Subcall } from '../../src/ports.js';
import type { CellReport, PastCell } from '../../src/run/cell-types.js';
import type { StopFacts } from '../../src/run/stop-policies.js';
import { digestTexts } from '../../src/run/text-hash.js';
import type { StopPolicy } from '../../src/runtime/model-calls.js';
import { restoreVariables } from '../../src/runtime/run-environments.js';

/** A tree while it is open: every effect after its event, limits, policies, and a journal that fails. */

const full = (after: number): InspectableStore<AskTypes> => {
  const store = memoryRuns();
  return {
    ...store,
    create: async (header) => {
      const journal = await store.create(header);
      return {
        ...journal,
        append: async (drafts) => {
          if (journal.seq + drafts.length > after) throw new Error('the disk is full');
          await journal.append(drafts);
        },
        get seq() {
          return journal.seq;
        },
      };
    },
  };
};

test('an event that can’t be journaled is not performed: the run stops with the journal’s error', async (context) => {
  const model = notingModel({
    replies: [{ text: program('llm_query("leaf")') }],
    rules: [{ when: '^leaf', text: '1' }],
  });
  const asked = await askAbout(context, 'abc', { journals: full(3), model });
  await assert.rejects(asked.run.outcome, /the disk is full/);
  assert.equal(asked.steps.length, 3);
  assert.equal(model.requests.length, 1, 'the sub-call was made though it was not journaled');
  await assert.rejects(asked.run.close(), /the disk is full/);
  await assert.rejects(asked.run.cancel(), /the disk is full/);
});

test('a full disk stands the run down in order: its end goes to reserved space, and nothing more is done', async (context) => {
  const store = memoryRuns();
  let isFull = false;
  const journals: typeof store = {
    ...store,
    create: async (header) => {
      const journal = await store.create(header);
      return {
        ...journal,
        append: async (drafts) => {
          await journal.append(drafts);
          isFull ||= drafts.some(({ event }) => event.type === 'SubcallAsked');
        },
        get seq() {
          return journal.seq;
        },
        get full() {
          return isFull ? new Error('the disk is full') : null;
        },
      };
    },
  };
  const model = notingModel({
    replies: [{ text: program('llm_query("leaf")') }],
    rules: [{ when: '^leaf', text: '1' }],
  });
  const { run } = await askAbout(context, 'abc', { journals, model });
  await assert.rejects(run.outcome, /the disk is full/);
  assert.equal(model.requests.length, 1, 'nothing is asked on a full disk');
  const events = await journaled(store, run.id);
  assert.equal(events.at(-1)?.type, 'ShutdownRequested');
  assert.equal((await store.peek(run.id)).state.name, 'ShutDown');
});

test('the time limit ends a run whatever it does', async (context) => {
  const script = { replies: [{ text: program('for (;;) {}') }] };
  const settings = { limits: { usd: 0, tokens: 0, timeMs: 1_500 } };
  const { run } = await askAbout(context, 'abc', { script, options: { settings } });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped');
  assert.equal(outcome.reason, 'time');
});

test('the user’s policy is asked before every call, and its word counts', async (context) => {
  const seen: StopFacts[] = [];
  const script = {
    replies: [
      { text: program('print(1)') },
      { text: program('print(2)') },
      { text: 'The best I have.' },
    ],
  };
  const { run } = await askAbout(context, 'abc', {
    script,
    asker: {
      policy: async (facts) => {
        seen.push(facts);
        return facts.iterations < 2
          ? { kind: 'go' }
          : { kind: 'finish', reason: 'policy', why: 'it is enough' };
      },
    },
  });
  assert.deepEqual(await endOf(run), {
    status: 'answered',
    answer: 'The best I have.',
    by: 'limit',
    closing: 'policy',
  });
  assert.deepEqual(
    seen.map(({ iterations }) => iterations),
    [0, 1, 2],
  );
});

test('a policy that returns nothing stops the run', async (context) => {
  const policy: StopPolicy = () => undefined as never;
  const { run } = await askAbout(context, 'abc', { asker: { policy } });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped');
  assert.match(outcome.message, /the policy failed: it gave no verdict/);
});

test('a run that began with a policy is not resumed without one, nor the other way round', async (context) => {
  const journals = memoryRuns();
  const policy: StopPolicy = () => ({ kind: 'go' });
  for (const [began, later, why] of [
    [{ policy }, {}, /began with a policy/],
    [{}, { policy }, /began without a policy/],
  ] as const) {
    const model = scriptedModel({ replies: [{ text: program('llm_query("slow")') }] });
    const { run } = await askAbout(context, 'abc', { journals, model, asker: began });
    await run.close();
    const asker = createAsker({ model, journals, environments, ...later });
    await assert.rejects(asker.resume(run.id), why);
  }
});

test('a policy that fails stops the run, and is named', async (context) => {
  const { run } = await askAbout(context, 'abc', {
    script: { replies: [{ text: program('1') }] },
    asker: {
      policy: () => {
        throw new Error('no connection');
      },
    },
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped');
  assert.match(outcome.message, /the policy failed: no connection/);
});

test('a watcher is told of every step in order; one that throws is dropped and reported', async (context) => {
  const asked = await askAbout(context, 'abc', { script: { replies: [{ text: answers('1') }] } });
  let calls = 0;
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  asked.run.watch(() => {
    calls += 1;
    throw new Error('nobody looks');
  });
  await asked.run.outcome;
  assert.equal(calls, 1);
  assert.match((await warned).message, /nobody looks/);
  assert.deepEqual(
    asked.steps.map(({ seq }) => seq),
    asked.steps.map((_, index) => index + 1),
  );
});

test('events carry the run that they are of, and timers find theirs', async (context) => {
  const script = {
    replies: [{ text: program('a = llm_query("flaky");') }, { text: answers('a') }],
    rules: [{ when: '^flaky', fail: { kind: 'overloaded' as const } }],
  };
  const settings = { maxRetries: 2, retrySchedule: { kind: 'linear', stepMs: 5 } as const };
  const asked = await askAbout(context, 'abc', { script, options: { settings } });
  await asked.run.outcome;
  const timers = asked.steps.filter(({ event }) => event.type === 'TimerFired');
  assert.deepEqual(
    timers.map(({ event, diagnostics }) => [event.node, diagnostics.length]),
    [
      ['n0.c1.1.1', 0],
      ['n0.c1.1.1', 0],
    ],
  );
});

test('two runs at once do not meet', async (context) => {
  const runs = await Promise.all(
    ['one', 'other'].map((name) =>
      askAbout(context, name, {
        script: {
          replies: [
            { text: program(`mine = llm_query("leaf ${name}")`) },
            { text: answers('context + mine') },
          ],
          rules: [{ when: '^leaf (.*)', text: '<$1>' }],
        },
      }),
    ),
  );
  const outcomes = await Promise.all(runs.map(({ run }) => run.outcome));
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'answered' ? outcome.answer : outcome.status)),
    ['one<one>', 'other<other>'],
  );
});

/** An environment built again from its cells: what is the same, what is noticed. */

const limits = { deadlineMs: 5_000, signal: new AbortController().signal };

const start = async (context: TestContext) => {
  const environment = await environments.quickjs.start({
    contexts: [],
    names: [],
    outputMax: 10_000,
    memoryMax: 50_000_000,
  });
  context.after(() => environment.close());
  return environment;
};

/** What a tree remembers of a cell. */
const remember = (
  cellId: string,
  code: string,
  report: CellReport,
  calls: readonly Subcall[],
): PastCell => ({
  cellId,
  code,
  status: report.status,
  printed: digestTexts([report.stdout, report.stderr]),
  subcalls: calls.map(({ ordinal, kind, prompts }) => ({
    ordinal,
    kind,
    prompts: digestTexts(prompts),
    texts: prompts.map((prompt) => `<${prompt}>`),
  })),
});

const runAll = async (
  context: TestContext,
  codes: readonly string[],
): Promise<readonly PastCell[]> => {
  const environment = await start(context);
  const past: PastCell[] = [];
  for (const [index, code] of codes.entries()) {
    const calls: Subcall[] = [];
    const { signal } = limits;
    const report = await environment.run(
      { cellId: `c${index}`, code, deadlineMs: 5_000, signal },
      async (subcall) => {
        calls.push(subcall);
        return subcall.prompts.map((prompt) => `<${prompt}>`);
      },
    );
    past.push(remember(`c${index}`, code, report, calls));
  }
  return past;
};

test('variables are kept, calls answered from the record, and a cell that failed fails again', async (context) => {
  const past = await runAll(context, [
    'a = llm_query("one"); b = llm_query_batched(["two", "three"]).join();',
    'let c = a + b; throw new Error("on purpose");',
  ]);
  const environment = await start(context);
  assert.equal(await restoreVariables(environment, past, limits), 'kept');
  assert.equal(await environment.read('c'), '<one><two>,<three>');
});

const rows: readonly (readonly [string, (cell: PastCell) => PastCell, 'changed' | 'lost'])[] = [
  ['another output', (cell) => ({ ...cell, printed: digestTexts(['other', '']) }), 'changed'],
  ['another status', (cell) => ({ ...cell, status: 'raised' }), 'lost'],
  ['another call', (cell) => ({ ...cell, code: 'a = llm_query("other");' }), 'lost'],
  ['another kind of call', (cell) => ({ ...cell, code: 'a = rlm_query("one");' }), 'lost'],
  ['one call more', (cell) => ({ ...cell, code: `${cell.code} llm_query("more");` }), 'lost'],
];

for (const [what, change, then] of rows) {
  test(`${what} than before is noticed: variables are ${then}`, async (context) => {
    const past = await runAll(context, ['print(1); a = llm_query("one");', 'b = 2;']);
    const environment = await start(context);
    assert.equal(
      await restoreVariables(
        environment,
        past.map((cell, index) => (index === 0 ? change(cell) : cell)),
        limits,
      ),
      then,
    );
  });
}

test('a later difference is noticed too, and an earlier one is not forgotten', async (context) => {
  const past = await runAll(context, ['print(1)', 'print(2)', 'print(3)']);
  const [one, two, three] = past;
  assert.ok(one && two && three);
  const other = { ...one, printed: '' };
  assert.equal(
    await restoreVariables(await start(context), [other, two, three], limits),
    'changed',
  );
  assert.equal(
    await restoreVariables(
      await start(context),
      [other, two, { ...three, status: 'raised' }],
      limits,
    ),
    'lost',
  );
});

/** The environments of a tree, from their start to their end. */

/** A folder for temporary files of this test alone: other tests put their own into the system's at the same time. */
const ownTemporaryFolder = (context: TestContext): string => {
  const kept = process.env.TMPDIR;
  const folder = temporaryFolder(context, 'own-temporary');
  process.env.TMPDIR = folder;
  context.after(() => {
    if (kept === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = kept;
  });
  return folder;
};

test('the prompt of a sub-run is its context, and the file that carries it is gone afterwards', async (context) => {
  const folder = ownTemporaryFolder(context);
  const long = 'x'.repeat(5_000);
  const script = {
    replies: [{ text: program(`deep = rlm_query("deep ${long}");`) }, { text: answers('deep') }],
    rules: [{ when: '^deep ', text: answers('[context.length, context.slice(0, 6)].join(" ")') }],
  };
  const { run } = await askAbout(context, 'abc', {
    script,
    options: { settings: { depthMax: 2 } },
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'answered', JSON.stringify(outcome));
  assert.equal(outcome.answer, '5005 deep x');
  await run.close();
  const left = readdirSync(folder).filter((name) => !name.startsWith('pawl-ask-test-'));
  assert.deepEqual(left, []);
});

for (const name of chooseRows(['quickjs', 'python'] as const)) {
  test(`${name}: a program that never ends is ended with its run, and nothing is told of it`, async (context) => {
    const script = {
      replies: [{ text: program(name === 'python' ? 'while True: pass' : 'for (;;) {}') }],
    };
    const asked = await askAbout(context, 'abc', { script, options: { environment: name } });
    await stepOf(asked, ({ actions }) => actions.some(({ type }) => type === 'RunCell'));
    await asked.run.cancel();
    assert.deepEqual(await endOf(asked.run), {
      status: 'cancelled',
      cause: 'user',
      partial: '',
    });
    await asked.run.close();
    const types = (await journaled(asked.journals, asked.run.id)).map(({ type }) => type);
    assert.equal(types.at(-1), 'CancelRequested');
  });
}

/** A run in an environment that is broken in a way. */
const askIn = async (context: TestContext, how: Partial<EnvironmentKind>) => {
  const quickjs: EnvironmentKind = { ...environments.quickjs, probe: async () => null, ...how };
  const asked = await askAbout(context, '', {});
  const asker = createAsker({
    model: notingModel({ replies: [{ text: program('1') }] }),
    journals: asked.journals,
    environments: { ...environments, quickjs },
  });
  const { workspace } = (await asked.journals.inspect(asked.run.id)).header;
  return asker.ask({ question: 'q', contexts: [], workspace, environment: 'quickjs' });
};

test('an environment that can not be started ends the run, which says why', async (context) => {
  const run = await askIn(context, { start: () => Promise.reject(new Error('no threads')) });
  assert.deepEqual(await endOf(run), {
    status: 'failed',
    kind: 'environment',
    message: 'the environment failed: no threads',
    partial: '',
  });
  await run.close();
});

test('an environment that breaks while a cell runs ends the run, which says why', async (context) => {
  const run = await askIn(context, {
    start: async () => ({
      run: () => Promise.reject(new Error('the wire is cut')),
      read: async () => null,
      close: async () => undefined,
    }),
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'failed' && outcome.kind === 'environment');
  assert.match(outcome.message, /the wire is cut/);
  await run.close();
});
