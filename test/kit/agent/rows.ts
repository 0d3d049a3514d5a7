import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '../../../packages/agent/src/machine/action.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type { Given } from './given.js';
import type { SettingsPatch } from './settings.js';
import { assertTalk, callsOf, type Expected, isShown, lineOf, nameOf, pathOf } from './shown.js';
import { bring, type Place, type Walker } from './walker.js';

/** Given, when, then. What is left out is not looked at; `does` lists all actions that are not for display. */
export type Row = {
  /** The rule that the row is about: docs/design/rules.md. test/docs/rules.test.ts holds that it is there. */
  readonly rule: string;
  readonly title: string;
  readonly given: Place | (() => Walker);
  readonly settings?: SettingsPatch;
  readonly send?: readonly Given[];
  /** The state at the end, by its short name. */
  readonly state: string;
  /** `1 starting, 2 queued` */
  readonly calls?: string;
  /** All actions of the last step that are not for display, in any order. */
  readonly does?: readonly string[];
  /** Beginnings of display actions of the last step, or expressions for them. */
  readonly shows?: readonly (string | RegExp)[];
  /** Beginnings of actions that the last step does not have. */
  readonly hides?: readonly string[];
  readonly path?: string;
  readonly talk?: readonly Expected[];
  /** Texts held in the queue. */
  readonly queue?: readonly string[];
  /** The last event changed nothing but usage, did nothing, and left a diagnostic. */
  readonly quiet?: true;
  /** The last step left a diagnostic. */
  readonly says?: true;
  readonly also?: (walker: Walker) => void;
};

const kept = ({ session: { usage, unaccounted, ...session }, ...own }: State): string =>
  JSON.stringify({ own, session });

const assertQuiet = (walker: Walker): void => {
  const [before, last] = walker.steps().slice(-2);
  assert.ok(before !== undefined && last !== undefined, 'a quiet event needs a step');
  assert.deepEqual(last.actions, []);
  assert.ok(last.diagnostics.length > 0, 'a diagnostic is missing');
  assert.equal(kept(last.state), kept(before.state));
};

const assertShown = (row: Row, actions: readonly Action[]): void => {
  const lines = actions.map(lineOf);
  for (const wanted of row.shows ?? []) {
    const found = lines.some((line) =>
      typeof wanted === 'string' ? line.startsWith(wanted) : wanted.test(line),
    );
    assert.ok(found, `nothing shows ${wanted} in\n${lines.join('\n')}`);
  }
  for (const unwanted of row.hides ?? []) {
    const found = lines.find((line) => line.startsWith(unwanted));
    assert.equal(found, undefined, `there should be no ${unwanted}`);
  }
};

/** Looks at a walk the way a row says. */
const assertRow = (row: Row, walker: Walker): void => {
  const { state, actions, path, diagnostics } = walker.last();
  assert.equal(nameOf(state), row.state);
  if (row.calls !== undefined) assert.equal(callsOf(state), row.calls);
  if (row.does !== undefined) {
    const done = actions.filter((action) => !isShown(action)).map(lineOf);
    assert.deepEqual(done.toSorted(), row.does.toSorted());
  }
  assertShown(row, actions);
  if (row.path !== undefined) assert.equal(pathOf(path), row.path);
  if (row.talk !== undefined) assertTalk(state.session.conversation, row.talk);
  const queued = state.session.queue.map((item) => item.text);
  if (row.queue !== undefined) assert.deepEqual(queued, row.queue);
  if (row.quiet === true) assertQuiet(walker);
  if (row.says === true) assert.ok(diagnostics.length > 0, 'a diagnostic is missing');
  row.also?.(walker);
};

export const check = (rows: readonly Row[]): void => {
  for (const row of rows) {
    test(`${row.rule}: ${row.title}`, () => {
      const walker = typeof row.given === 'string' ? bring(row.given, row.settings) : row.given();
      if (row.send !== undefined) walker.send(...row.send);
      assertRow(row, walker);
    });
  }
};

/** What the session has spent so far, in dollars, rounded to cents. */
export const spentBy = (walker: Walker): number =>
  Math.round(walker.state().session.usage.costUsd * 100) / 100;

/** All actions of a kind over a whole walk. */
export const countOf = (walker: Walker, type: Action['type']): number =>
  walker.steps().flatMap((one) => one.actions.filter((action) => action.type === type)).length;
