import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelReply, toolCall, userInput } from '../../src/machine/event.js';

/** Calls, replies and texts of a user with their defaults, as examples and tests write them. */

test('a call that is not described changes something, runs alone, and is like no other', () => {
  assert.deepEqual(toolCall({ callId: 'c1', tool: 'bash', input: { command: 'ls' } }), {
    callId: 'c1',
    tool: 'bash',
    input: { command: 'ls' },
    verdict: { kind: 'ok' },
    traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 60_000 },
    facts: { argv: [], paths: [], hosts: [], shape: 'bash {"command":"ls"}' },
  });
  const { traits, facts, title } = toolCall({
    callId: 'c1',
    tool: 'read',
    traits: { mutating: false },
    facts: { paths: ['/a'] },
    title: 'a',
  });
  assert.deepEqual([traits.mutating, facts.paths, title], [false, ['/a'], 'a']);
});

test('a reply has its text, then its calls, and stops for them', () => {
  const reply = (part: { readonly text?: string; readonly calls?: string[] }) => {
    const calls = part.calls?.map((callId) => toolCall({ callId, tool: 'read' }));
    const { message, stopReason } = modelReply({
      requestId: 'req-1',
      at: 1,
      model: 'p/m',
      ...part,
      ...(calls === undefined ? { calls: [] } : { calls }),
    });
    return [message?.parts.map(({ type }) => type).join(' ') ?? null, stopReason];
  };
  assert.deepEqual(reply({ text: 'Hi.' }), ['text', 'end']);
  assert.deepEqual(reply({ text: 'Hi.', calls: ['c1'] }), ['text call', 'toolUse']);
  assert.deepEqual(reply({ calls: ['c1'] }), ['call', 'toolUse']);
  assert.deepEqual(reply({}), [null, 'end']);
  const { calls } = modelReply({ requestId: 'req-1', at: 1, model: 'p/m', text: 'Hi.' });
  assert.deepEqual(calls, []);
});

test('a text of the user goes to the model at once, unless it is to follow', () => {
  assert.deepEqual(userInput('Hi.', 1), { type: 'UserInput', at: 1, text: 'Hi.', mode: 'steer' });
  assert.equal(userInput('Hi.', 1, 'followUp').mode, 'followUp');
});
