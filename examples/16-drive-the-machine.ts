/** Drives the machine with a model and a tool of your own: the loop is all that an agent needs around it. */
import * as machine from 'pawl/machine';

const model = 'scripted/none';
const traits = { effect: 'pure', mutating: false } as const;
const read = machine.toolCall({ callId: 'c1', tool: 'read', input: { path: 'a' }, traits });

/** The first reply calls a tool, the second one ends the turn. */
const askModel = (requestId: string): machine.Event =>
  machine.modelReply({
    requestId,
    at: 2,
    model,
    ...(requestId === 'req-1' ? { calls: [read] } : { text: 'It says hello.' }),
  });

const perform = (action: machine.Action): readonly machine.Event[] => {
  if (action.type === 'DisplayText') console.log(`the agent says: ${action.text}`);
  if (action.type === 'SendLlmRequest') return [askModel(action.requestId)];
  if (action.type !== 'ExecuteTools') return [];
  const { batchId, calls } = action;
  return calls.flatMap(({ callId }): readonly machine.Event[] => [
    { type: 'ToolStarted', at: 3, batchId, callId }, // before the effect
    { type: 'ToolCompleted', at: 4, batchId, callId, outcome: { status: 'ok', text: 'hello' } },
  ]);
};

const ready = machine.initialState({ ...machine.defaultSettings, model, workspace: '/w' });
let { state } = machine.step(ready, { type: 'Start', at: 0 });
const events: machine.Event[] = [machine.userInput('What is in the file a?', 1)];
for (const event of events) {
  const stepped = machine.step(state, event);
  state = stepped.state;
  const actions = stepped.actions.map(({ type }) => type).join(', ');
  console.log(`${event.type} → ${state.name}${actions === '' ? '' : `, asks for ${actions}`}`);
  for (const action of stepped.actions) events.push(...perform(action));
}
