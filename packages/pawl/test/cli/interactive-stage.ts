import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { presetRules } from '@pawl/agent/policy/presets';
import { Composer } from '@pawl/terminal/composer';
import type { LiveArea } from '@pawl/terminal/live-area';
import { keyOf } from '../../../../test/kit/terminal/typing.js';
import {
  InteractiveView,
  type ScopedAnswer,
  type ViewHandlers,
} from '../../src/interactive/view.js';
import { fakeClock } from '../../src/testing.js';

/** The interactive view with a clock that stands still; the machine behind it is the real one. */

const settings = {
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  hooks: 'never' as const,
  queueOnCancel: 'restore' as const,
  rules: presetRules.careful,
};

const call: JudgedCall = {
  callId: 'a',
  tool: 'touch',
  input: {},
  verdict: { kind: 'ok' },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 1_000 },
  facts: { argv: [], paths: ['/w/x'], hosts: [], shape: '/w/x' },
};

export const stageView = (plain: 'yes' | 'no' = 'no') => {
  const clock = fakeClock();
  const asked: string[] = [];
  const answers: ScopedAnswer[] = [];
  const printed: string[] = [];
  let drawn: readonly string[] = [];
  let state: State = initialState(settings);
  const area: LiveArea = {
    print: (text) => void printed.push(text),
    draw: (frame) => {
      drawn = (typeof frame === 'function' ? frame() : frame).rows;
    },
    clear: () => undefined,
  };
  const wishes: ViewHandlers = {
    say: (text, mode) => void asked.push(`${mode} ${text}`),
    cancel: () => void asked.push('cancel'),
    answer: (_question, given) => void answers.push(given),
    allowInFolder: (_question, rule) => void asked.push(`rule ${JSON.stringify(rule)}`),
    runCommand: (wish) => void asked.push(wish.kind === 'shell' ? `!${wish.command}` : wish.name),
    stopUserCommand: () => false,
    keepUnsent: () => undefined,
    withoutShellOutput: (texts) => texts,
    pastePicture: () => undefined,
    nextPreset: () => void asked.push('preset'),
    openList: (command) => void asked.push(command),
    suspend: () => void asked.push('suspend'),
    end: (how) => void asked.push(`end ${how}`),
  };
  const composer = new Composer({ commands: [], files: async () => [] }, () => undefined);
  const look = { colour: 'no', columns: 80, plain } as const;
  const view = new InteractiveView({ area, look, clock, composer, rows: () => 24 }, wishes, state);
  const happens = (event: Event): void => {
    const next = step(state, event);
    state = next.state;
    view.see({ seq: 1, event, ...next } as Parameters<InteractiveView['see']>[0]); // the machine's own step
  };
  const press = (...keys: readonly string[]): void => {
    for (const key of keys) view.take({ kind: 'key', key: keyOf(key) });
  };
  const type = (text: string): void => {
    for (const letter of text) press(letter === '\r' ? 'enter' : `'${letter}'`);
  };
  /** The last rows: what the keys are for. */
  const line = (): string => {
    const rows = drawn.slice(drawn.findLastIndex((row) => /^[>?] /.test(row)));
    const edge = rows.findIndex((row) => row.startsWith('─'));
    return rows.slice(0, edge < 0 ? rows.length : edge).join('\n');
  };
  return {
    clock,
    asked,
    answers,
    printed,
    view,
    happens,
    press,
    type,
    line,
    drawn: () => drawn.join('\n'),
  };
};

/** The model asks for a call that needs an approval. */
export const question = (at: ReturnType<typeof stageView>): void => {
  const time = at.clock.now();
  at.happens({ type: 'UserInput', at: time, text: 'go', mode: 'steer' });
  at.happens({
    type: 'LlmCompleted',
    at: time,
    requestId: 'req-1',
    message: {
      role: 'assistant',
      model: 'scripted/x',
      cut: false,
      parts: [{ type: 'call', callId: 'a', tool: 'touch', input: {} }],
    },
    calls: [call],
    stopReason: 'toolUse',
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0 },
  });
};
