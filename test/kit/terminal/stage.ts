import type { Event } from '../../../packages/agent/src/machine/event.js';
import { initialState, step } from '../../../packages/agent/src/machine/machine.js';
import type { AssistantMessage } from '../../../packages/agent/src/machine/message.js';
import { defaultSettings, type Settings } from '../../../packages/agent/src/machine/settings.js';
import type { State } from '../../../packages/agent/src/machine/state.js';
import type { JudgedCall } from '../../../packages/agent/src/policy/judged-call.js';
import type { Stepped } from '../../../packages/agent/src/ports/session.js';
import { fakeClock } from '../../../packages/pawl/src/testing.js';
import {
  createLiveArea,
  inputBox,
  queuedRows,
  settingsRows,
  statusRow,
} from '../../../packages/terminal/src/live-area.js';
import type { Look } from '../../../packages/terminal/src/paint.js';
import { makeSafe, safe } from '../../../packages/terminal/src/safe-text.js';
import { createSentPrompts, Transcript } from '../../../packages/terminal/src/transcript.js';
import { createEmulator } from './screen.js';

/** What one sees of a session: the real machine, the scroll, status and live area; the terminal is emulated, time stands still. */

const START_MS = 1_000_000;
const settings: Settings = {
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  hooks: 'never',
  queueOnCancel: 'restore',
  limits: { ...defaultSettings.limits, usd: 0.5 },
};

type Timeless<E> = E extends unknown ? Omit<E, 'at'> : never;

export type StageOptions = {
  readonly columns: number;
  readonly rows?: number;
  readonly look?: Partial<Look>;
  readonly settings?: Partial<Settings>;
};

export const createStage = (options: StageOptions) => {
  const clock = fakeClock(START_MS);
  const screen = createEmulator(options.columns, options.rows ?? 40);
  const area = createLiveArea({
    write: screen.write,
    size: screen.size,
    clock,
    reflow: 'byXterm',
  });
  const look: Look = {
    colour: 'no',
    ...options.look,
    get columns() {
      return screen.size().columns;
    },
  };
  const scroll = new Transcript(look, '/w');
  const prompts = createSentPrompts(look);
  let state: State = initialState({ ...settings, ...options.settings });
  const draw = (): void =>
    area.draw(() => {
      const rows = [...scroll.rows(look.columns, clock.now()), ...queuedRows(state, look.columns)];
      const status = statusRow(state, look.columns, clock.now());
      const line = { rows: [safe`> `], cursor: { row: 0, column: 2 } };
      const size = screen.size();
      const box = inputBox(line, look, size, settingsRows(state, look, size));
      const row = rows.length + 1 + (box.cursor?.row ?? 0);
      return { rows: [...rows, status, ...box.rows], cursor: { row, column: 2 } };
    });
  return {
    clock,
    screen,
    area,
    scroll,
    draw,
    state: () => state,
    /** The event, at the time it is, as the machine and the screen take it; what was printed. */
    happens(event: Timeless<Event>): string {
      const timed = { ...event, at: clock.now() } as Event; // an event is what it was and its time
      const next = step(state, timed) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
      const stepped = { ...next, seq: 1, event: timed };
      if (timed.type === 'UserInput') prompts.typed(timed.text, safe`\n> ${makeSafe(timed.text)}`);
      const sent = prompts.see(state, stepped);
      state = next.state;
      const lines = scroll.see(stepped);
      if (lines !== '') area.print(lines);
      for (const prompt of sent) area.print(prompt);
      draw();
      return lines;
    },
    /** Lets time pass, and with it what is coalesced. */
    pass(ms: number): void {
      clock.advance(ms);
      draw();
      clock.advance(40);
    },
  };
};

export type Stage = ReturnType<typeof createStage>;

type CallFrom = {
  readonly callId: string;
  readonly tool: string;
  readonly input?: Readonly<Record<string, string>>;
  readonly argv?: readonly string[];
  readonly path?: string;
  readonly mutating?: boolean;
  readonly shown?: 'list';
};

export const callOf = ({
  callId,
  tool,
  input = {},
  argv = [],
  path,
  mutating = false,
  shown,
}: CallFrom): JudgedCall => ({
  callId,
  tool,
  input,
  verdict: { kind: 'ok' },
  traits: {
    effect: mutating ? 'opaque' : 'pure',
    parallelSafe: !mutating,
    mutating,
    deadlineMs: 1_000,
    ...(shown === undefined ? {} : { shown }),
  },
  facts: { argv, paths: path === undefined ? [] : [path], hosts: [], shape: path ?? tool },
});

const USAGE = {
  inputTokens: 1_200,
  outputTokens: 300,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.0123,
};

export const completed = (
  requestId: string,
  text: string,
  calls: readonly JudgedCall[] = [],
): Timeless<Event> => {
  const parts: AssistantMessage['parts'] = [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ callId, tool, input }) => ({ type: 'call' as const, callId, tool, input })),
  ];
  return {
    type: 'LlmCompleted',
    requestId,
    message: { role: 'assistant', model: 'scripted/x', cut: false, parts },
    calls,
    stopReason: calls.length > 0 ? 'toolUse' : 'end',
    usage: USAGE,
  };
};

/** Streams text in small pieces, a little time apart. */
export const stream = (stage: Stage, requestId: string, text: string, size = 7): void => {
  for (let at = 0; at < text.length; at += size) {
    stage.happens({ type: 'TextDelta', requestId, text: text.slice(at, at + size) });
    stage.clock.advance(10);
  }
};
