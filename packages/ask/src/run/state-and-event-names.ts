import { machine } from '@pawl/machine/kernel/make-machine';
import type { Table } from '@pawl/machine/kernel/table';
import type { CodeAction } from './action.js';
import type { CodeEvent } from './event.js';
import { codeEventShape } from './event-shapes.js';
import type { CodeState } from './state.js';

/** The names of the machine, each with a line of documentation. The table is in table.ts. */

type DefaultEvent = 'ShutdownRequested' | 'Resumed';
export type CodeTable = Table<CodeState, CodeEvent, CodeAction, never, DefaultEvent>;

/** Takes the table, gives the machine. */
export const codeMachine = machine<CodeState, CodeEvent, CodeAction>()({
  shape: codeEventShape,
  initial: 'INIT',
  transient: [],
  defaults: ['ShutdownRequested', 'Resumed'],
  ends: ['DONE'],
  states: {
    INIT: 'the depth is tested, the environment starts, the first call is made',
    SHALLOW_CALL: 'too deep for an environment: one plain call',
    PROMPTING: 'the reply is looked at; rests only while a variable is read that answers',
    EXECUTING: 'the code of the reply runs, then the next call is made',
    DONE: 'the run is over',
  },
  events: {
    Started: 'the run begins',
    ModelReplied: 'a reply is whole',
    ModelFailed: 'a model call failed',
    CallRefused: 'what is left does not pay for the call that waited',
    EnvironmentStarted: 'the environment is ready',
    EnvironmentFailed: 'the environment could not be started, or broke',
    CellFinished: 'a cell came to its end',
    SubcallAsked: 'the running cell calls models',
    SubcallAnswered: 'all slots of a sub-call have their text',
    VariableRead: 'the variable that FINAL_VAR names was looked up',
    PolicyAnswered: 'the user’s own policy has judged',
    TimerFired: 'a timer is due',
    CancelRequested: 'the run is to end as it is',
    ShutdownRequested: 'everything stands down, and can be resumed',
    Resumed: 'the tree of runs was opened again',
  },
});
