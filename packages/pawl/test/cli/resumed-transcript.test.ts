import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import {
  collectRecentTurns,
  openFromFlags,
  returnedTexts,
} from '../../src/sessions/open-session.js';
import { storedJournals } from '../../src/sessions/stored-sessions.js';

/** How much of a session is kept to be shown again. */

const { session } = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });

const stateIn = (turn: number): State => ({
  name: 'Ready',
  session: { ...session, counters: { ...session.counters, turn } },
});

const stepOf = (
  turn: number,
  seq: number,
  turnBefore = turn,
  type: Event['type'] = seq === 1 ? 'Start' : 'RetryNow',
): JournalStep =>
  ({
    before: stateIn(turnBefore),
    state: stateIn(turn),
    seq,
    event: { type, at: seq },
    actions: [],
    path: [],
    diagnostics: [],
  }) as never; // counters, seq and type are all that is looked at

const keep = (turns: number, stepsEach: number) => {
  const kept = collectRecentTurns();
  let seq = 0;
  kept.see(stepOf(0, ++seq));
  for (let turn = 1; turn <= turns; turn++)
    for (let step = 0; step < stepsEach; step++)
      kept.see(stepOf(turn, ++seq, step === 0 ? turn - 1 : turn));
  const past = kept.past();
  assert.ok(past !== null);
  return { past, last: seq };
};

test('a short session is kept whole', () => {
  const { past, last } = keep(3, 10);
  assert.deepEqual(
    [past.steps.length, past.steps.at(-1)?.seq, past.earlierTurns],
    [30, last, 'none'],
  );
});

test('only the last four of many turns are shown', () => {
  const { past, last } = keep(9, 10);
  assert.deepEqual(
    [past.steps.length, past.steps.at(-1)?.seq, past.earlierTurns],
    [40, last, 'some'],
  );
  assert.equal(past.before.session.counters.turn, 5);
});

test('a very long turn shows its end, without a gap', () => {
  const { past, last } = keep(1, 9_500);
  assert.ok(past.steps.length >= 1_000 && past.steps.length <= 2_000, String(past.steps.length));
  assert.deepEqual([past.steps.at(-1)?.seq, past.earlierTurns], [last, 'some']);
  assert.ok(past.steps.every(({ seq }, index) => seq === last - past.steps.length + 1 + index));
});

test('a turn that is longer than what is kept has its beginning all the same; one whose beginning was not read has none', () => {
  const { past } = keep(1, 9_500);
  assert.equal(past.turnStart?.session.counters.turn, 0);
  const kept = collectRecentTurns();
  const inTurn = stepOf(1, 900);
  kept.see({ ...inTurn, before: { ...inTurn.before, name: 'EndOfTurn' } as State });
  assert.equal(kept.past()?.turnStart, null);
});

test('a session that begins with its prompt shows it', () => {
  const kept = collectRecentTurns();
  kept.see(stepOf(1, 1, 0, 'UserInput'));
  kept.see(stepOf(1, 2));
  assert.deepEqual(
    [kept.past()?.steps.map(({ seq }) => seq), kept.past()?.earlierTurns],
    [[1, 2], 'none'],
  );
});

test('a fold that begins in the middle has left earlier turns out, and one that begins again counts alone', () => {
  const kept = collectRecentTurns();
  kept.see(stepOf(7, 301));
  kept.see(stepOf(8, 302, 7));
  assert.deepEqual(
    [kept.past()?.steps.map(({ seq }) => seq), kept.past()?.earlierTurns],
    [[301, 302], 'some'],
  );
  for (let seq = 1; seq <= 4; seq++) kept.see(stepOf(seq - 1, seq, Math.max(0, seq - 2)));
  assert.deepEqual(
    [kept.past()?.steps.map(({ seq }) => seq), kept.past()?.earlierTurns],
    [[2, 3, 4], 'none'],
  );
});

/** The texts that a resumed session gives back to the input line, after these events. */
const returnedAfter = (...events: readonly Event[]): readonly string[] => {
  let state: State = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
  return returnedTexts(
    events.map((event) => {
      const stepped = step(state, event);
      ({ state } = stepped);
      return { event, actions: stepped.actions };
    }),
  );
};

test('a text that went back to the input line is offered again after a crash, until something is sent', () => {
  const said = { type: 'UserInput', at: 2, text: 'all of Moby-Dick', mode: 'steer' } as const;
  const reason = { kind: 'contextOverflow', message: 'prompt is too long' } as const;
  const error = { ...reason, retryable: false, retryAfterMs: null } as const;
  const refused = {
    type: 'LlmFailed',
    at: 3,
    requestId: 'req-1',
    usage: null,
    jitter: 0,
    error,
  } as const;
  const resumed = { type: 'Resumed', at: 4, stoppedAt: 3, epoch: 1 } as const;
  const before = [{ type: 'Start', at: 1 } as const, said, refused];
  assert.deepEqual(returnedAfter(...before), ['all of Moby-Dick']);
  assert.deepEqual(
    returnedAfter(...before, resumed),
    ['all of Moby-Dick'],
    'after another crash, too',
  );
  assert.deepEqual(returnedAfter(...before, { ...said, at: 4, text: 'call me Ishmael' }), []);
  assert.deepEqual(
    returnedAfter(...before, { type: 'ShutdownRequested', at: 4 }),
    [],
    'the user left it',
  );
});

/** Resuming a session steps the machine once over its journal: for its settings, its state and the turns shown again. */

const inFolder = (context: TestContext): { readonly workspace: string; readonly model: string } => {
  const folder = temporaryFolder(context, 'resume-once');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const before = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = folder;
  context.after(() => {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  });
  const script = path.join(folder, 'script.json');
  writeFileSync(
    script,
    JSON.stringify({ replies: [{ text: 'first' }, { text: 'second' }, { text: 'third' }] }),
  );
  return { workspace, model: `scripted/${script}` };
};

const warn = (): void => undefined;

test('a resumed session folds its journal once, and has the turns that are shown again', async (context) => {
  const flags = inFolder(context);
  const { session } = await openFromFlags(flags, 'terminal', { warn, configured: false });
  await session.prompt('one');
  await session.prompt('two');
  await session.close();
  const { seq } = await storedJournals().peek(session.id);
  const step = context.mock.method(agentMachine, 'step');
  const again = await openFromFlags({ workspace: flags.workspace }, 'terminal', {
    warn,
    configured: false,
    resume: session.id,
  });
  assert.equal(step.mock.callCount(), seq);
  assert.equal(again.settings.model, flags.model);
  const typed = (again.resumed?.recent?.steps ?? []).map(({ event }) => event.type);
  assert.ok(typed.includes('UserInput') && !typed.includes('Resumed'), typed.join());
  await again.session.prompt('three');
  await again.session.close();
});

test('a session whose resume is refused is free for the next one', async (context) => {
  const flags = inFolder(context);
  const { session } = await openFromFlags(flags, 'terminal', { warn, configured: false });
  await session.close();
  const resumed = { warn, configured: false, resume: session.id } as const;
  const refused = openFromFlags(
    { ...flags, model: 'scripted/no-such-file.json' },
    'terminal',
    resumed,
  );
  await assert.rejects(refused, /no-such-file/);
  const again = await openFromFlags(flags, 'terminal', resumed);
  await again.session.close();
});
