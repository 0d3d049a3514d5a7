import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as given from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { agentMachine } from '../../src/journal/journaled-agent-machine.js';
import { CHECK_EVERY } from '../../src/journal/replay.js';
import { dueCheck } from '../../src/journal/writer.js';
import { initialState, step } from '../../src/machine/machine.js';
import { isAsked } from '../../src/machine/moves/batch-calls.js';
import type { State } from '../../src/machine/state.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';

/** The work of a reply with many calls grows as their number does. Work is counted in reads of the calls' fields. */

type Reads = { ids: number; inputs: number };

/** A call that counts the reads of its id and of its input. */
const counted = (call: JudgedCall, reads: Reads): JudgedCall => {
  const { callId, input } = call;
  return Object.defineProperties(
    { ...call },
    {
      callId: {
        enumerable: true,
        get: () => {
          reads.ids += 1;
          return callId;
        },
      },
      input: {
        enumerable: true,
        get: () => {
          reads.inputs += 1;
          return input;
        },
      },
    },
  );
};

const idOf = (index: number): string => `call-${index}`;

/** Runs one batch to its end as a session does: every event is stepped, and checked where a check is due. */
const runBatch = (
  count: number,
  make: (callId: string) => JudgedCall,
): Reads & { readonly last: State } => {
  const reads = { ids: 0, inputs: 0 };
  const check = agentMachine.createCheck();
  let state: State = initialState(
    settingsOf({ hooks: 'never', windowTokens: Number.MAX_SAFE_INTEGER }),
  );
  let seq = 0;
  const take = (next: given.Given): void => {
    const stepped = step(state, given.eventOf(next, state));
    assert.deepEqual(stepped.diagnostics, []);
    ({ state } = stepped);
    seq += 1;
    dueCheck({ machine: agentMachine, hashState: check }, seq, state, CHECK_EVERY);
  };
  take(given.begin);
  take(given.input('go'));
  take(
    given.completed({
      calls: Array.from({ length: count }, (_, index) => counted(make(idOf(index)), reads)),
    }),
  );
  for (let index = 0; index < count; index += 1) {
    take(given.started(idOf(index)));
    take(given.ended(idOf(index), 'ok', 'fine'));
  }
  return { ...reads, last: state };
};

const kinds = [
  ['that run one after another', given.edit],
  ['that run side by side', given.grep],
] as const;
for (const [title, make] of kinds) {
  test(`four times as many calls ${title} take about four times the work`, () => {
    const [few, many] = [runBatch(400, make), runBatch(1_600, make)];
    assert.equal(many.last.name, 'CallingLlm');
    assert.ok(many.ids / few.ids < 6, `ids were read ${few.ids} and ${many.ids} times`);
    assert.ok(
      many.inputs / few.inputs < 6,
      `inputs were read ${few.inputs} and ${many.inputs} times`,
    );
  });
}

const isAsking = (state: State): boolean =>
  state.name === 'ExecutingTools' && state.calls.some(isAsked);

/** How often the facts of calls are read while the user answers one question after the other. */
const readsOf = (count: number, scope: 'once' | 'shape'): number => {
  let reads = 0;
  const asked = (callId: string): JudgedCall => {
    const call = given.edit(callId);
    const facts = scope === 'once' ? call.facts : { ...call.facts, shape: callId };
    return Object.defineProperty({ ...call }, 'facts', {
      enumerable: true,
      get: () => {
        reads += 1;
        return facts;
      },
    });
  };
  let state: State = initialState(settingsOf({ hooks: 'never', rules: presetRules.careful }));
  const take = (next: given.Given): void => {
    ({ state } = step(state, given.eventOf(next, state)));
  };
  const calls = Array.from({ length: count }, (_, index) => asked(idOf(index)));
  for (const next of [given.begin, given.input('go'), given.completed({ calls })]) take(next);
  reads = 0;
  for (let index = 0; index < count; index += 1) take(given.allows(idOf(index), scope));
  assert.equal(isAsking(state), false);
  assert.equal(state.session.grants.length, scope === 'once' ? 0 : count);
  return reads;
};

test('answers to questions about many calls take work in proportion to their number', () => {
  const [few, many] = [readsOf(100, 'once'), readsOf(400, 'once')];
  assert.ok(many / few < 6, `facts were read ${few} and ${many} times`);
});

test('an answer that allows its exact call does not decide all other calls again by all grants', () => {
  const [few, many] = [readsOf(50, 'shape'), readsOf(200, 'shape')];
  // Each answer looks at each call that waits. With all grants for each call it would be 64 times as many.
  assert.ok(many / few < 24, `facts were read ${few} and ${many} times`);
});

test('each call of a large batch gets its own result, in call order', () => {
  const { last } = runBatch(100, given.edit);
  const { open } = last.session.conversation;
  const parts = open?.parts ?? [];
  assert.deepEqual(
    parts.flatMap((part) => (part.type === 'result' ? [part.callId] : [])),
    Array.from({ length: 100 }, (_, index) => idOf(index)),
  );
});

test('a state with many calls is checked less often; a state with few calls every 64 entries', () => {
  const due = (calls: number, seq: number): boolean => {
    const made = Array.from({ length: calls }, (_, index) => given.edit(idOf(index)));
    let state: State = initialState(settingsOf({ hooks: 'never' }));
    for (const next of [given.begin, given.input('go'), given.wants(...made)])
      ({ state } = step(state, given.eventOf(next, state)));
    assert.equal(state.name, 'ExecutingTools');
    return (
      dueCheck({ machine: agentMachine, hashState: () => 'sum' }, seq, state, CHECK_EVERY) !== null
    );
  };
  assert.deepEqual(
    [due(3, 64), due(64, 64), due(65, 64), due(65, 128), due(1_000, 512), due(1_000, 1_024)],
    [true, true, false, true, false, true],
  );
});
