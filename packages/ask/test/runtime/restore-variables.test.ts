import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { javascript } from '../../src/environments/sandboxed-node.js';
import type { Subcall } from '../../src/ports.js';
import type { CellReport, PastCell } from '../../src/run/cell-types.js';
import { digestTexts } from '../../src/run/text-hash.js';
import { restoreVariables } from '../../src/runtime/run-environments.js';

/** An environment built again from its cells: what is the same, what is noticed. */

const limits = { deadlineMs: 5_000, signal: new AbortController().signal };

const start = async (context: TestContext) => {
  const environment = await javascript.start({
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
