import assert from 'node:assert/strict';
import test from 'node:test';
import { AppendList } from '@pawl/machine/kernel/append-list';
import fc from 'fast-check';
import { headerOf, tellFrom } from '../../../../test/kit/journal/story.js';
import { countCases, SEED } from '../../../../test/tier.js';
import {
  agentMachine,
  createStateCheck,
  sha256,
} from '../../src/journal/journaled-agent-machine.js';
import { dueCheck } from '../../src/journal/writer.js';
import type { AssistantPart, Message } from '../../src/machine/message.js';
import type { State } from '../../src/machine/state.js';

const drafts = tellFrom(headerOf('a'), 30);
const stateAt = (seq: number): State => {
  const draft = drafts[seq - 1];
  assert.ok(draft);
  return draft.state;
};
const fresh = (state: State): string => createStateCheck()(state);

/** Counts how often its field is read, which happens when it is written as JSON. */
const counted = (text: string, reads: { count: number }): Message => ({
  role: 'user',
  get parts() {
    reads.count += 1;
    return [{ type: 'text' as const, origin: 'user' as const, text }];
  },
});

const withMessages = (closed: AppendList<Message>): State => {
  const state = stateAt(1);
  return { ...state, session: { ...state.session, conversation: { closed, open: null } } };
};

test('the same state has the same check, whether its messages were summed at once or one by one', () => {
  const check = createStateCheck();
  for (const { state } of drafts) assert.equal(check(state), fresh(state));
});

test('states that follow one another all have different checks', () => {
  assert.equal(new Set(drafts.map(({ state }) => fresh(state))).size, drafts.length);
});

test('the order in which fields were set does not count', () => {
  const state = stateAt(3);
  const reversed = Object.fromEntries(Object.entries(state).reverse()) as State; // the same fields
  assert.equal(fresh(reversed), fresh(state));
});

test('another setting, and the same settings again, are seen', () => {
  const check = createStateCheck();
  const state = stateAt(3);
  const { session } = state;
  const other: State = {
    ...state,
    session: { ...session, settings: { ...session.settings, maxRetries: 9 } },
  };
  const before = check(state);
  assert.notEqual(check(other), before);
  assert.equal(check(other), fresh(other));
  assert.equal(check(state), before);
});

test('a field that is undefined counts as one that is missing, as it will be when it is read again', () => {
  const state = stateAt(3);
  const extra: object = { extra: undefined };
  const more: State = { ...state, session: { ...state.session, ...extra } };
  assert.equal(fresh(more), fresh(state));
});

test('a check costs the new messages only', () => {
  const reads = { count: 0 };
  const check = createStateCheck();
  let closed = AppendList.empty<Message>();
  for (let index = 0; index < 100; index++) {
    closed = closed.append(counted(`${index}`, reads));
    check(withMessages(closed));
  }
  assert.equal(reads.count, 100);
});

test('a conversation that was replaced is summed from its beginning', () => {
  const check = createStateCheck();
  const message = (text: string): Message => counted(text, { count: 0 });
  check(withMessages(AppendList.from([message('a'), message('b'), message('c')])));
  const replaced = withMessages(AppendList.from([message('summary'), message('c')]));
  assert.equal(check(replaced), fresh(replaced));
  const branch = AppendList.from([message('summary')]);
  branch.append(message('left'));
  const right = withMessages(branch.append(message('right')));
  assert.equal(check(right), fresh(right));
});

test('moving text from one message to the next changes the check', () => {
  const message = (text: string): Message => counted(text, { count: 0 });
  const left = withMessages(AppendList.from([message('ab'), message('c')]));
  const right = withMessages(AppendList.from([message('a'), message('bc')]));
  assert.notEqual(fresh(left), fresh(right));
});

const rows = [
  // given seq, and the state after it,   then a check is due
  [64, 'CallingLlm', true],
  [63, 'CallingLlm', false],
  [63, 'WaitingForUserInput', true],
  [1, 'ShuttingDown', true],
  [128, 'Ready', true],
] as const;
for (const [seq, name, due] of rows) {
  test(`entry ${seq} in ${name} has ${due ? 'a' : 'no'} check`, () => {
    // Only the name counts here.
    const state = { ...stateAt(1), name } as State;
    const check = dueCheck({ machine: agentMachine, hashState: fresh }, seq, state, 64);
    assert.equal(check, due ? fresh(state) : null);
  });
}

