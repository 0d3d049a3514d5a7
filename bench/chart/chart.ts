/**
 * The seven-state chart that every candidate implements: WaitingForUserInput, CallingLlm,
 * ProcessingLlmResponse (transient), ExecutingTools, PostToolsHook, Error, ShuttingDown.
 */

export type ChartMessage = { readonly role: 'user' | 'assistant' | 'tool'; readonly text: string };

export type ChartEvent =
  | { readonly type: 'UserInput'; readonly text: string }
  | { readonly type: 'TextDelta'; readonly text: string }
  | { readonly type: 'LlmCompleted'; readonly text: string; readonly calls: readonly string[] }
  | { readonly type: 'LlmFailed'; readonly message: string }
  | {
      readonly type: 'ToolCompleted';
      readonly callId: string;
      readonly text: string;
      readonly mutated: boolean;
    }
  | { readonly type: 'HookCompleted' }
  | { readonly type: 'TimerFired' }
  | { readonly type: 'ShutdownRequested' };

export type ChartAction =
  | { readonly type: 'SendLlmRequest'; readonly length: number }
  | { readonly type: 'ExecuteTools'; readonly calls: readonly string[] }
  | { readonly type: 'RunHook' }
  | { readonly type: 'ScheduleTimer'; readonly delayMs: number }
  | { readonly type: 'DisplayText'; readonly text: string }
  | { readonly type: 'DisplayError'; readonly text: string }
  | { readonly type: 'PromptForInput' }
  | { readonly type: 'Shutdown' };

export const retriesMax = 3;

/** One turn of 106 events: input, 50 deltas, three calls, three results, 50 deltas, the answer. */
export const turnOf = (): readonly ChartEvent[] => {
  const deltas = (count: number): ChartEvent[] =>
    Array.from({ length: count }, (_, index) => ({ type: 'TextDelta', text: `piece ${index} ` }));
  return [
    { type: 'UserInput', text: 'fix the bug' },
    ...deltas(50),
    { type: 'LlmCompleted', text: 'let me look', calls: ['a', 'b', 'c'] },
    { type: 'ToolCompleted', callId: 'b', text: 'two', mutated: false },
    { type: 'ToolCompleted', callId: 'a', text: 'one', mutated: false },
    { type: 'ToolCompleted', callId: 'c', text: 'three', mutated: false },
    ...deltas(50),
    { type: 'LlmCompleted', text: 'fixed', calls: [] },
  ];
};

/** The final result of a candidate. All must agree. */
export type Ending = {
  readonly state: string;
  readonly messages: readonly ChartMessage[];
  readonly actions: number;
};

/** Plays one turn from the start. */
export type PlayTurn = (events: readonly ChartEvent[]) => Ending;
