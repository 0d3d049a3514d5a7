import assert from 'node:assert/strict';
import test from 'node:test';
import { machine } from '../src/kernel/machine.js';
import { late, type MoveResult } from '../src/kernel/table.js';

/**
 * What does not compile. Each line marked `@ts-expect-error` has to be an error of its own: `npm run types` complains
 * about a mark without one. The functions are never called.
 */

type Idle = { readonly name: 'Idle' };
type Busy = { readonly name: 'Busy'; readonly count: number };
type Pick = { readonly name: 'Pick'; readonly count: number };
type End = { readonly name: 'End' };
type State = Idle | Busy | Pick | End;
type Go = { readonly type: 'Go'; readonly count: number };
type Stop = { readonly type: 'Stop' };
type Die = { readonly type: 'Die' };
type Event = Go | Stop | Die;
type Log = { readonly type: 'Log'; readonly text: string };

const declare = machine<State, Event, Log>();
const spec = {
  initial: 'Idle',
  transient: ['Pick'],
  defaults: ['Die'],
  ends: ['End'],
  states: { Idle: 'idle', Busy: 'busy', Pick: 'picks', End: 'over' },
  events: { Go: 'go', Stop: 'stop', Die: 'die' },
} as const;
const make = declare(spec);

const no = late('nothing to do');
const pick = (_state: State, { count }: Go): MoveResult<Pick, Log> => ({
  state: { name: 'Pick', count },
  actions: [],
});
const rest = (_state: Busy): MoveResult<Idle, Log> => ({
  state: { name: 'Idle' },
  actions: [{ type: 'Log', text: 'rested' }],
});
const relax = (): MoveResult<Idle, Log> => ({ state: { name: 'Idle' }, actions: [] });
const work = ({ count }: Pick): MoveResult<Busy, Log> => ({
  state: { name: 'Busy', count },
  actions: [],
});
const end = (): MoveResult<End, Log> => ({ state: { name: 'End' }, actions: [] });
const isMany = ({ count }: Pick): boolean => count > 1;
const isBig = (_state: Idle, event: Go): boolean => event.count > 9;

const idle = { Go: { to: 'Pick', then: pick }, Stop: no } as const;
const busy = { Go: no, Stop: { to: 'Idle', then: rest } } as const;
const decide = [
  { when: isMany, to: 'Busy', then: work },
  { to: 'Idle', then: relax },
] as const;
const rows = {
  Idle: { on: idle },
  Busy: { on: busy },
  Pick: { always: decide },
  End: { on: { Go: no, Stop: no } },
} as const;
const defaults = { Die: { to: 'End', then: end } } as const;

const back = { to: 'Idle', then: relax } as const;

const makeIdle = (on: Parameters<typeof make>[0]['states']['Idle']['on']) =>
  make({ defaults, states: { ...rows, Idle: { on } } });

const good = make({ states: rows, defaults });

// ---- Functions that are wrong in one way each ----
const forget = () => ({ state: { name: 'Busy' } as const, actions: [] });
const shout = () => ({
  state: { name: 'Idle' } as const,
  actions: [{ type: 'Shout' as const, text: 'a' }],
});
const later = async (): Promise<MoveResult<Idle, Log>> => relax();
const onStop = (
  _state: Idle,
  event: Stop & { readonly reason: string },
): MoveResult<Idle, Log> => ({
  state: { name: 'Idle' },
  actions: [{ type: 'Log', text: event.reason }],
});
const stayElsewhere = (): MoveResult<Busy, Log> => ({
  state: { name: 'Busy', count: 0 },
  actions: [],
});
const maybe = (): Promise<boolean> => Promise.resolve(true);