test('the larger a state has grown, the fewer entries have a check', () => {
  const due = (parts: number): readonly number[] => {
    const machine = { ...agentMachine, isAtRest: () => false, growing: () => parts };
    const seqs = Array.from({ length: 24 }, (_, index) => index + 1);
    return seqs.filter(
      (seq) => dueCheck({ machine, hashState: fresh }, seq, stateAt(1), 4) !== null,
    );
  };
  assert.deepEqual([due(0), due(4)], [due(3), [4, 8, 12, 16, 20, 24]]);
  assert.deepEqual(
    [due(5), due(9)],
    [
      [8, 16, 24],
      [12, 24],
    ],
  );
});

test('what is summed stays the same text, so that journals of earlier versions keep their checks', () => {
  const user = { role: 'user', parts: [{ type: 'text', text: 'hello', origin: 'user' }] };
  const call = { type: 'call', input: { b: 1, a: { d: 'x', c: [1] } } };
  const odd: object = {
    name: 'CallingLlm',
    z: undefined,
    b: [1, 2.5, null, true, 'ä"\n', [], {}],
    a: { y: -0, x: 'x', deep: [{ k2: 1, k1: [] }] },
    session: {
      settings: { model: 'm', limits: { usd: 0.1, tokens: 5 } },
      epoch: 3,
      conversation: {
        closed: AppendList.from([user, { role: 'assistant', parts: [call] }]),
        open: { role: 'user', parts: [] },
      },
      notes: ['n'],
    },
  };
  // Only its parts count; the sum was written down when the check was first made faster.
  assert.equal(
    fresh(odd as State),
    '0ebe6c90cd936fb35f13357d82734cf8e58a98418b708e99bda9d8c7a9a46fd8',
  );
});

/** The same by the simplest means: copied with sorted keys, and written by JSON.stringify. */
const sorted = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const fields = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(fields.map(([key, field]) => [key, sorted(field)]));
};
const written = (value: unknown): string => JSON.stringify(sorted(value));

/** Names that JavaScript does not sort by itself, as it does numbers. */
const words = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '"',
    '\\',
    '\u0000',
    '\u001f',
    '\u007f',
    '\u2028',
    '\ud800',
    '\udc00x',
    '😀',
    'é',
    'plain',
  ),
);
const names = words.filter((word) => !/^\d+$/.test(word) && word !== '__proto__');
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    words,
    fc.double(),
    fc.constantFrom(null, true, false, undefined, -0),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(names, tie('value'), { maxKeys: 6 }),
  ),
})).value;

test('what is summed is what JSON.stringify would write, for anything', () => {
  fc.assert(
    fc.property(anything, anything, anything, (part, setting, input) => {
      const messages = [{ role: 'user', part }, { input }];
      const settings = { setting };
      const conversation = { open: input };
      const state: object = {
        part,
        session: {
          settings,
          input,
          conversation: { ...conversation, closed: AppendList.from(messages) },
        },
      };
      const rest = { part, session: { settings: null, input, conversation } };
      const chain = messages.reduce((before, message) => sha256(before + written(message)), '');
      // Only its parts count.
      assert.equal(fresh(state as State), sha256(chain + written(settings) + written(rest)));
    }),
    { seed: SEED, numRuns: countCases(100) },
  );
});

const deepMessage = (depth: number, innermost: object): Message => {
  let input: object = innermost;
  for (let level = 1; level < depth; level++) {
    input = level % 2 === 0 ? [input, level] : { b: input, a: [], c: undefined, '"': {} };
  }
  const call = { type: 'call', callId: '1', tool: 'read', input } as AssistantPart; // JSON, whatever its depth
  return { role: 'assistant', model: 'm', cut: false, parts: [call] };
};

/** What is summed, written by recursion: objects with sorted keys, without what is undefined. */
const canonical = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`;
};

test('a state is summed alike at any depth: as by recursion, where that comes to an end', () => {
  const expected = (message: Message): string => {
    const state = withMessages(AppendList.empty());
    const { session } = state;
    const { closed: _, ...conversation } = session.conversation;
    const rest = { ...state, session: { ...session, settings: null, conversation } };
    return sha256(sha256(canonical(message)) + canonical(session.settings) + canonical(rest));
  };
  const checkOfMessage = (message: Message): string =>
    fresh(withMessages(AppendList.empty<Message>().append(message)));
  for (const depth of [1, 150, 199, 200, 201, 202, 500]) {
    const message = deepMessage(depth, { z: 1, y: ['\u2028', -0, null, true, undefined] });
    assert.equal(checkOfMessage(message), expected(message), `${depth}`);
  }
  const deepest = 50_000;
  const check = checkOfMessage(deepMessage(deepest, { x: 1 }));
  assert.equal(checkOfMessage(deepMessage(deepest, { x: 1 })), check);
  assert.notEqual(checkOfMessage(deepMessage(deepest, { x: 2 })), check);
  assert.throws(
    () => canonical(deepMessage(deepest, { x: 1 })),
    RangeError,
    'control: recursion ends the process',
  );
});
