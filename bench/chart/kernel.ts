/**
 * The chart of chart.ts on our kernel: the table, with path and diagnostics in every step.
 */

import { AppendList } from '../../packages/machine/src/kernel/append-list.js';
import { machine } from '../../packages/machine/src/kernel/machine.js';
import {
  type EventOf,
  late,
  type MoveResult,
  type StateOf,
} from '../../packages/machine/src/kernel/table.js';
import {
  type ChartAction,
  type ChartEvent,
  type ChartMessage,
  type PlayTurn,
  retriesMax,
} from './chart.js';

type Messages = { readonly messages: AppendList<ChartMessage> };
type Done = { readonly callId: string; readonly text: string };
type State =
  | ({ readonly name: 'WaitingForUserInput' } & Messages)
  | ({ readonly name: 'CallingLlm'; readonly attempt: number } & Messages)
  | ({ readonly name: 'ProcessingLlmResponse'; readonly calls: readonly string[] } & Messages)
  | ({
      readonly name: 'ExecutingTools';
      readonly calls: readonly string[];
      readonly done: readonly Done[];
      readonly mutated: boolean;
    } & Messages)
  | ({ readonly name: 'PostToolsHook' } & Messages)
  | ({ readonly name: 'Error'; readonly attempt: number } & Messages)
  | ({ readonly name: 'ShuttingDown' } & Messages);
type In<N extends State['name']> = StateOf<State, N>;
type On<T extends ChartEvent['type']> = EventOf<ChartEvent, T>;
type To<N extends State['name']> = MoveResult<In<N>, ChartAction>;

const NONE: readonly ChartAction[] = [];

const call = (messages: AppendList<ChartMessage>, attempt: number): To<'CallingLlm'> => ({
  state: { name: 'CallingLlm', messages, attempt },
  actions: [{ type: 'SendLlmRequest', length: messages.length }],
});
const beginTurn = (state: In<'WaitingForUserInput'>, event: On<'UserInput'>): To<'CallingLlm'> =>
  call(state.messages.append({ role: 'user', text: event.text }), 1);
const showDelta = (state: In<'CallingLlm'>, event: On<'TextDelta'>): To<'CallingLlm'> => ({
  state,
  actions: [{ type: 'DisplayText', text: event.text }],
});
const readReply = (
  state: In<'CallingLlm'>,
  event: On<'LlmCompleted'>,
): To<'ProcessingLlmResponse'> => ({
  state: {
    name: 'ProcessingLlmResponse',
    messages: state.messages.append({ role: 'assistant', text: event.text }),
    calls: event.calls,
  },
  actions: NONE,
});
const mayRetry = (state: In<'CallingLlm'>): boolean => state.attempt <= retriesMax;
const waitToRetry = (state: In<'CallingLlm'>): To<'Error'> => ({
  state: { name: 'Error', messages: state.messages, attempt: state.attempt },
  actions: [{ type: 'ScheduleTimer', delayMs: 1_000 * state.attempt }],
});
const giveUp = (state: In<'CallingLlm'>, event: On<'LlmFailed'>): To<'WaitingForUserInput'> => ({
  state: { name: 'WaitingForUserInput', messages: state.messages },
  actions: [{ type: 'DisplayError', text: event.message }, { type: 'PromptForInput' }],
});
const hasCalls = (state: In<'ProcessingLlmResponse'>): boolean => state.calls.length > 0;
const startTools = (state: In<'ProcessingLlmResponse'>): To<'ExecutingTools'> => ({
  state: {
    name: 'ExecutingTools',
    messages: state.messages,
    calls: state.calls,
    done: [],
    mutated: false,
  },
  actions: [{ type: 'ExecuteTools', calls: state.calls }],
});
const endTurn = (state: In<'ProcessingLlmResponse'>): To<'WaitingForUserInput'> => ({
  state: { name: 'WaitingForUserInput', messages: state.messages },
  actions: [{ type: 'PromptForInput' }],
});
const isLast = (state: In<'ExecutingTools'>): boolean =>
  state.done.length + 1 === state.calls.length;
const isLastAndMutated = (state: In<'ExecutingTools'>, event: On<'ToolCompleted'>): boolean =>
  isLast(state) && (state.mutated || event.mutated);
const record = (state: In<'ExecutingTools'>, event: On<'ToolCompleted'>): To<'ExecutingTools'> => ({
  state: {
    ...state,
    done: [...state.done, { callId: event.callId, text: event.text }],
    mutated: state.mutated || event.mutated,
  },
  actions: NONE,
});
const addResults = (
  state: In<'ExecutingTools'>,
  event: On<'ToolCompleted'>,
): AppendList<ChartMessage> => {
  const done = [...state.done, { callId: event.callId, text: event.text }];
  let { messages } = state;
  for (const callId of state.calls) {
    messages = messages.append({
      role: 'tool',
      text: done.find((one) => one.callId === callId)?.text ?? '',
    });
  }
  return messages;
};
const sendResults = (state: In<'ExecutingTools'>, event: On<'ToolCompleted'>): To<'CallingLlm'> =>
  call(addResults(state, event), 1);
