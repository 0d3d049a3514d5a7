import assert from 'node:assert/strict';
import { conversationLength } from '../../../packages/agent/src/machine/conversation.js';
import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState } from '../../../packages/agent/src/machine/machine.js';
import {
  defaultSettings,
  type Limits,
  type Settings,
} from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import { presetRules } from '../../../packages/agent/src/policy/presets.js';
import { eventFrom } from './trace-events.js';
import { actionLine, edgeLine, stateLine, talkLines } from './trace-shown.js';
import { type Step, take } from './walker.js';

/**
 * A trace is a story of the machine. Written by hand:
 *
 *     # a sentence that says what happens            ! {"maxRetries":1}, or ! careful {…}: settings, or a preset
 *     > @1200 UserInput "fix the bug"                an event, see trace-events.ts
 *
 * Written by the machine under each event, and at the end:
 *
 *     - an edge that was taken     < an action     ? a diagnostic     = the state, and what changed in the session
 *     . a message of the conversation
 *
 * Settings are the product's own. The clock starts at 0.
 */
export type Played = {
  readonly text: string;
  /** Ids of the edges that were taken. */
  readonly taken: ReadonlySet<string>;
  readonly steps: readonly { readonly before: State; readonly event: Event; readonly step: Step }[];
};

type Patch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

export const settingsFrom = (line: string): Settings => {
  const [, preset = 'auto', patch = '{}'] = /^(\w+)? ?(\{.*\})?$/.exec(line) ?? [];
  // Written by hand in the trace; a wrong name would show as a story that does not go as its sentence says.
  const { limits, ...others } = JSON.parse(patch) as Patch;
  const known = (['plan', 'careful', 'auto', 'ci'] as const).find((name) => name === preset);
  if (known === undefined) throw new Error(`${preset} is no preset`);
  return {
    ...defaultSettings,
    model: 'test/model',
    workspace: '/project',
    rules: presetRules[known],
    ...others,
    limits: { ...defaultSettings.limits, ...limits },
  };
};

/** What a state is as JSON; its list of messages is the one thing that is not plain. */
const unpacked = (state: State): unknown => {
  const { conversation } = state.session;
  return {
    ...state,
    session: {
      ...state.session,
      conversation: { ...conversation, closed: conversation.closed.toArray() },
    },
  };
};

const assertPlain = (value: unknown): void =>
  assert.deepEqual(JSON.parse(JSON.stringify(value)), value);

const linesOf = (before: State, { state, actions, path, diagnostics }: Step): readonly string[] => [
  ...path.map((edge) => `- ${edgeLine(edge)}`),
  ...actions.map((action) => `< ${actionLine(action)}`),
  ...diagnostics.map(({ kind, why }) => `? ${kind}: ${why}`),
  `= ${stateLine(before, state)}`,
];

/** Plays what is written by hand, and writes the rest anew. */
export const play = (trace: string): Played => {
  const wrong = trace.split('\n').find((line) => line !== '' && !/^[#!>\-<?=.] /.test(line));
  if (wrong !== undefined) throw new Error(`"${wrong}" begins with none of the marks of a trace`);
  const written = trace.split('\n').filter((line) => /^[#!>] /.test(line));
  const settings = written.find((line) => line.startsWith('! '))?.slice(2) ?? '';
  const lines: string[] = [];
  const taken = new Set<string>();
  const steps: Played['steps'][number][] = [];
  let state: State = initialState(settingsFrom(settings));
  let clock = 0;
  let gap = false;
  for (const line of written) {
    const isEvent = line.startsWith('> ');
    if (gap) lines.push('');
    lines.push(line);
    gap = isEvent;
    if (!isEvent) continue;
    const event = eventFrom(line.slice(2), clock);
    clock = event.at;
    const stepped = take(state, event);
    assertPlain([
      event,
      unpacked(stepped.state),
      stepped.actions,
      stepped.path,
      stepped.diagnostics,
    ]);
    for (const edge of stepped.path) taken.add(edge.id);
    steps.push({ before: state, event, step: stepped });
    lines.push(...linesOf(state, stepped));
    state = stepped.state;
  }
  if (conversationLength(state.session.conversation) > 0) lines.push('');
  lines.push(...talkLines(state).map((message) => `. ${message}`));
  return { text: `${lines.join('\n')}\n`, taken, steps };
};
