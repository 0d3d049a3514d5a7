import { machine } from '../../../packages/machine/src/kernel/machine.js';
import {
  type EventOf,
  fault,
  late,
  type MoveResult,
  type StateOf,
} from '../../../packages/machine/src/kernel/table.js';

/** A small machine with everything that a table can have: a lamp that counts how often it was lit, and wears out. */

export type Lamp =
  | { readonly name: 'Off'; readonly lit: number }
  | { readonly name: 'On'; readonly lit: number; readonly level: number }
  | { readonly name: 'Blinking'; readonly lit: number; readonly left: number }
  | { readonly name: 'Checking'; readonly lit: number }
  | { readonly name: 'Broken' };
export type Hand =
  | { readonly type: 'Press'; readonly level: number }
  | { readonly type: 'Dim'; readonly by: number }
  | { readonly type: 'Blink'; readonly times: number }
  | { readonly type: 'Tick' }
  | { readonly type: 'Drop' };
export type Sound = { readonly type: 'Say'; readonly text: string };

type In<N extends Lamp['name']> = StateOf<Lamp, N>;
type On<T extends Hand['type']> = EventOf<Hand, T>;
type To<N extends Lamp['name']> = MoveResult<In<N>, Sound>;

export const say = (text: string): Sound => ({ type: 'Say', text });

const switchOn = (state: In<'Off'>): To<'Checking'> => ({
  state: { name: 'Checking', lit: state.lit + 1 },
  actions: [say('click')],
});
const switchOff = ({ lit }: In<'On'> | In<'Blinking'>): To<'Off'> => ({
  state: { name: 'Off', lit },
  actions: [say('clack')],
});
const isWorn = (state: In<'Checking'>): boolean => state.lit > 3;
const burnOut = (): To<'Broken'> => ({ state: { name: 'Broken' }, actions: [say('bang')] });
const light = ({ lit }: In<'Checking'>): To<'On'> => ({
  state: { name: 'On', lit, level: 10 },
  actions: [say('light')],
});
const isTooMuch = (state: In<'On'>, event: On<'Dim'>): boolean => event.by > state.level;
const isNothing = (_state: In<'On'>, event: On<'Dim'>): boolean => event.by === 0;
const keepLevel = (state: In<'On'>): To<'On'> => ({
  state,
  actions: [],
  late: 'dimmed by nothing',
});
const dim = (state: In<'On'>, event: On<'Dim'>): To<'On'> => ({
  state: { ...state, level: state.level - event.by },
  actions: [say('dimmer')],
});
const startBlinking = (state: In<'Off'> | In<'On'>, event: On<'Blink'>): To<'Blinking'> => ({
  state: { name: 'Blinking', lit: state.lit, left: event.times },
  actions: [],
});
const isDark = (state: In<'On'>): boolean => state.level === 0;
const goDark = ({ lit }: In<'On'>): To<'Off'> => ({
  state: { name: 'Off', lit },
  actions: [say('dark')],
});
const blinkOnce = (state: In<'Blinking'>): To<'Blinking'> => ({
  state: { ...state, left: state.left - 1 },
  actions: [say('blink')],
});
const wantsNothing = (state: In<'Blinking'>): boolean => state.left <= 0;
const wantsForever = (state: In<'Blinking'>): boolean => state.left === Number.POSITIVE_INFINITY;
const blinkOn = (state: In<'Blinking'>): To<'Blinking'> => ({ state, actions: [say('blink')] });
const endBlinking = ({ lit }: In<'Blinking'>): To<'Off'> => ({
  state: { name: 'Off', lit },
  actions: [],
});
const shatter = (): To<'Broken'> => ({ state: { name: 'Broken' }, actions: [say('crash')] });
const warm = (state: In<'On'>): To<'On'> => ({
  state: { ...state, level: state.level + 1 },
  actions: [say('warm')],
});
const cool = (state: In<'On'>): readonly Sound[] => [say(`cool from ${state.level}`)];
const hum = (state: In<'On'>): To<'On'> => ({ state, actions: [say(`hum at ${state.level}`)] });

export const lamp = machine<Lamp, Hand, Sound>()({
  initial: 'Off',
  transient: ['Checking'],
  defaults: ['Drop'],
  ends: ['Broken'],
  states: {
    Off: 'dark',
    On: 'bright',
    Blinking: 'both',
    Checking: 'is it worn?',
    Broken: 'in pieces',
  },
  events: {
    Press: 'the switch',
    Dim: 'the knob',
    Blink: 'the other switch',
    Tick: 'time',
    Drop: 'oops',
  },
})({
  states: {
    Off: {
      on: {
        Press: { to: 'Checking', then: switchOn },
        Dim: late('it is dark already'),
        Blink: { to: 'Blinking', then: startBlinking },
        Tick: fault('nothing ticks'),
      },
    },
    On: {
      entry: warm,
      always: [{ when: isDark, to: 'Off', then: goDark }],
      rest: hum,
      on: {
        Press: { to: 'Off', then: switchOff },
        Dim: [
          { when: isTooMuch, to: 'Off', as: 'dimmed', then: goDark },
          { when: isNothing, stay: keepLevel },
          { stay: dim },
        ],
        Blink: { to: 'Blinking', then: startBlinking },
        Tick: fault('nothing ticks'),
      },
      exit: cool,
    },
    Blinking: {
      alwaysOnEntry: [
        { when: wantsNothing, to: 'Off', then: endBlinking },
        { when: wantsForever, to: 'Blinking', then: blinkOn },
      ],
      on: {
        Press: { to: 'Off', then: switchOff },
        Dim: late('it blinks'),
        Blink: late('it blinks'),
        Tick: { stay: blinkOnce },
      },
    },
    Checking: {
      always: [
        { when: isWorn, to: 'Broken', then: burnOut },
        { to: 'On', then: light },
      ],
    },
    Broken: {
      on: {
        Press: late('broken'),
        Dim: late('broken'),
        Blink: late('broken'),
        Tick: late('broken'),
        Drop: late('broken'),
      },
    },
  },
  defaults: { Drop: { to: 'Broken', then: shatter } },
});