const runHook = (state: In<'ExecutingTools'>, event: On<'ToolCompleted'>): To<'PostToolsHook'> => ({
  state: { name: 'PostToolsHook', messages: addResults(state, event) },
  actions: [{ type: 'RunHook' }],
});
const sendAfterHook = (state: In<'PostToolsHook'>): To<'CallingLlm'> => call(state.messages, 1);
const tryAgain = (state: In<'Error'>): To<'CallingLlm'> => call(state.messages, state.attempt + 1);
const shutDown = (state: State): To<'ShuttingDown'> => ({
  state: { name: 'ShuttingDown', messages: state.messages },
  actions: [{ type: 'Shutdown' }],
});

const NO_CALL = late('no model call is open');
const NO_TOOL = late('no tool is running');
const NO_HOOK = late('no hook is running');
const NO_TIMER = late('nothing is waiting');
const BUSY = late('a turn is running');
const noCall = { TextDelta: NO_CALL, LlmCompleted: NO_CALL, LlmFailed: NO_CALL };

const chart = machine<State, ChartEvent, ChartAction>()({
  states: {
    WaitingForUserInput: '',
    CallingLlm: '',
    ProcessingLlmResponse: '',
    ExecutingTools: '',
    PostToolsHook: '',
    Error: '',
    ShuttingDown: '',
  },
  events: {
    UserInput: '',
    TextDelta: '',
    LlmCompleted: '',
    LlmFailed: '',
    ToolCompleted: '',
    HookCompleted: '',
    TimerFired: '',
    ShutdownRequested: '',
  },
  initial: 'WaitingForUserInput',
  transient: ['ProcessingLlmResponse'],
  defaults: ['ShutdownRequested'],
  ends: ['ShuttingDown'],
})({
  states: {
    WaitingForUserInput: {
      on: {
        ...noCall,
        UserInput: { to: 'CallingLlm', then: beginTurn },
        ToolCompleted: NO_TOOL,
        HookCompleted: NO_HOOK,
        TimerFired: NO_TIMER,
      },
    },
    CallingLlm: {
      on: {
        UserInput: BUSY,
        TextDelta: { stay: showDelta },
        LlmCompleted: { to: 'ProcessingLlmResponse', then: readReply },
        LlmFailed: [
          { when: mayRetry, to: 'Error', then: waitToRetry },
          { to: 'WaitingForUserInput', then: giveUp },
        ],
        ToolCompleted: NO_TOOL,
        HookCompleted: NO_HOOK,
        TimerFired: NO_TIMER,
      },
    },
    ProcessingLlmResponse: {
      always: [
        { when: hasCalls, to: 'ExecutingTools', then: startTools },
        { to: 'WaitingForUserInput', then: endTurn },
      ],
    },
    ExecutingTools: {
      on: {
        ...noCall,
        UserInput: BUSY,
        ToolCompleted: [
          { when: isLastAndMutated, to: 'PostToolsHook', then: runHook },
          { when: isLast, to: 'CallingLlm', then: sendResults },
          { stay: record },
        ],
        HookCompleted: NO_HOOK,
        TimerFired: NO_TIMER,
      },
    },
    PostToolsHook: {
      on: {
        ...noCall,
        UserInput: BUSY,
        ToolCompleted: NO_TOOL,
        HookCompleted: { to: 'CallingLlm', then: sendAfterHook },
        TimerFired: NO_TIMER,
      },
    },
    Error: {
      on: {
        ...noCall,
        UserInput: BUSY,
        ToolCompleted: NO_TOOL,
        HookCompleted: NO_HOOK,
        TimerFired: { to: 'CallingLlm', then: tryAgain },
      },
    },
    ShuttingDown: {
      on: {
        ...noCall,
        UserInput: BUSY,
        ToolCompleted: NO_TOOL,
        HookCompleted: NO_HOOK,
        TimerFired: NO_TIMER,
      },
    },
  },
  defaults: { ShutdownRequested: { to: 'ShuttingDown', then: shutDown } },
});

export const playTurn: PlayTurn = (events) => {
  let state: State = { name: 'WaitingForUserInput', messages: AppendList.empty() };
  let actions = 0;
  for (const event of events) {
    const next = chart.step(state, event);
    state = next.state;
    actions += next.actions.length;
  }
  return { state: state.name, messages: state.messages.toArray(), actions };
};
