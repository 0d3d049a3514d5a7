/**
 * The floor for speed: the chart of chart.ts as a switch written by hand over a union of states,
 * immutable, without table, path and diagnostics.
 */

import {
  type ChartAction,
  type ChartEvent,
  type ChartMessage,
  type PlayTurn,
  retriesMax,
} from './chart.js';

type Done = { readonly callId: string; readonly text: string };
type State = { readonly messages: readonly ChartMessage[] } & (
  | { readonly name: 'WaitingForUserInput' | 'PostToolsHook' | 'ShuttingDown' }
  | { readonly name: 'CallingLlm'; readonly attempt: number }
  | { readonly name: 'Error'; readonly attempt: number }
  | {
      readonly name: 'ExecutingTools';
      readonly calls: readonly string[];
      readonly done: readonly Done[];
      readonly mutated: boolean;
    }
);
type Step = { readonly state: State; readonly actions: readonly ChartAction[] };

const NONE: readonly ChartAction[] = [];

const call = (messages: readonly ChartMessage[], attempt: number): Step => ({
  state: { name: 'CallingLlm', messages, attempt },
  actions: [{ type: 'SendLlmRequest', length: messages.length }],
});

const whileCalling = (
  state: Extract<State, { readonly name: 'CallingLlm' }>,
  event: ChartEvent,
): Step => {
  switch (event.type) {
    case 'TextDelta':
      return { state, actions: [{ type: 'DisplayText', text: event.text }] };
    case 'LlmCompleted': {
      const messages: readonly ChartMessage[] = [
        ...state.messages,
        { role: 'assistant', text: event.text },
      ];
      if (event.calls.length === 0) {
        return {
          state: { name: 'WaitingForUserInput', messages },
          actions: [{ type: 'PromptForInput' }],
        };
      }
      return {
        state: { name: 'ExecutingTools', messages, calls: event.calls, done: [], mutated: false },
        actions: [{ type: 'ExecuteTools', calls: event.calls }],
      };
    }
    case 'LlmFailed':
      if (state.attempt > retriesMax) {
        return {
          state: { name: 'WaitingForUserInput', messages: state.messages },
          actions: [{ type: 'DisplayError', text: event.message }, { type: 'PromptForInput' }],
        };
      }
      return {
        state: { name: 'Error', messages: state.messages, attempt: state.attempt },
        actions: [{ type: 'ScheduleTimer', delayMs: 1_000 * state.attempt }],
      };
    default:
      return { state, actions: NONE };
  }
};

const step = (state: State, event: ChartEvent): Step => {
  if (event.type === 'ShutdownRequested') {
    return {
      state: { name: 'ShuttingDown', messages: state.messages },
      actions: [{ type: 'Shutdown' }],
    };
  }
  switch (state.name) {
    case 'WaitingForUserInput':
      return event.type === 'UserInput'
        ? call([...state.messages, { role: 'user', text: event.text }], 1)
        : { state, actions: NONE };
    case 'CallingLlm':
      return whileCalling(state, event);
    case 'Error':
      return event.type === 'TimerFired'
        ? call(state.messages, state.attempt + 1)
        : { state, actions: NONE };
    case 'ExecutingTools': {
      if (event.type !== 'ToolCompleted') return { state, actions: NONE };
      const done = [...state.done, { callId: event.callId, text: event.text }];
      const mutated = state.mutated || event.mutated;
      if (done.length < state.calls.length)
        return { state: { ...state, done, mutated }, actions: NONE };
      const results = state.calls.map((callId): ChartMessage => {
        return { role: 'tool', text: done.find((one) => one.callId === callId)?.text ?? '' };
      });
      const messages = [...state.messages, ...results];
      return mutated
        ? { state: { name: 'PostToolsHook', messages }, actions: [{ type: 'RunHook' }] }
        : call(messages, 1);
    }
    case 'PostToolsHook':
      return event.type === 'HookCompleted' ? call(state.messages, 1) : { state, actions: NONE };
    case 'ShuttingDown':
      return { state, actions: NONE };
    default:
      return state satisfies never;
  }
};

export const playTurn: PlayTurn = (events) => {
  let state: State = { name: 'WaitingForUserInput', messages: [] };
  let actions = 0;
  for (const event of events) {
    const next = step(state, event);
    state = next.state;
    actions += next.actions.length;
  }
  return { state: state.name, messages: state.messages, actions };
};
