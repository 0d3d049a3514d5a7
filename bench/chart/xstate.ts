/**
 * The chart of chart.ts in XState 5, as its documentation writes such machines: context by assign,
 * actions as emitted events.
 */

import {
  assign,
  createActor,
  emit,
  enqueueActions,
  initialTransition,
  setup,
  transition,
} from 'xstate';
import { type ChartEvent, type ChartMessage, type PlayTurn, retriesMax } from './chart.js';

type Done = { readonly callId: string; readonly text: string };
type Context = {
  readonly messages: readonly ChartMessage[];
  readonly attempt: number;
  readonly calls: readonly string[];
  readonly done: readonly Done[];
  readonly mutated: boolean;
};

const settle = (
  context: Context,
  event: Extract<ChartEvent, { type: 'ToolCompleted' }>,
): readonly ChartMessage[] => {
  const done = [...context.done, { callId: event.callId, text: event.text }];
  const results = context.calls.map((callId): ChartMessage => {
    return { role: 'tool', text: done.find((one) => one.callId === callId)?.text ?? '' };
  });
  return [...context.messages, ...results];
};

const chart = setup({
  types: {
    context: {} as Context,
    events: {} as ChartEvent,
    emitted: {} as { readonly type: string },
  },
}).createMachine({
  id: 'chart',
  initial: 'WaitingForUserInput',
  context: { messages: [], attempt: 1, calls: [], done: [], mutated: false },
  on: { ShutdownRequested: { target: '.ShuttingDown', actions: emit({ type: 'Shutdown' }) } },
  states: {
    WaitingForUserInput: {
      on: {
        UserInput: {
          target: 'CallingLlm',
          actions: [
            assign(({ context, event }) => ({
              messages: [...context.messages, { role: 'user', text: event.text } as const],
              attempt: 1,
            })),
            emit({ type: 'SendLlmRequest' }),
          ],
        },
      },
    },
    CallingLlm: {
      on: {
        TextDelta: { actions: emit(({ event }) => ({ type: 'DisplayText', text: event.text })) },
        LlmCompleted: {
          target: 'ProcessingLlmResponse',
          actions: assign(({ context, event }) => ({
            messages: [...context.messages, { role: 'assistant', text: event.text } as const],
            calls: event.calls,
          })),
        },
        LlmFailed: [
          {
            guard: ({ context }) => context.attempt <= retriesMax,
            target: 'Error',
            actions: emit({ type: 'ScheduleTimer' }),
          },
          {
            target: 'WaitingForUserInput',
            actions: [
              emit(({ event }) => ({ type: 'DisplayError', text: event.message })),
              emit({ type: 'PromptForInput' }),
            ],
          },
        ],
      },
    },
    ProcessingLlmResponse: {
      always: [
        {
          guard: ({ context }) => context.calls.length > 0,
          target: 'ExecutingTools',
          actions: [assign({ done: [], mutated: false }), emit({ type: 'ExecuteTools' })],
        },
        { target: 'WaitingForUserInput', actions: emit({ type: 'PromptForInput' }) },
      ],
    },
    ExecutingTools: {
      on: {
        ToolCompleted: [
          {
            guard: ({ context, event }) =>
              context.done.length + 1 === context.calls.length &&
              (context.mutated || event.mutated),
            target: 'PostToolsHook',
            actions: [
              assign(({ context, event }) => ({ messages: settle(context, event) })),
              emit({ type: 'RunHook' }),
            ],
          },
          {
            guard: ({ context }) => context.done.length + 1 === context.calls.length,
            target: 'CallingLlm',
            actions: [
              assign(({ context, event }) => ({ messages: settle(context, event), attempt: 1 })),
              emit({ type: 'SendLlmRequest' }),
            ],
          },
          {
            actions: enqueueActions(({ context, event, enqueue }) => {
              enqueue.assign({
                done: [...context.done, { callId: event.callId, text: event.text }],
                mutated: context.mutated || event.mutated,
              });
            }),
          },
        ],
      },
    },
    PostToolsHook: {
      on: { HookCompleted: { target: 'CallingLlm', actions: emit({ type: 'SendLlmRequest' }) } },
    },
    Error: {
      on: {
        TimerFired: {
          target: 'CallingLlm',
          actions: [
            assign(({ context }) => ({ attempt: context.attempt + 1 })),
            emit({ type: 'SendLlmRequest' }),
          ],
        },
      },
    },
    ShuttingDown: {},
  },
});

/** A running actor: effects happen as it goes. */
export const playActor: PlayTurn = (events) => {
  let actions = 0;
  const actor = createActor(chart);
  actor.on('*', () => {
    actions += 1;
  });
  actor.start();
  for (const event of events) actor.send(event);
  const snapshot = actor.getSnapshot();
  actor.stop();
  return { state: String(snapshot.value), messages: snapshot.context.messages, actions };
};

/** The pure function: next snapshot and actions as data. */
export const playTransition: PlayTurn = (events) => {
  let [snapshot] = initialTransition(chart);
  let actions = 0;
  for (const event of events) {
    const [next, wishes] = transition(chart, snapshot, event);
    snapshot = next;
    actions += wishes.filter((wish) => String(wish.type) === 'xstate.emit').length;
  }
  return { state: String(snapshot.value), messages: snapshot.context.messages, actions };
};
