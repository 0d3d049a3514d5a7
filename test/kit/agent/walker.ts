import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import {
  conversationLength,
  messagesOf,
} from '../../../packages/agent/src/machine/conversation.js';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState, step } from '../../../packages/agent/src/machine/machine.js';
import type { Message } from '../../../packages/agent/src/machine/message.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import { AppendList } from '../../../packages/machine/src/kernel/append-list.js';
import { deepEqual } from '../../../packages/verify/src/exploration/exploration-model.js';
import {
  requiredRequestFaults,
  stateFaults,
  stepFaults,
} from '../../../packages/verify/src/invariants.js';
import type { Given } from './given.js';
import * as g from './given.js';
import { type SettingsPatch, settingsOf } from './settings.js';
import { lineOf } from './shown.js';

/**
 * Walks the machine by events, and looks at every step:
 *
 * 1. Each step is taken twice on deeply frozen input and comes out the same.
 * 2. The machine's own invariants hold, and the rules of every step.
 * 3. Each request, and the conversation at rest, is valid for a strict provider (checked here independently).
 * 4. No event is silent; entering W prompts.
 */

export type Step = ReturnType<typeof step>;

export type Walker = {
  readonly state: () => State;
  readonly last: () => Step;
  /** Every step so far, the newest last. */
  readonly steps: () => readonly Step[];
  readonly events: () => readonly Event[];
  readonly send: (...given: readonly Given[]) => Step;
};

/** A walk that nobody continues. */
export type EndedWalk = Omit<Walker, 'send'>;

const freeze = (value: unknown): void => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of value instanceof AppendList ? value.toArray() : Object.values(value))
    freeze(inner);
};

/** What is wrong with messages in the eyes of a strict provider; empty for nothing. */
export const faultsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message, index) => {
    const before = messages[index - 1];
    const faults: string[] = [];
    if (message.parts.length === 0) faults.push(`message ${index} is empty`);
    if (before === undefined ? message.role !== 'user' : before.role === message.role) {
      faults.push(`message ${index} is out of turn`);
    }
    if (message.role === 'assistant') {
      const open =
        index === messages.length - 1 && message.parts.some((part) => part.type === 'call');
      return open ? [...faults, 'the last calls are not answered'] : faults;
    }
    const asked = (before?.parts ?? []).flatMap((part) =>
      part.type === 'call' ? [part.callId] : [],
    );
    const answered = message.parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
    if (!isDeepStrictEqual(asked, answered))
      faults.push(`message ${index} answers ${answered}, asked was ${asked}`);
    if (message.parts.some((part, place) => part.type === 'result' && place >= answered.length)) {
      faults.push(`message ${index} has text before results`);
    }
    if (message.parts.some((part) => part.text.trim() === ''))
      faults.push(`message ${index} has a blank part`);
    return faults;
  });

/** Events that are for display, or a record of the world. */
const SHOWN_ONLY = new Set(['ReasoningDelta', 'ToolCallDelta', 'ToolProgress', 'CheckpointTaken']);

const assertRules = (before: State, event: Event, taken: Step): void => {
  const { state, actions, diagnostics } = taken;
  const where = `${before.name} on ${event.type}`;
  assert.deepEqual(stateFaults(before, event, taken), [], where);
  assert.deepEqual(stepFaults(before, event, taken), [], where);
  assert.deepEqual(requiredRequestFaults(before, event, taken), [], where);
  const messages = messagesOf(state.session.conversation);
  for (const action of actions) {
    if (action.type !== 'SendLlmRequest') continue;
    assert.deepEqual(faultsOf(messages), [], where);
    assert.equal(messages.at(-1)?.role, 'user', where);
    assert.equal(action.length, conversationLength(state.session.conversation), where);
    assert.equal(state.name === 'CallingLlm' && state.requestId, action.requestId, where);
    assert.equal(state.name === 'CallingLlm' && state.purpose, action.purpose, where);
  }
  assert.ok(
    actions.filter((action) => action.type === 'SendLlmRequest').length <= 1,
    `${where}: two requests`,
  );
  if (state.name === 'WaitingForUserInput' || state.name === 'ShuttingDown') {
    assert.deepEqual(faultsOf(messages), [], where);
  }
  if (state.name === 'WaitingForUserInput' && before.name !== 'WaitingForUserInput') {
    assert.ok(
      actions.some((action) => action.type === 'PromptForInput'),
      `${where}: no prompt in ${actions.map(lineOf)}`,
    );
  }
  const changed = actions.length > 0 || (state !== before && jsonOf(state) !== jsonOf(before));
  if (!SHOWN_ONLY.has(event.type)) assert.ok(changed || diagnostics.length > 0, `${where}: silent`);
};

