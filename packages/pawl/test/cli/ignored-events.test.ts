import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import type { Stepped } from '@pawl/agent/ports/session';
import { isRecord } from '@pawl/machine/kernel/shape';
import { createStepPrinter } from '@pawl/terminal/step-lines';
import { Transcript } from '@pawl/terminal/transcript';
import * as g from '../../../../test/kit/agent/given.js';
import { labels } from '../../../../test/kit/agent/pairs.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { SessionUpdates } from '../../src/editor/session-updates.js';

/** What answers something that is over is shown by no face: not by terminals, in lines, or by editors. */

const look = { colour: 'no', columns: 80 } as const;

const openFaces = () => {
  const transcript = new Transcript(look, '/w');
  const printStep = createStepPrinter(look, '/w');
  const pushed: unknown[] = [];
  const push = (item: unknown): void => void pushed.push(item);
  const features = { notices: true, compaction: true, forms: true };
  const blobs = { get: async () => undefined, put: async () => '' };
  const about = { workspace: '/w', features, blobs, title: 'known', push } as const;
  const [live, replayed] = [new SessionUpdates(about), new SessionUpdates(about)];
  /** All that the faces show after a step. */
  const show = (stepped: Stepped): readonly unknown[] => {
    pushed.length = 0;
    const texts = [transcript.see(stepped), ...printStep(stepped)];
    live.see(stepped);
    replayed.replay(stepped);
    return [...texts.filter((text) => text !== ''), ...pushed];
  };
  return { show, rows: () => transcript.rows(80, g.NOW), stop: () => live.stop() };
};

const isUsageUpdate = (item: unknown): boolean =>
  isRecord(item) && item.sessionUpdate === 'usage_update';

const late = ['ReasoningDelta', 'ToolStarted', 'ToolProgress', 'CompactionCompleted'];

/** Ways to states in which something runs, or has just ended; and some of what is ignored there. */
const ways: readonly (readonly [string, readonly g.Given[], readonly string[]])[] = [
  ['a second reply streams', [g.input('a'), g.cancel, g.input('b'), g.thought], late.slice(1)],
  ['a reply was cancelled', [g.input('a'), g.thought, g.cancel], late],
  ['a call runs', [g.input('a'), g.wants(g.grep('1'), g.grep('2')), g.started('1')], late.slice(3)],
  ['a summary was cancelled', [g.input('a'), g.says('yo'), g.compact, g.cancel], late],
  ['the session is over', [g.input('a'), g.says('yo'), g.shutdown], late],
];

for (const [name, way, some] of ways)
  test(`an event that the machine ignores is not shown: ${name}`, () => {
    let state: State = initialState(settingsOf({ hooks: 'never' }));
    const faces = openFaces();
    const happens = (event: Event): readonly unknown[] => {
      const next = step(state, event);
      state = next.state;
      return faces.show({ seq: 1, event, ...next });
    };
    happens(g.begin);
    for (const given of way) happens(g.eventOf(given, state));
    const rows = faces.rows();
    const ignored = new Set<string>();
    for (const { given, name: label } of labels) {
      const event = g.eventOf(given, state);
      const next = step(state, event);
      const isNothing = next.actions.length === 0 && next.state.name === state.name;
      if (!isNothing || next.diagnostics.length === 0 || event.type === 'UserInput') continue;
      ignored.add(event.type);
      const usage: State['session']['usage'] = state.session.usage;
      const shown = happens(event);
      // late usage counts, and editors show what a session has cost
      const isSpent: boolean = state.session.usage !== usage;
      assert.deepEqual(
        shown.filter((item) => !isSpent || !isUsageUpdate(item)),
        [],
        label,
      );
      assert.deepEqual(faces.rows(), rows, label);
    }
    faces.stop();
    assert.deepEqual(
      some.filter((type) => !ignored.has(type)),
      [],
      'control: these are ignored',
    );
  });
