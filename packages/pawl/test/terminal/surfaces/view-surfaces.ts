import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Stepped } from '@pawl/agent/ports/session';
import { Composer } from '@pawl/terminal/composer';
import { createLiveArea } from '@pawl/terminal/live-area';
import { safe } from '@pawl/terminal/safe-text';
import { completed } from '../../../../../test/kit/terminal/stage.js';
import { keyOf } from '../../../../../test/kit/terminal/typing.js';
import { InteractiveView, type ViewHandlers } from '../../../src/interactive/view.js';
import { fakeClock } from '../../../src/testing.js';
import type { Hostile } from './hostile.js';
import type { Out, Surface } from './surface.js';

/** The view of a session with the real machine behind it, its live area drawn into the emulated window. */

const nothing = (): void => undefined;
const wishes: ViewHandlers = {
  say: nothing,
  cancel: nothing,
  answer: nothing,
  allowInFolder: nothing,
  runCommand: nothing,
  pastePicture: nothing,
  nextPreset: () => undefined,
  openList: nothing,
  suspend: nothing,
  end: nothing,
  stopUserCommand: () => false,
  keepUnsent: () => undefined,
  withoutShellOutput: (texts) => texts,
};

type Timeless<E> = E extends unknown ? Omit<E, 'at'> : never;

const sit = (hostile: Hostile, out: Out, preset: 'auto' | 'careful' = 'auto') => {
  const clock = fakeClock(1_000_000);
  const size = () => ({ columns: out.look.columns, rows: 30 });
  const area = createLiveArea({ write: out.write, size, clock, reflow: 'all' });
  const files = async () =>
    Array.from({ length: 5 }, () => ({ text: hostile.name(), about: hostile.name() }));
  const commands = [{ text: 'help', about: hostile.name() }];
  const composer = new Composer({ commands, files }, nothing);
  const settings = { ...defaultSettings, rules: presetRules[preset], hooks: 'never' as const };
  let state: State = initialState({ ...settings, model: hostile.name(), workspace: '/w' });
  const view = new InteractiveView(
    { area, look: out.look, clock, composer, rows: () => 30 },
    wishes,
    state,
  );
  const happens = (event: Timeless<Event>): void => {
    const timed = { ...event, at: clock.now() } as Event; // an event is what it was and its time
    const next = step(state, timed) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    state = next.state;
    view.see({ ...next, seq: 1, event: timed });
    clock.advance(40);
  };
  return {
    clock,
    view,
    happens,
    begin: (text: string) => happens({ type: 'UserInput', text, mode: 'steer' }),
  };
};

const PIECE = 400;

const streamed =
  (type: 'TextDelta' | 'ReasoningDelta'): Surface['show'] =>
  (hostile, out, size) => {
    const { begin, happens } = sit(hostile, out);
    begin(hostile.text(100));
    // Pieces break sequences and pairs anywhere.
    const text = hostile.text(size);
    for (let at = 0; at < text.length; at += PIECE)
      happens({ type, requestId: 'req-1', text: text.slice(at, at + PIECE) });
    happens(completed('req-1', text.slice(0, 50)));
  };

const callFrom = (hostile: Hostile, mutating: boolean): JudgedCall => ({
  callId: 'a',
  tool: hostile.name(),
  input: { command: hostile.text(100), path: hostile.name() },
  verdict: { kind: 'ok' },
  traits: {
    effect: mutating ? 'opaque' : 'pure',
    parallelSafe: false,
    mutating,
    deadlineMs: 1_000,
  },
  facts: {
    argv: [hostile.text(200)],
    paths: [`/w/${hostile.name()}`],
    hosts: [],
    shape: hostile.text(60),
  },
});