const texts = new WeakMap<State, string>();

/** The JSON of a state as it was when it was first seen: a walk sees each as the end of a step and as the next one's start. */
const jsonOf = (state: State): string => {
  const text = texts.get(state) ?? JSON.stringify(state);
  texts.set(state, text);
  return text;
};

/** One checked step. */
export const take = (before: State, event: Event): Step => {
  freeze(before);
  freeze(event);
  const earlier = jsonOf(before);
  const taken = step(before, event);
  const again = step(before, event);
  const where = `${before.name} on ${event.type}`;
  assert.ok(deepEqual(again, taken), `${where}: the second time differs`);
  assert.equal(JSON.stringify(before), earlier, `${where}: the input changed`);
  assertRules(before, event, taken);
  return taken;
};

export const walk = (first: State): Walker => {
  const steps: Step[] = [{ state: first, actions: [], path: [], diagnostics: [] }];
  const events: Event[] = [];
  const last = (): Step => steps[steps.length - 1] ?? assert.fail('a walk has at least its start');
  const state = (): State => last().state;
  const send = (...given: readonly Given[]): Step => {
    for (const one of given) {
      const event = g.eventOf(one, state());
      events.push(event);
      steps.push(take(state(), event));
    }
    return last();
  };
  return { state, last, steps: () => steps, events: () => events, send };
};

/** A new machine in Ready. */
export const start = (patch: SettingsPatch = {}): Walker => walk(initialState(settingsOf(patch)));

const SMALL: SettingsPatch = { windowTokens: 10_000 };
const FULL = g.usage(0, 9_300);
const long = (word: string): string => `${word} `.repeat(80).trim();
/** Three turns that are worth a compaction; the last one reports `spent`. */
const history = (spent = g.usage()): readonly Given[] => [
  g.input(long('one')),
  g.says(long('first')),
  g.input(long('two')),
  g.says(long('second')),
  g.input(long('three')),
  g.says(long('third'), spent),
];

/** Ways into each resting state, by real events only. */
const WAYS = {
  Ready: [],
  W: [g.begin],
  'C[u]': [g.begin, g.input('hi')],
  'C[t]': [g.begin, g.input('hi'), g.wants(g.grep('1')), g.started('1'), g.ended('1')],
  Er: [g.begin, g.input('hi'), g.fails()],
  /** 1 runs, 2 waits for it. */
  X: [g.begin, g.input('hi'), g.wants(g.edit('1'), g.edit('2')), g.started('1')],
  'H[c]': [g.begin, g.input('hi'), g.wants(g.edit('1')), g.started('1'), g.ended('1')],
  'H[f]': [
    g.begin,
    g.input('hi'),
    g.wants(g.edit('1')),
    g.started('1'),
    g.ended('1'),
    g.hookDone({ changedFiles: ['a.ts'], dirty: true }),
  ],
  'H[a]': [
    g.begin,
    g.input('hi'),
    g.wants(g.edit('1')),
    g.started('1'),
    g.ended('1'),
    g.hookDone({ changedFiles: ['a.ts'], dirty: true }),
    g.hookDone({ dirty: true }),
  ],
  /** The conversation is long, the window not full. */
  'W long': [g.begin, ...history()],
  /** The window is nearly full. */
  'W full': [g.begin, ...history(FULL)],
  'C[u] long': [g.begin, ...history(), g.input('x')],
  'C[t] long': [g.begin, ...history(), g.input('x'), g.wants(g.grep('1')), g.ended('1')],
  'K[i]': [g.begin, ...history(FULL), g.input('x')],
  'K[m]': [
    g.begin,
    ...history(),
    g.input('x'),
    g.completed({ calls: [g.grep('1')], usage: FULL }),
    g.ended('1'),
  ],
  'K[o]': [g.begin, ...history(), g.input('x'), g.overflows],
  Z: [g.begin, g.shutdown],
} satisfies Readonly<Record<string, readonly Given[]>>;

export type Place = keyof typeof WAYS;
/** The resting states that a session can be in, one place each. */
export const PLACES: readonly Place[] = [
  ...([
    'Ready',
    'W',
    'C[u]',
    'C[t]',
    'Er',
    'X',
    'H[c]',
    'H[f]',
    'H[a]',
    'K[i]',
    'K[m]',
    'K[o]',
    'Z',
  ] as const),
];

/** A machine brought to a place; settings hold from the start. */
export const bring = (place: Place, patch: SettingsPatch = {}): Walker => {
  const small = place.startsWith('K') || place.endsWith('full') || place.endsWith('long');
  const walker = start(small ? { ...SMALL, ...patch } : patch);
  walker.send(...WAYS[place]);
  return walker;
};
