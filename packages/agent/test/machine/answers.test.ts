import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { play } from '../../../../test/kit/agent/trace-player.js';
import { type Action, answersTo } from '../../src/machine/action.js';
import type { Event } from '../../src/machine/event.js';

/** The table of answers, seen in the golden traces, which walk every arrow of the machine. */

/** The ids by which an event and the action that it answers know each other. */
const idsOf = (value: Action | Event): readonly string[] => {
  switch (value.type) {
    case 'PromptForInput':
    case 'UserInput':
      return ['the user'];
    case 'ExecuteTools':
      return [value.batchId, ...value.calls.map(({ callId }) => `${value.batchId} ${callId}`)];
    case 'CancelTools':
      return value.callIds.map((callId) => `${value.batchId} ${callId}`);
    case 'PreviewCall':
    case 'RequestApproval':
      return [`${value.batchId} ${value.call.callId}`];
    case 'RequestMeasured':
    case 'UsageReported':
      return [value.usageId];
    case 'ToolsFailed':
      return [value.batchId];
    default:
      if ('requestId' in value) return value.requestId === null ? [] : [value.requestId];
      if ('callId' in value) return [`${value.batchId} ${value.callId}`];
      if ('rewindId' in value) return [value.rewindId];
      if ('hookId' in value) return [value.hookId];
      if ('compactionId' in value) return [value.compactionId];
      return 'timerId' in value ? [value.timerId] : [];
  }
};

const all = ({ before, last, late }: (typeof answersTo)[Action['type']]) => [
  ...before,
  ...last,
  ...late,
];

/** What a user says, unasked too, and hooks of a user, which may run for a request that is over. */
const OF_USERS: readonly string[] = ['UserInput', 'CancelTool', 'UserHooksRan', 'RewindRequested'];

const folder = new URL('../../../../test/traces/', import.meta.url);

/**
 * `seen`: pairs of an action and an event with its id that came after it and was not ignored.
 * `unexplained`: such events that the table names for no action before them.
 */
const readTraces = () => {
  const seen = new Set<string>();
  const unexplained = new Set<string>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.trace'))) {
    const asked: Action[] = [];
    for (const { event, step } of play(readFileSync(new URL(file, folder), 'utf8')).steps) {
      const ids = idsOf(event);
      if (step.diagnostics.length === 0 && ids.length > 0) {
        const actions = asked.filter((action) => idsOf(action).some((id) => ids.includes(id)));
        for (const { type } of actions) seen.add(`${type} ${event.type}`);
        const isExplained =
          OF_USERS.includes(event.type) ||
          actions.some(({ type }) => all(answersTo[type]).includes(event.type));
        if (!isExplained) unexplained.add(`${event.type} in ${file}`);
      }
      asked.push(...step.actions);
    }
  }
  return { seen, unexplained };
};

test('each event that the table of answers names is seen to answer its action, and no other is', () => {
  const { seen, unexplained } = readTraces();
  const named = Object.entries(answersTo).flatMap(([action, answers]) =>
    all(answers).map((event) => `${action} ${event}`),
  );
  assert.deepEqual(
    named.filter((pair) => !seen.has(pair)),
    [],
  );
  assert.deepEqual([...unexplained], []);
});
