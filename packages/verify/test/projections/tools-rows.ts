import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import { finishReasonOf } from '@pawl/agent/machine/tools-mode';
import * as g from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { type EndedWalk, type Walker, walk } from '../../../../test/kit/agent/walker.js';
import type { ProjectionCursor, ProjectionEdge } from '../../src/projections/projection.js';
import { checkRefinement } from '../../src/projections/refinement-check.js';
import { tools } from '../../src/projections/seed-tools-mode.js';

/** Runs of tools mode in the words of seed 004. */

type Words = { readonly said: readonly string[]; readonly at: string };

/** A walk in the seed's words, and where its machine stands then; throws at a step that is not in its table. */
export const inSeedWords = (walker: EndedWalk, reached = new Set<ProjectionEdge>()): Words => {
  let cursor: ProjectionCursor = tools.begin;
  let before = walker.steps()[0]?.state as State; // a walk has at least its first state
  const said: string[] = [cursor.state];
  walker.events().forEach((event, index) => {
    const step = walker.steps()[index + 1];
    assert.ok(step !== undefined);
    const followed = checkRefinement(tools, cursor, before, event, step);
    assert.deepEqual(followed.faults, []);
    for (const { event: name, to, edge } of followed.steps) {
      said.push(`${name} ${to}`);
      if (edge !== null) reached.add(edge);
    }
    cursor = followed.cursor;
    before = step.state;
  });
  return { said, at: cursor.state };
};

export const run = (
  settings: Parameters<typeof settingsOf>[0],
  ...given: readonly g.Given[]
): Walker => {
  const walker = walk(initialState(settingsOf({ hooks: 'never', autoRearm: 'off', ...settings })));
  for (const one of [g.begin, g.input('what is in a.ts?'), ...given]) {
    walker.send(g.eventOf(one, walker.state()));
  }
  return walker;
};

const finishOf = (walker: Walker): string | null => {
  const state = walker.state();
  return state.name === 'WaitingForUserInput' ? finishReasonOf(state) : null;
};

export const round = (callId: string, text = `result ${callId}`): readonly g.Given[] => [
  g.wants(g.grep(callId)),
  g.ended(callId, 'ok', text),
];

export type Row = {
  readonly title: string;
  readonly settings?: Parameters<typeof settingsOf>[0];
  readonly given: readonly g.Given[];
  readonly path: readonly string[];
  /** Where the seed's machine stands in the end: in DONE where the path leads there, else in INIT again (rule 3). */
  readonly at?: string;
  readonly finish: string | null;
};

export const INTO_TOOLS = [
  'INIT',
  'LLMResponseReceived PROMPTING',
  'ToolCallsFound EXECUTING_TOOLS',
];

/** Each row is a test. */
export const check = (rows: readonly Row[]): void => {
  for (const { title, settings = {}, given, path, at, finish } of rows) {
    test(`seed 004, tools mode: ${title}`, () => {
      const walker = run(settings, ...given);
      const words = inSeedWords(walker);
      assert.deepEqual(words.said, path);
      assert.equal(words.at, at ?? (path.at(-1)?.endsWith(' DONE') ? 'DONE' : 'INIT'));
      assert.equal(finishOf(walker), finish);
    });
  }
};
