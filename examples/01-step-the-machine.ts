/** Steps the pure machine by hand, without model, disk or clock, and prints the states that each event passes through. */
import { defaultSettings, type Event, initialState, type State, step } from 'pawl/machine';

const usage = {
  inputTokens: 9,
  outputTokens: 2,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: null,
};
const model = 'scripted/none';

const events: readonly Event[] = [
  { type: 'Start', at: 0 },
  { type: 'UserInput', at: 1_000, text: 'Say hello.', mode: 'steer' },
  {
    type: 'LlmFailed',
    at: 2_000,
    requestId: 'req-1',
    error: { kind: 'overloaded', message: 'come back later', retryable: true, retryAfterMs: null },
    usage: null,
    jitter: 0,
  },
  { type: 'TimerFired', at: 3_000, timerId: 'timer-1' },
  {
    type: 'LlmCompleted',
    at: 4_000,
    requestId: 'req-2',
    message: { role: 'assistant', model, cut: false, parts: [{ type: 'text', text: 'Hello!' }] },
    calls: [],
    stopReason: 'end',
    usage,
  },
  { type: 'ToolsFailed', at: 5_000, batchId: 'batch-1', message: 'a fact that comes too late' },
  { type: 'ShutdownRequested', at: 6_000 },
];

let state: State = initialState({ ...defaultSettings, model, workspace: '/anywhere' });
for (const event of events) {
  const stepped = step(state, event);
  console.log([state.name, ...stepped.path.map((edge) => edge.to)].join(' → '));
  for (const { type } of stepped.actions) console.log(`    wishes ${type}`);
  for (const { why } of stepped.diagnostics) console.log(`    ignored: ${why}`);
  state = stepped.state;
}
