import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import type { State } from '@pawl/agent/machine/state';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Input } from '@pawl/agent/ports/session';
import { Composer } from '@pawl/terminal/composer';
import type { LiveArea } from '@pawl/terminal/live-area';
import fc from 'fast-check';
import * as g from '../../../../test/kit/agent/given.js';
import { labels } from '../../../../test/kit/agent/pairs.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { keyOf } from '../../../../test/kit/terminal/typing.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { ShellOutputs } from '../../src/interactive/run-sessions.js';
import { InteractiveView, type ViewHandlers } from '../../src/interactive/view.js';
import { fakeClock } from '../../src/testing.js';

/**
 * Typed text is never lost: the real view, input line and machine under random typing, sending, cancelling, failing and
 * compacting, with events that arrive late. In the end every word that was typed stands in exactly one place: in the
 * conversation (or what a summary replaced), in the queue, or in the line.
 */

/** What comes of itself in each state; what users do is pressed. */
const WORLD: Partial<Record<State['name'], RegExp>> = {
  CallingLlm: /^(LlmCompleted|LlmFailed|TextDelta)/,
  Error: /^TimerFired/,
  ExecutingTools: /^(Tool(?!sFailed)|TimerFired)/,
  Compacting: /^Compaction/,
};

const textsIn = (state: State): readonly string[] =>
  messagesOf(state.session.conversation)
    .filter(({ role }) => role === 'user')
    .flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text : '')));

const openStage = () => {
  const clock = fakeClock(g.NOW);
  const shellOutputs = new ShellOutputs();
  const sent: Input[] = [];
  const words: string[] = [];
  let summarised: readonly string[] = [];
  let drawn: readonly string[] = [];
  let state: State = initialState(
    settingsOf({
      queueOnCancel: 'restore',
      rules: presetRules.careful,
      hooks: 'never',
      windowTokens: 3_000,
      maxRetries: 1,
      emptyRetries: 1,
    }),
  );
  const area: LiveArea = {
    print: () => undefined,
    draw: (frame) => {
      drawn = (typeof frame === 'function' ? frame() : frame).rows;
    },
    clear: () => undefined,
  };
  const handlers: ViewHandlers = {
    say: (text, mode) =>
      void sent.push({ type: 'UserInput', text: shellOutputs.attach(text), mode }),
    cancel: () => void sent.push({ type: 'CancelTurn' }),
    allowInFolder: () => undefined,
    answer: ({ batchId, call }, given) =>
      void sent.push({ type: 'ApprovalAnswered', batchId, callId: call.callId, ...given }),
    runCommand: (wish) =>
      void sent.push(
        wish.kind === 'command' && wish.name === 'compact'
          ? { type: 'CompactRequested' }
          : { type: state.name === 'Error' ? 'RetryNow' : 'RetryLast' },
      ),
    stopUserCommand: () => false,
    keepUnsent: () => undefined,
    withoutShellOutput: (texts) => texts.map((text) => shellOutputs.detach(text)),
    pastePicture: () => undefined,
    nextPreset: () => undefined,
    openList: () => undefined,
    suspend: () => undefined,
    end: () => undefined,
  };
  const composer = new Composer({ commands: [], files: async () => [] }, () => undefined);
  const parts = {
    area,
    look: { colour: 'no', columns: 80 },
    clock,
    composer,
    rows: () => 24,
  } as const;
  const view = new InteractiveView(parts, handlers, state);

  const happens = (event: Event): void => {
    const next = step(state, event);
    const before = textsIn(state);
    const after = textsIn(next.state);
    if (event.type === 'CompactionCompleted')
      summarised = [...summarised, ...before.filter((text) => !after.includes(text))];
    state = next.state;
    view.see({ seq: 1, event, ...next } as Parameters<InteractiveView['see']>[0]); // the machine's own step
  };
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) view.take({ kind: 'key', key: keyOf(key) });
  };
  const asks = (): boolean => drawn.some((row) => row.startsWith('? '));
  const word = (kind: string): string => {
    words.push(`${kind}-${words.length}.`);
    return words.at(-1) ?? '';
  };

  const deeds: Readonly<Record<string, (roll: number) => void>> = {
    // What is typed at a question is an answer, and not text for the model.
    type() {
      if (!asks()) press(`'${word('text')}'`, "' '");
    },
    paste() {
      if (!asks()) view.take({ kind: 'paste', text: `${'x\n'.repeat(12)}${word('paste')} ` });
    },
    newLine: () => press('C-j'),
    enter: () => press('enter'),
    later: () => press('A-enter'),
    yes() {
      if (asks() && composer.isEmpty) press("'y'");
    },
    escape() {
      clock.advance(1_000);
      press('escape');
    },
    interrupt() {
      clock.advance(3_000);
      if (view.state.name !== 'WaitingForUserInput' && view.state.name !== 'Ready')
        view.interrupt();
    },
    compact() {
      if (composer.isEmpty && !asks()) press("'/compact'", 'enter');
    },
    retry() {
      if (composer.isEmpty && !asks()) press("'/retry'", 'enter');
    },
    own: () => shellOutputs.add({ command: 'ls', output: word('out') }),
    wait: (roll) => clock.advance(roll % 500),
    deliver() {
      const input = sent.shift();
      if (input !== undefined) happens({ ...input, at: clock.now() });
    },
    world(roll) {
      const fitting = labels.filter(({ name }) => WORLD[state.name]?.test(name));
      const label = fitting[roll % Math.max(1, fitting.length)];
      if (label !== undefined) happens({ ...g.eventOf(label.given, state), at: clock.now() });
    },
  };
  /** Every place where a word may be. */
  const places = (): readonly string[] => {
    while (sent.length > 0) deeds.deliver?.(0);
    const { queue } = state.session;
    return [
      ...textsIn(state),
      ...summarised,
      ...queue.map(({ text }) => text),
      composer.text,
      shellOutputs.attach(''),
    ];
  };
  return { deeds, words, places, state: () => state };
};

const DEEDS: readonly (readonly [name: string, weight: number])[] = [
  ['type', 6],
  ['paste', 1],
  ['newLine', 1],
  ['enter', 6],
  ['later', 2],
  ['yes', 2],
  ['escape', 2],
  ['interrupt', 1],
  ['compact', 1],
  ['retry', 1],
  ['own', 1],
  ['wait', 3],
  ['deliver', 10],
  ['world', 14],
];

const deed = fc.record({
  name: fc.oneof(...DEEDS.map(([name, weight]) => ({ weight, arbitrary: fc.constant(name) }))),
  roll: fc.noBias(fc.nat({ max: 9_999 })),
});

test('every word that was typed stands in exactly one place in the end', (context) => {
  context.diagnostic(`PAWL_SEED=${SEED}`);
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.array(deed, { minLength: 10, maxLength: 120, size: 'max' }), (deeds) => {
      const at = openStage();
      at.deeds.world?.(0);
      for (const { name, roll } of deeds) {
        at.deeds[name]?.(roll);
        seen.add(at.state().name);
      }
      const places = at.places();
      for (const word of at.words) {
        const count = places.reduce((sum, text) => sum + text.split(word).length - 1, 0);
        assert.equal(count, 1, `${word} stands in ${count} places: ${JSON.stringify(places)}`);
      }
    }),
    { seed: SEED, numRuns: countCases(400), includeErrorInReport: true },
  );
  for (const name of ['CallingLlm', 'Error', 'ExecutingTools', 'Compacting', 'WaitingForUserInput'])
    assert.ok(seen.has(name), `no walk came to ${name}`);
});
