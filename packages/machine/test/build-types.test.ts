import assert from 'node:assert/strict';
import test from 'node:test';
import { mutableStateMachine, stateMachine } from '../src/builder/builder.js';
import { run, runAsync } from '../src/builder/drive.js';

/**
 * What does not compile. Each line marked `@ts-expect-error` has to be an error of its own: `npm run types` complains
 * about a mark without one. The functions are never called.
 */

type State = 'Idle' | 'Busy' | 'Done';
type Event =
  | { readonly type: 'Go'; readonly count: number }
  | { readonly type: 'Say'; readonly text: string }
  | { readonly type: 'Stop' };
type Context = { readonly total: number };

const begin = () => stateMachine<State, Event, Context>();
const beginMutable = () => mutableStateMachine<State, Event, { total: number }>();

const wrong = [
  // @ts-expect-error: no such state to leave
  () => begin().transition('Nowhere', 'Go', 'Busy'),
  // @ts-expect-error: no such state in a list
  () => begin().transition(['Idle', 'Nowhere'], 'Go', 'Busy'),
  // @ts-expect-error: no such state to enter
  () => begin().transition('Idle', 'Go', 'Nowhere'),
  // @ts-expect-error: no such event
  () => begin().transition('Idle', 'Fly', 'Busy'),
  // @ts-expect-error: an event of one type has no field of another
  () => begin().transition('Idle', 'Go', 'Busy', { guard: ({ text }) => text === '' }),
  // @ts-expect-error: of two types it has only what both have
  () => begin().transition('Idle', ['Go', 'Say'], 'Busy', { guard: ({ count }) => count > 0 }),
  // @ts-expect-error: an action of a machine that does not mutate returns the next context
  () => begin().transition('Idle', 'Go', 'Busy', { action: () => undefined }),
  // @ts-expect-error: and no other context
  () => begin().transition('Idle', 'Go', 'Busy', { action: () => ({ total: 'many' }) }),
  // @ts-expect-error: so do callbacks of states
  () => begin().state('Idle', { onEnter: () => undefined }),
  () =>
    begin().state('Idle', {
      onEnter: (context) => {
        // @ts-expect-error: a context that is not to be changed can't be
        context.total = 1;
        return context;
      },
    }),
  // @ts-expect-error: a guard says yes or no
  () => begin().transition('Idle', 'Go', 'Busy', { guard: () => 'yes' }),
  // @ts-expect-error: no such state at the end
  () => begin().terminal('Nowhere'),
  // @ts-expect-error: no such state to begin with
  () => begin().build('Nowhere'),
  // @ts-expect-error: transitions without an event get the context alone
  () => begin().always('Idle', 'Busy', { guard: (context, event) => context.total > event }),
  // @ts-expect-error: nothing is registered in a built machine
  () => begin().build('Idle').transition('Idle', 'Go', 'Busy'),
  // @ts-expect-error: an event that the machine does not know
  () => begin().build('Idle').step('Idle', { total: 0 }, { type: 'Fly' }),
  // @ts-expect-error: an event without what it carries
  () => begin().build('Idle').step('Idle', { total: 0 }, { type: 'Go' }),
  // @ts-expect-error: a source gives events of the machine
  () => run(begin().build('Idle'), { total: 0 }, () => ({ type: 'Fly' })),
  // @ts-expect-error: a source that must be awaited is for runAsync
  () => run(begin().build('Idle'), { total: 0 }, async () => null),
  // @ts-expect-error: a context of another type
  () => run(begin().build('Idle'), { sum: 0 }, () => null),
];

const right = [
  () =>
    begin().transition('Idle', 'Go', 'Busy', {
      action: ({ count }, { total }) => ({ total: total + count }),
    }),
  () =>
    begin().transition('Idle', ['Go', 'Say'], 'Busy', {
      guard: (event) => event.type === 'Go' && event.count > 0,
    }),
  () =>
    beginMutable().transition('Idle', 'Go', 'Busy', {
      action: ({ count }, context) => {
        context.total += count;
      },
    }),
  () => beginMutable().state('Idle', { onEnter: ({ total }) => total + 1 }),
  () => runAsync(begin().build('Idle'), { total: 0 }, async () => null),
];

test('every line above is a mistake, or none', () => {
  assert.equal(wrong.length, 20);
  for (const make of right) assert.ok(make());
});
