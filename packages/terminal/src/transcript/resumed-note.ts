import type { Stepped } from '@pawl/agent/ports/session-input-output';

/** Says which work a resumed session repeats. Empty for other steps, and if the session had nothing to do. */
export const resumedNote = ({ event, actions, state }: Stepped): string => {
  if (event.type !== 'Resumed') return '';
  for (const action of actions) {
    if (action.type === 'SendLlmRequest')
      return 'the program ended before the model answered: the request is sent again';
    if (action.type === 'StartCompaction')
      return 'the program ended during a summary of the conversation: the summary is made again';
    if (action.type === 'RunHook')
      return 'the program ended after the tools had run: the turn continues from there';
    if (action.type === 'ScheduleTimer' && state.name === 'Error')
      return 'the program ended while it waited to retry: the wait continues';
  }
  return state.name === 'ExecutingTools'
    ? 'the program ended while tools were running: the turn continues from there'
    : '';
};