export const wrong: readonly (() => unknown)[] = [
  // @ts-expect-error a missing cell: Busy does not answer Stop
  () => make({ defaults, states: { ...rows, Busy: { on: { Go: no } } } }),
  // @ts-expect-error a missing state
  () => make({ defaults, states: { Idle: rows.Idle, Pick: rows.Pick, End: rows.End } }),
  // @ts-expect-error the move returns another state than the target
  () => makeIdle({ ...idle, Go: { to: 'Busy', then: relax } }),
  // @ts-expect-error the move forgets a field of the target
  () => makeIdle({ ...idle, Go: { to: 'Busy', then: forget } }),
  // @ts-expect-error a list that can fall through: its last branch has a guard
  () => makeIdle({ ...idle, Go: [{ when: isBig, ...back }] }),
  // @ts-expect-error an open branch before the last one hides the rest
  () => makeIdle({ ...idle, Go: [back, back] }),
  // @ts-expect-error an empty list of branches
  () => makeIdle({ ...idle, Go: [] }),
  // @ts-expect-error an unknown target
  () => makeIdle({ ...idle, Go: { to: 'Away', then: relax } }),
  // @ts-expect-error an unknown event
  () => makeIdle({ Go: no, Stop: no, Fly: no }),
  // @ts-expect-error a foreign move: it wants Busy and stands in Idle
  () => makeIdle({ ...idle, Stop: { to: 'Idle', then: rest } }),
  // @ts-expect-error a move that wants more of the event than it has
  () => makeIdle({ ...idle, Stop: { to: 'Idle', then: onStop } }),
  // @ts-expect-error a guard of another state
  () => makeIdle({ ...idle, Go: [{ when: isMany, ...back }, back] }),
  // @ts-expect-error a guard that is not yet decided
  () => make({ defaults, states: { ...rows, Pick: { always: [{ when: maybe, ...back }, back] } } }),
  // @ts-expect-error a row for a transient state: it never rests, so it meets no event
  () => make({ defaults, states: { ...rows, Pick: { always: decide, on: { Go: no, Stop: no } } } }),
  // @ts-expect-error an unknown action
  () => makeIdle({ ...idle, Stop: { to: 'Idle', then: shout } }),
  // @ts-expect-error a move that stays and returns another state
  () => makeIdle({ ...idle, Stop: { stay: stayElsewhere } }),
  // @ts-expect-error an arrow that goes and stays
  () => makeIdle({ ...idle, Stop: { ...back, stay: relax } }),
  // @ts-expect-error a target without a move
  () => makeIdle({ ...idle, Stop: { to: 'Idle' } }),
  // @ts-expect-error a move that is not finished
  () => makeIdle({ ...idle, Stop: { to: 'Idle', then: later } }),
  // @ts-expect-error an ignored cell without a reason
  () => makeIdle({ ...idle, Stop: { ignore: 'late' } }),
  // @ts-expect-error a transient state without a decision
  () => make({ defaults, states: { ...rows, Pick: {} } }),
  // @ts-expect-error a transient state that can fall through
  () => make({ defaults, states: { ...rows, Pick: { always: [decide[0]] } } }),
  // @ts-expect-error the default cell is missing, and Busy has no cell of its own
  () => make({ defaults: {}, states: rows }),
  // @ts-expect-error a default cell whose move stands for one state only
  () => make({ defaults: { Die: { to: 'Idle', then: rest } }, states: rows }),
  // @ts-expect-error a branch without an event that has no guard: the state could not rest
  () => make({ defaults, states: { ...rows, Idle: { on: idle, always: [back] } } }),
  // @ts-expect-error a transient state does not rest
  () => make({ defaults, states: { ...rows, Pick: { always: decide, rest: work } } }),
  // @ts-expect-error an entry that turns the state into another one
  () => make({ defaults, states: { ...rows, Busy: { on: busy, entry: relax } } }),
  // @ts-expect-error an undocumented state
  () => declare({ ...spec, states: { Idle: 'idle', Busy: 'busy', Pick: 'picks' } }),
  // @ts-expect-error an undocumented event
  () => declare({ ...spec, events: { Go: 'go', Stop: 'stop' } }),
  // @ts-expect-error a documented state that does not exist
  () => declare({ ...spec, states: { ...spec.states, Gone: 'gone' } }),
  // @ts-expect-error an initial state that does not exist
  () => declare({ ...spec, initial: 'Gone' }),
  // @ts-expect-error a default for an event that does not exist
  () => declare({ ...spec, defaults: ['Fly'] }),
];

test('the table that all wrong ones differ from is a good one', () => {
  const { state, path } = good.step({ name: 'Idle' }, { type: 'Go', count: 2 });
  assert.deepEqual(state, { name: 'Busy', count: 2 });
  assert.equal(path.length, 2);
  assert.equal(good.step(state, { type: 'Die' }).state.name, 'End');
});
