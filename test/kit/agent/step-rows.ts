import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '../../../packages/agent/src/machine/action.js';
import type { In, State, WaitReason } from '../../../packages/agent/src/machine/state.js';
import type { Diagnostic, Edge } from '../../../packages/machine/src/kernel/table.js';
import { stepFaults } from '../../../packages/verify/src/invariants.js';
import { event as cancels, PROMPT, waiting } from './by-hand.js';
import * as g from './given.js';

/** Whole steps made by hand, for the rules of steps in invariants.ts, which the machine itself does not break. */

/** A path by the names of its states; one with a mark after it is stayed in. */
export const path = (...names: readonly string[]): readonly Edge[] =>
  names.slice(1).map((name, index) => {
    const from = (names[index] ?? '').replace('!', '');
    const kind = name.endsWith('!') ? ('stay' as const) : ('go' as const);
    return {
      id: `${from}//0`,
      from,
      event: null,
      when: '',
      to: name.replace('!', ''),
      as: '',
      then: '',
      kind,
    };
  });

export const LATE: Diagnostic = {
  kind: 'late',
  state: 'WaitingForUserInput',
  event: 'Late',
  why: 'too late',
};
export const NOTICE: Action = { type: 'DisplayNotice', kind: 'cancelled', text: 'cancelled' };

export type StepRow = {
  readonly title: string;
  readonly before?: State;
  readonly event?: g.Given;
  readonly after?: State;
  readonly actions?: readonly Action[];
  readonly path?: readonly Edge[];
  readonly diagnostics?: readonly Diagnostic[];
  readonly says?: readonly string[];
};

/** What is left out: nothing happens while waiting. */
export const checkSteps = (rule: string, rows: readonly StepRow[]): void => {
  for (const { title, before = waiting(), event = cancels, after = before, ...step } of rows) {
    const { actions = [], path: taken = [], diagnostics = [], says = [] } = step;
    test(`${rule} ${title}: ${says.join(', ') || 'nothing is wrong'}`, () => {
      const found = stepFaults(before, g.eventOf(event, before), {
        state: after,
        actions,
        path: taken,
        diagnostics,
      });
      assert.deepEqual(found, says);
    });
  }
};

// ---- Rests ----

export const W = 'WaitingForUserInput';

export const rests = (
  reason: WaitReason,
  next: In<'WaitingForUserInput'>['next'] = 'rest',
): State => ({
  ...waiting(),
  reason,
  next,
});
export const stopped = (
  cause: Extract<WaitReason, { readonly kind: 'cancelled' }>['cause'],
): State => rests({ kind: 'cancelled', cause });

export const wrong = (said: string, expected: string): string =>
  `back-to-the-user: the reason is ${said} where it should be ${expected}`;

/** A stop that is told and a user who is asked, unless a row says otherwise. */
export const checkRests = (rows: readonly StepRow[]): void =>
  checkSteps(
    'back-to-the-user',
    rows.map((row) => ({ after: stopped('user'), actions: [NOTICE, PROMPT], ...row })),
  );
