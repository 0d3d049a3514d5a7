import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '@pawl/agent/machine/call';
import type { In, SessionData, State } from '@pawl/agent/machine/state';
import {
  batch,
  failed,
  llm,
  queued,
  running,
  session,
  waiting,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { noCharges } from '../../src/exploration/charges.js';
import type { Configuration } from '../../src/exploration/configuration.js';
import { stateKeyFor } from '../../src/exploration/state-key.js';
import { configurationNamed } from './small.js';

/**
 * The key, part by part: `state|session|limits|turn`, then what may still cost something. A part that is forgotten makes
 * one node of two; key.test.ts asks the machine whether that may be.
 */

const everything = configurationNamed('everything');
const keyOf = (
  state: State,
  now = 0,
  costlyLeft = 0,
  configuration: Configuration = everything,
): string =>
  stateKeyFor(configuration)({ state, cursors: [], costlyLeft, charges: noCharges, now });
const part = (index: number) => (state: State, now?: number) => keyOf(state, now).split('|')[index];

type Row = readonly [title: string, state: State, key: string];
const check = (of: (state: State) => string | undefined, rows: readonly Row[]): void => {
  for (const [title, state, key] of rows)
    test(`${title}: ${key}`, () => assert.equal(of(state), key));
};

// ---- The state ----

const own = session();
const compacting = (mode: In<'Compacting'>['mode'], of: SessionData = own): State => ({
  name: 'Compacting',
  session: of,
  compactionId: 'compaction-1',
  length: 2,
  mode,
});
const hook = (mutated: readonly string[], of: SessionData = own): In<'PostToolsHook'> => ({
  name: 'PostToolsHook',
  session: of,
  phase: 'CheckingGitCommits',
  hookId: 'hook-1',
  mutated,
  tree: 'unknown',
});
const cancelling = (graceTimerId: string | null): State => ({
  ...batch([]),
  phase: { mode: 'cancelling', graceTimerId, cause: 'user' },
});
const starting = (graceTimerId: string | null): Call => ({
  judged: g.grep('1'),
  requestedAt: 1,
  status: 'starting',
  allowed: 'byPolicy',
  graceTimerId,
});
const ended = (
  text: string,
  mutating: boolean,
  status: 'ok' | 'failed' = 'ok',
  ran = true,
): Call => ({
  judged: mutating ? g.edit('1') : g.grep('1'),
  requestedAt: 1,
  status,
  ran,
  startedAt: 1,
  completedAt: 2,
  outcome: { failed: status === 'failed', text },
});
const short: SettingsPatch = { resultCutBytes: 8 };

check(part(0), [
  ['a wait', waiting(), 'Wrest'],
  [
    'a wait for a budget, which goes on',
    { ...waiting(), reason: { kind: 'budget', dimension: 'usd' }, next: 'sendQueue' },
    'WbsendQueue',
  ],
  ['a call', llm(), 'Cuser1-'],
  ['a call that has shown blanks', { ...llm(), partial: ' \n' }, 'Cuser1 '],
  ['a second attempt that has shown text', { ...llm(own, 2), partial: ' a ' }, 'Cuser2t'],
  ['a call that drains', { ...llm(), call: { mode: 'draining', cause: 'time' } }, 'Cuser1-time'],
  ['a wait to try again', failed(own, 2), 'Euser2'],
  [
    'a wait to try again after nothing',
    { ...failed(own, 1), error: { kind: 'empty', message: '' } },
    'Euser1e',
  ],
  ['hooks after nothing changed', hook([]), 'HCheckingGitCommitsunknown'],
  ['hooks after a change', hook(['1']), 'HCheckingGitCommitsunknownm'],
  ['a compaction at rest', compacting({ kind: 'idle', resume: 'sendAgain' }), 'KisendAgain'],
  ['a compaction between rounds', compacting({ kind: 'mid' }), 'Km'],
  [
    'a compaction after an overflow',
    compacting({ kind: 'overflow', purpose: 'toolResults', attempt: 3 }),
    'KotoolResults3',
  ],
  ['the end', { name: 'ShuttingDown', session: own }, 'ShuttingDown'],
  ['a batch without calls', batch([]), 'Xrunning'],
  ['a batch that is cancelled', cancelling(null), 'Xcancellinguser'],
  ['a batch that is cancelled and has a grace', cancelling('timer-1'), 'Xcancellinguserg'],
  ['calls that wait and run', batch([queued('1'), running('2')]), 'Xrunning,grepqbyPolicy,grepr'],
  [
    'a call that runs, and is to end',
    batch([{ ...running('1'), graceTimerId: 'timer-1' } as Call]), // a running call with a grace
    'Xrunning,greprg',
  ],
  ['a call that begins', batch([starting(null)]), 'Xrunning,grepsbyPolicy'],
  ['a call that begins, and is to end', batch([starting('timer-1')]), 'Xrunning,grepsbyPolicyg'],
  [
    'a call that asks',
    batch([{ judged: g.edit('1'), requestedAt: 1, status: 'awaitingApproval', why: 'x' } as Call]), // as policy makes it
    'Xrunning,edita',
  ],
  [
    'a call that can’t be made',
    batch([{ ...queued('1'), judged: g.unknownTool('1') } as Call]), // whatever its status says
    'Xrunning,teleportnoSuchToolqbyPolicy',
  ],
  ['a call that ended', batch([ended('found', false)]), 'Xrunning,ended'],
  ['a call that changed something', batch([ended('done', true)]), 'Xrunning,ended*'],
  [
    'a call that may have changed something and failed',
    batch([ended('no', true, 'failed')]),
    'Xrunning,ended*',
  ],
  ['a call that never ran', batch([ended('no', true, 'failed', false)]), 'Xrunning,ended'],
  [
    'a call that failed, where only calls that ended ok count',
    batch([ended('no', true, 'failed')], session({}, { hooks: 'mutatingOk' })),
    'Xrunning,ended',
  ],
  [
    'a result that is as long as may be',
    batch([ended('12345678', false)], session({}, short)),
    'Xrunning,ended',
  ],
  [
    'a result that is too long',
    batch([ended('123456789', false)], session({}, short)),
    'Xrunning,endedl',
  ],
  [
    'a result too long in bytes',
    batch([ended('ööööö', false)], session({}, short)),
    'Xrunning,endedl',
  ],
]);

// ---- The session ----

const within = (change: Partial<SessionData>, settings: SettingsPatch = {}): State =>
  waiting(session(change, settings));
const sized = (contextTokens: number): State =>
  within({ contextTokens }, { windowTokens: 100, compactAtRatio: 0.5, compactMidRatio: 0.75 });
const used = {
  ...own.usage,
  inputTokens: 1,
  outputTokens: 20,
  cacheReadTokens: 300,
  cacheWriteTokens: 4_000,
};
const noLimits = { usd: 0, tokens: 0, timeMs: 0, rounds: 0, truncation: 0 };

check(part(1), [
  ['nothing said yet', within({}), '0-y0'],
  [
    'a queue',
    within({
      queue: [
        { inputId: 'a', text: 'one', mode: 'steer' },
        { inputId: 'b', text: 'two', mode: 'followUp' },
      ],
    }),
    '0-sfy0',
  ],
  ['no compaction for now', within({ mayCompact: 'no' }), '0-n0'],
  ['a note', within({ notes: ['cancelled'] }), '0-y0!'],
  ['just below the first threshold', sized(50), '0-y0'],
  ['above the first threshold', sized(51), '0-y1'],
  ['at the second threshold', sized(75), '0-y1'],
  ['above the second threshold', sized(76), '0-y2'],
  ['below the window', sized(99), '0-y2'],
  ['a window that is full', sized(100), '0-y3'],
  ['tokens, without a limit', within({ usage: used }, { limits: noLimits }), '0-y0'],
  [
    'tokens of all kinds, with a limit',
    within({ usage: used, slices: { usd: 1, tokens: 2 } }, { limits: { ...noLimits, tokens: 9 } }),
    '0-y0#4321/2',
  ],
  [
    'dollars, with a limit',
    within(
      { usage: { ...used, costUsd: 3 }, slices: { usd: 1, tokens: 2 } },
      { limits: { ...noLimits, usd: 9 } },
    ),
    '0-y0$3/1',
  ],
  [
    'what was allowed for the session, and for a shape',
    within({
      grants: [
        { tool: 'edit', scope: 'session' },
        { tool: 'edit', scope: 'shape', shape: 'edit b.ts' },
      ],
    }),
    '0-y0+editsession+editshapeedit b.ts',
  ],
]);

// ---- The turn ----

const turning = (
  turn: Partial<SessionData['turn']>,
  limits: SettingsPatch['limits'] = {},
  more: Partial<SessionData> = {},
): SessionData => {
  const base = session(more, {
    emptyRetries: 2,
    limits: { ...noLimits, repeats: 0, errors: 0, sameResults: 0, ...limits },
  });
  return { ...base, turn: { ...base.turn, ...turn } };
};
const counted = { calls: 'c', results: 'r', repeats: 5, errors: 6, sameResults: 7 };

check(part(3), [
  ['a turn that has just begun', llm(turning({})), '0.0.0'],
  ['rounds without a limit', llm(turning({ rounds: 4 })), '0.0.0'],
  ['rounds below their limit', llm(turning({ rounds: 4 }, { rounds: 9 })), '4.0.0'],
  ['rounds beyond their limit', llm(turning({ rounds: 4 }, { rounds: 3 })), '3.0.0'],
  ['cut replies', llm(turning({ truncations: 2 }, { truncation: 9 })), '0.2.0'],
  ['empty replies', llm(turning({}, {}, { emptyReplies: 1 })), '0.0.1'],
  [
    'a time limit',
    llm(turning({ timeLimit: { timerId: 't', dueAt: 1, delayMs: 9 } })),
    '0.0.0@1/9',
  ],
  [
    'a time limit, after the clock went back',
    llm(turning({ timeLimit: { timerId: 't', dueAt: 99, delayMs: 9 } })),
    '0.0.0@9/9',
  ],
  ['time that passed, without a timer', llm(turning({ startedAt: -7 }, { timeMs: 9 })), '0.0.0'],
  ['a warning about a limit that is gone', llm(turning({ warned: ['usd'] })), '0.0.0'],
  ['a warning', llm(turning({ warned: ['time'] }, { timeMs: 9 })), '0.0.0time'],
  ['a warning about money', llm(turning({ warned: ['usd', 'time'] }, { usd: 9 })), '0.0.0usd'],
  ['the last call of a turn', llm(turning({ finishing: 'rounds' })), '0.0.0frounds'],
  ['streaks that no limit asks for', llm(turning({ streaks: counted })), '0.0.0'],
  ['a limit of repeats', llm(turning({ streaks: counted }, { repeats: 2 })), '0.0.0~c,r,2,0,0'],
  ['a limit of errors', llm(turning({ streaks: counted }, { errors: 9 })), '0.0.0~c,r,0,6,0'],
  [
    'a limit of same results',
    llm(turning({ streaks: counted }, { sameResults: 9 })),
    '0.0.0~c,r,0,0,7',
  ],
  [
    'a compaction in a turn',
    compacting({ kind: 'mid' }, turning({ rounds: 1 }, { rounds: 9 })),
    '1.0.0',
  ],
  [
    'a compaction between turns',
    compacting(
      { kind: 'idle', resume: 'rest' },
      turning({ rounds: 1, warned: ['usd'] }, { rounds: 9, usd: 9 }),
    ),
    'usd',
  ],
  [
    'between turns',
    waiting(turning({ rounds: 4, warned: ['tokens'] }, { rounds: 9, tokens: 9 })),
    'tokens',
  ],
  [
    'between turns, a warning about the turn',
    waiting(turning({ warned: ['time'] }, { timeMs: 9 })),
    '',
  ],
  [
    'between turns, a warning about a limit that is gone',
    waiting(turning({ warned: ['usd'] })),
    '',
  ],
  ['closed', { name: 'ShuttingDown', session: turning({ rounds: 4 }, { rounds: 9 }) }, ''],
]);

// ---- Bills ----

const billed = (state: State, costlyLeft = 2): string | undefined =>
  keyOf(state, 0, costlyLeft).split('|')[4];
const owing = (...unaccounted: readonly string[]): SessionData => session({ unaccounted });

check(
  (state) => billed(state),
  [
    ['no bill to come', llm(owing()), '20'],
    ['the bill of the call that runs', llm(owing('req-1')), '2b0'],
    ['the bill of a call that is over', llm(owing('req-0')), '21'],
    ['more bills than may cost something', llm(owing('req-7', 'req-8', 'req-9', 'req-1')), '2b2'],
    ['the bill of a tool is none of them', llm(owing('batch-1/1')), '20'],
    ['the bill of a hook that runs', hook([], owing('hook-1')), '2b0'],
    [
      'the bill of a compaction that runs',
      compacting({ kind: 'mid' }, owing('compaction-1')),
      '2b0',
    ],
    ['a bill while nothing runs', waiting(owing('req-1')), '21'],
  ],
);

test('nothing may cost much any more: bills do not count', () => {
  assert.equal(billed(llm(owing('req-1')), 0), undefined);
});

test('settings that may change under way are part of the key', () => {
  const configuration: Configuration = { ...everything, changes: [{ maxRetries: 0 }] };
  assert.match(keyOf(within({}, { maxRetries: 5 }), 0, 0, configuration), /unlimited5\|/);
});

test('the limits are part of the key', () => {
  const limits = {
    usd: 1,
    tokens: 2,
    timeMs: 3,
    rounds: 4,
    truncation: 5,
    repeats: 6,
    errors: 7,
    sameResults: 8,
  };
  assert.equal(part(2)(within({}, { limits })), '1,2,3,4,5,6,7,8');
});
