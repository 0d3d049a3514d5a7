import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Event } from '../../packages/agent/src/machine/event.js';
import { agent, initialState, MACHINE_VERSION } from '../../packages/agent/src/machine/machine.js';
import { defaultSettings } from '../../packages/agent/src/machine/settings.js';
import { eventShape } from '../../packages/agent/src/machine/shapes.js';
import { ASK_VERSION } from '../../packages/ask/src/journaled-ask-machine.js';
import { codeMode } from '../../packages/ask/src/run/table.js';

/**
 * Nobody changes the machine without a decision about its version. A changed machine fails here: raise MACHINE_VERSION
 * and add a row, or add a row of the same version whose `why` says why old events still lead to the same states. What
 * guards and moves compute is not seen here: the golden journals of the same version fail then.
 */
type Known = { readonly version: number; readonly fingerprint: string; readonly why: string };

const KNOWN: readonly Known[] = [
  {
    version: 2,
    fingerprint: '434145934731ed32',
    why: 'the first version that journals name; theirs without one is 1',
  },
  {
    version: 2,
    fingerprint: 'b18e894bf4944e71',
    why: 'rewinds: three events and a state that no journal had before; all arrows of before stay',
  },
  {
    version: 2,
    fingerprint: 'aafc13806e8afc0d',
    why: 'money is set aside by an event that no journal had before; all arrows of before stay',
  },
  {
    version: 2,
    fingerprint: '47bf9ef391c06c2c',
    why: 'answers in words, to calls that no journal had before; other answers go the arrow of before',
  },
  {
    version: 2,
    fingerprint: 'c8a109e9e1616274',
    why: 'the words of a rule; a journal has the rules with which it was written',
  },
  {
    version: 2,
    fingerprint: 'aa7c6f8349f77c86',
    why: 'refused pictures, by a field that no journal had before; a default that each journal names',
  },
  {
    version: 2,
    fingerprint: '803dcecc5f6dd024',
    why: 'the words of a rule; a journal has the rules with which it was written',
  },
  {
    version: 2,
    fingerprint: 'bd5ea2314ec5d22d',
    why: 'fallback, by a setting that no journal had before; without it all arrows of before stay',
  },
  {
    version: 3,
    fingerprint: 'bd5ea2314ec5d22d',
    why: 'what git may move is no fact for the calls behind it: they may need an answer',
  },
  {
    version: 4,
    fingerprint: 'bd5ea2314ec5d22d',
    why: 'a sum of dollars says that it is a lower bound; the id of a refused request is closed',
  },
  {
    version: 5,
    fingerprint: 'e032d149aeed515d',
    why: 'a limit that is set in a turn sets money aside for calls; hooks that run again count twice',
  },
];
const KNOWN_ASK: readonly Known[] = [
  { version: 1, fingerprint: 'bbe068f59be861fc', why: 'the first version' },
  { version: 1, fingerprint: '572ebd528eafdbf9', why: 'three guards have other names' },
  {
    version: 2,
    fingerprint: '572ebd528eafdbf9',
    why: 'a run that goes on after its answer has its time limit again',
  },
  {
    version: 3,
    fingerprint: '572ebd528eafdbf9',
    why: 'without a limit a sum says that it lacks what a call that broke off cost',
  },
];

/** What an event is refused for: the fields of each shape, found by leaving everything out. */
const fieldsOf = (type: string): readonly string[] => {
  const event: Record<string, unknown> = { type, at: 0 };
  const names: string[] = [];
  for (let count = 0; count < 40; count++) {
    const fault = eventShape.check(event as unknown as Event);
    const [field] = fault?.path ?? [];
    if (fault === null || typeof field !== 'string' || field in event) return names;
    names.push(`${field}: ${fault.must}`);
    event[field] = guess(fault.must);
  }
  return names;
};

const guess = (must: string): unknown => {
  if (must.includes('text')) return '';
  if (must.includes('number')) return 1;
  if (must.includes('list')) return [];
  if (must.includes('true')) return false;
  const [, first = ''] = /^one of ([^,]+)/.exec(must) ?? [];
  return first === '' ? {} : first;
};

/** A bundler may number functions of the same name. */
const unnumbered = (name: string): string => name.replace(/\d+$/, '');
const edgesOf = (edges: typeof agent.edges): unknown =>
  edges.map(({ when, then, ...edge }) => ({
    ...edge,
    when: unnumbered(when),
    then: unnumbered(then),
  }));

const hash = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

const agentFingerprint = hash([
  edgesOf(agent.edges),
  agent.ignored,
  Object.keys(agent.events).map((type) => [type, fieldsOf(type)]),
  Object.keys(agent.states),
  initialState({ ...defaultSettings, model: 'm', workspace: '/w' }),
]);
const askFingerprint = hash([
  edgesOf(codeMode.edges),
  codeMode.ignored,
  Object.keys(codeMode.states),
]);

const assertKnown = (known: readonly Known[], fingerprint: string): void => {
  const last = known.at(-1);
  const text = `the machine has changed: its fingerprint is ${fingerprint}; see the comment of KNOWN`;
  assert.equal(fingerprint, last?.fingerprint, text);
  assert.ok(known.every(({ why }) => why.length > 10));
};

test('the machine of the agent is the one of its version', () => {
  assertKnown(KNOWN, agentFingerprint);
  assert.equal(KNOWN.at(-1)?.version, MACHINE_VERSION);
});

test('the machine of pawl ask is the one of its version', () => {
  assertKnown(KNOWN_ASK, askFingerprint);
  assert.equal(KNOWN_ASK.at(-1)?.version, ASK_VERSION);
});
