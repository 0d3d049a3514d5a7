import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import { createStateCheck } from '../../src/journal/journaled-agent-machine.js';
import {
  agent,
  decodeState,
  encodeState,
  MACHINE_VERSION,
  step,
} from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';

/** States that go through JSON. */

const hash = (state: State): string => createStateCheck()(state);

test('every state comes back from JSON, and goes on as the one that stayed', (t) => {
  forAll(t, 100, (walked) => {
    const walker = roam(walked);
    const events = walker.events();
    const states = [...walker.steps()].map(({ state }) => state);
    for (let index = 0; index < events.length; index += 3) {
      const [state, event] = [states[index], events[index]];
      assert.ok(state !== undefined && event !== undefined);
      const decoded = decodeState(JSON.parse(JSON.stringify(encodeState(state))));
      assert.equal(decoded.kind, 'state', JSON.stringify(decoded));
      if (decoded.kind !== 'state') continue;
      assert.equal(hash(decoded.state), hash(state));
      const [one, other] = [step(state, event), step(decoded.state, event)];
      assert.equal(hash(other.state), hash(one.state));
      assert.deepEqual(other.actions, one.actions);
    }
  });
});

test('a copy of a state by JSON or structuredClone changes nothing, and the diagnostic says what to use', () => {
  const { state } = step(begun({}), g.begin);
  const asked = step(state, g.input('hi')).state;
  for (const copy of [
    JSON.parse(JSON.stringify(asked)),
    structuredClone(asked),
    {},
    { name: 'CallingLlm', session: {} },
    null,
    undefined,
    5,
  ]) {
    const taken = step(copy as State, g.input('more'));
    assert.deepEqual([taken.actions, taken.path], [[], []]);
    assert.equal(taken.diagnostics[0]?.kind, 'malformed');
    assert.match(taken.diagnostics[0]?.why ?? '', /encodeState and decodeState/);
  }
});

test('what is no encoded state is refused with the field that is wrong, and another version is named', () => {
  const encoded = encodeState(step(begun({}), g.begin).state);
  const { state } = encoded;
  const rows: readonly [unknown, RegExp][] = [
    [null, /no machineVersion/],
    [{ state }, /no machineVersion/],
    [{ ...encoded, machineVersion: String(MACHINE_VERSION) }, /no machineVersion/],
    [{ machineVersion: MACHINE_VERSION }, /state.name must be a text/],
    [{ ...encoded, state: { ...state, name: 5 } }, /state.name must be a text/],
    [{ ...encoded, state: { ...state, name: 'Nowhere' } }, /state.name must be one of Ready/],
    [{ ...encoded, state: { ...state, name: 'EndOfTurn' } }, /state.name must be one of Ready/],
    [{ ...encoded, state: { ...state, session: 1 } }, /state.session must be an object/],
    [{ ...encoded, state: { ...state, reason: 'x' } }, /state.reason must be an object/],
    [
      { ...encoded, state: { ...state, session: { ...state.session, queue: {} } } },
      /session.queue must be a list/,
    ],
    [
      {
        ...encoded,
        state: {
          ...state,
          session: { ...state.session, conversation: { closed: [1], open: null } },
        },
      },
      /is 1; it must be an object/,
    ],
  ];
  for (const [value, why] of rows) {
    const decoded = decodeState(value);
    assert.equal(decoded.kind, 'invalid', String(why));
    assert.match(decoded.kind === 'invalid' ? decoded.why : '', why);
  }
  assert.deepEqual(decodeState({ ...encoded, machineVersion: 99 }), {
    kind: 'otherVersion',
    version: 99,
  });
});

test('each field of each state is looked at before the state is taken', () => {
  const rewinding = bring('W long');
  rewinding.send(g.rewind('plan-1'));
  const rows: readonly (readonly [State, string])[] = [
    [bring('W').state(), 'reason next'],
    [bring('C[u]').state(), 'purpose requestId attempt partial call'],
    [bring('Er').state(), 'purpose attempt error timerId dueAt delayMs'],
    [bring('X').state(), 'batchId calls phase'],
    [bring('H[c]').state(), 'phase hookId mutated tree'],
    [bring('K[i]').state(), 'compactionId length mode'],
    [rewinding.state(), 'rewindId to plan'],
  ];
  for (const [state, fields] of rows) {
    const encoded = encodeState(state);
    assert.equal(decodeState(encoded).kind, 'state');
    for (const field of fields.split(' ')) {
      const decoded = decodeState({ ...encoded, state: { ...encoded.state, [field]: true } });
      assert.match(
        decoded.kind === 'invalid' ? decoded.why : '',
        new RegExp(`^state\\.${field} must be an? `),
        state.name,
      );
    }
  }
});

test('input of a call that nests 6,000 levels is refused with a diagnostic, in every state', () => {
  let deep: Record<string, unknown> = {};
  for (let level = 0; level < 6_000; level++) deep = { deep };
  const { state } = step(step(begun({}), g.begin).state, g.input('hi'));
  const completed = g.eventOf(g.wants({ ...g.grep('a'), input: deep as never }), state);
  const taken = step(state, completed);
  assert.equal(taken.state, state);
  assert.match(taken.diagnostics[0]?.why ?? '', /nested deeper than 200 levels/);
  assert.equal(agent.step(state, completed).diagnostics[0]?.kind, 'malformed');
});

test('the same report of hooks puts its note once, for the request that waits and for the next one', () => {
  const asked = step(step(begun({}), g.begin).state, g.input('hi')).state;
  const report = {
    type: 'UserHooksRan',
    at: g.NOW,
    moment: 'before-request',
    requestId: asked.name === 'CallingLlm' ? asked.requestId : '',
    verdicts: [{ hook: 'guard', decision: 'allow', note: 'be careful' }],
  } as const;
  const noted = (state: State): number =>
    JSON.stringify(encodeState(state)).split('be careful').length - 1;
  const once = step(asked, report);
  assert.equal(noted(once.state), 1);
  assert.equal(noted(step(once.state, report).state), 1);
  const resting = step(begun({}), g.begin).state;
  const waiting = step(resting, { ...report, moment: 'session-start', requestId: null }).state;
  assert.equal(noted(waiting), 1);
  assert.equal(
    noted(step(waiting, { ...report, moment: 'session-start', requestId: null }).state),
    1,
  );
});
