import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import type { State } from '@pawl/agent/machine/state';
import type { Given } from '../../../../test/kit/agent/given.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { bring, type EndedWalk, type Place, type Step } from '../../../../test/kit/agent/walker.js';
import type {
  Projection,
  ProjectionCursor,
  ProjectionStep,
} from '../../src/projections/projection.js';
import { checkRefinement } from '../../src/projections/refinement-check.js';

/** Runs of the real machine in a seed's words. */

export type Taken = { readonly before: State; readonly event: Event; readonly step: Step };

export const takenBy = (walker: EndedWalk): readonly Taken[] =>
  walker.events().map((event, index) => {
    const [before, step] = walker.steps().slice(index, index + 2);
    assert.ok(before !== undefined && step !== undefined);
    return { before: before.state, event, step };
  });

/** What a seed's machine does with one event of ours. */
export type Seen = Taken & {
  readonly steps: readonly ProjectionStep[];
  readonly cursor: ProjectionCursor;
};

/** A whole run; each step is one of the seed's, or this fails. */
export const projected = (view: Projection, taken: readonly Taken[]): readonly Seen[] => {
  let { begin: cursor } = view;
  return taken.map((one) => {
    const followed = checkRefinement(view, cursor, one.before, one.event, one.step);
    assert.deepEqual(followed.faults, [], `${one.before.name} on ${one.event.type}`);
    cursor = followed.cursor;
    return { ...one, steps: followed.steps, cursor };
  });
};

/** `CallingLlm --LlmError--> Error / ScheduleRetry`; `Ready --> WaitingForUserInput` where the seed names neither. */
export const lineOf = ({
  from,
  event,
  to,
  action,
}: Pick<ProjectionStep, 'from' | 'event' | 'to' | 'action'>): string =>
  `${from} --${event === null ? '' : `${event}--`}> ${to}${action === null ? '' : ` / ${action}`}`;

/** Given, when, then. Settings are those of the view where the row names none. */
export type Row = {
  readonly title: string;
  readonly given: Place;
  readonly settings?: SettingsPatch;
  readonly send: readonly Given[];
  /** The seed's steps for the last event, as `lineOf` writes them. */
  readonly then: readonly string[];
  /** Actions of ours that the last step must have. */
  readonly does?: readonly string[];
};

/** Plays a row and returns what the seed's machine did with its last event. */
export const play = (view: Projection, row: Omit<Row, 'title'>): Seen => {
  const walker = bring(row.given, { ...view.settings, ...row.settings });
  walker.send(...row.send);
  const last = projected(view, takenBy(walker)).at(-1);
  assert.ok(last !== undefined);
  assert.deepEqual(last.steps.map(lineOf), row.then);
  const done = new Set(last.step.actions.map((action): string => action.type));
  for (const type of row.does ?? [])
    assert.ok(done.has(type), `${type} is missing in ${[...done]}`);
  return last;
};

export const check = (view: Projection, rows: readonly Row[]): void => {
  for (const row of rows) test(`${view.name}: ${row.title}`, () => void play(view, row));
};