const called: Surface['show'] = (hostile, out, size) => {
  const { begin, happens, view } = sit(hostile, out);
  begin('go');
  happens({
    type: 'ToolCallDelta',
    requestId: 'req-1',
    tool: hostile.name(),
    text: hostile.text(50),
  });
  happens(completed('req-1', '', [callFrom(hostile, false)]));
  happens({ type: 'ToolStarted', batchId: 'batch-1', callId: 'a' });
  const text = hostile.text(size / 2);
  for (let at = 0; at < text.length; at += PIECE)
    happens({
      type: 'ToolProgress',
      batchId: 'batch-1',
      callId: 'a',
      text: text.slice(at, at + PIECE),
    });
  const [diff] = [`--- a\n+++ b\n@@ -1 +1 @@\n+${hostile.text(size / 4)}`];
  const outcome = { status: 'failed' as const, text: hostile.text(size / 4), diff };
  happens({ type: 'ToolCompleted', batchId: 'batch-1', callId: 'a', outcome });
  view.take({ kind: 'key', key: keyOf('C-o') });
};

const asked: Surface['show'] = (hostile, out, size) => {
  const { begin, happens, view, clock } = sit(hostile, out, 'careful');
  begin('go');
  const call = {
    ...callFrom(hostile, true),
    facts: { ...callFrom(hostile, true).facts, argv: [hostile.text(size)] },
  };
  happens(completed('req-1', '', [call]));
  clock.advance(2_000);
  for (const key of ['pagedown', 'down', "'d'", 'enter', "'x'", 'enter'])
    view.take({ kind: 'key', key: keyOf(key) });
  clock.advance(2_000);
};

const failed: Surface['show'] = (hostile, out, size) => {
  const { begin, happens, view } = sit(hostile, out);
  begin(hostile.text(100));
  begin(hostile.text(100)); // waits, and stands in the status
  const message = hostile.text(size);
  const error = { kind: 'badRequest' as const, message, retryable: false, retryAfterMs: null };
  happens({ type: 'LlmFailed', requestId: 'req-1', error, usage: null, jitter: 0 });
  view.take({ kind: 'paste', text: `/${hostile.text(60)}` });
  view.take({ kind: 'key', key: keyOf('enter') });
};

const typed: Surface['show'] = (hostile, out, size) => {
  const { view, clock } = sit(hostile, out);
  const text = hostile.text(size);
  for (let at = 0; at < text.length; at += PIECE) {
    view.take({ kind: 'paste', text: text.slice(at, at + PIECE) });
    clock.advance(40);
    view.take({ kind: 'key', key: keyOf(at % 3 === 0 ? 'enter' : 'C-u') });
    clock.advance(40);
  }
  for (const key of ['C-r', "'w'", "'\u202e'"]) view.take({ kind: 'key', key: keyOf(key) });
  clock.advance(40);
};

const offered: Surface['show'] = async (hostile, out, size) => {
  const { view, clock } = sit(hostile, out);
  const until = hostile.given() + size;
  while (hostile.given() < until) {
    view.take({ kind: 'key', key: keyOf('C-u') });
    for (const letter of ['@', 'n']) view.take({ kind: 'key', key: keyOf(`'${letter}'`) });
    await new Promise(setImmediate);
    view.redraw();
    clock.advance(40);
    view.take({ kind: 'key', key: keyOf('tab') });
    clock.advance(40);
    const choices = Array.from({ length: 5 }, () => ({
      text: hostile.name(),
      about: hostile.name(),
    }));
    void view.pick(hostile.name(), choices);
    clock.advance(40);
    view.take({ kind: 'key', key: keyOf('enter') });
    clock.advance(40);
  }
  view.print(safe`end`);
};

const COVERS = ['packages/pawl/src/interactive/view.ts'];

export const viewSurfaces: readonly Surface[] = [
  { name: 'window: an answer as it streams', covers: COVERS, show: streamed('TextDelta') },
  { name: 'window: what the model thinks', covers: COVERS, show: streamed('ReasoningDelta') },
  { name: 'window: calls, their progress, results and changes', covers: COVERS, show: called },
  { name: 'window: a question', covers: COVERS, show: asked },
  { name: 'window: errors, what waits, refusals', covers: COVERS, show: failed },
  { name: 'window: what is typed and pasted', covers: COVERS, show: typed },
  { name: 'window: files and lists to choose from', covers: COVERS, show: offered },
];
