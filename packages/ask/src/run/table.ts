/**
 * The transition table of code mode: each state and event. The first match wins; a missing entry
 * does not compile.
 *
 * `when` is a guard, `then` and `stay` are moves, functions of the files in moves/. `always` holds
 * the branches that need no event: they are tried after each step. An `always` branch names its
 * state with `to`, also if the run stays there; `stay` is for events. `late` means that the event
 * is ignored.
 *
 * Seed 004 is a published description of such runs (docs/seeds/recursive.md). Traces can be
 * compared with it, so states and edges have its names: `as` is the seed's name of an edge. An edge
 * between two states without `as` is not part of the seed, and ends its trace (seed-projection.ts).
 *
 * A closing run is one whose next reply is the last: `mustFinish` or the user's policy has asked
 * the model for its answer. Its limit is reached if the number of iterations was the reason.
 */

import { machine } from '@pawl/machine/kernel/machine';
import { late, type Table } from '@pawl/machine/kernel/table';
import type { CodeAction } from './action.js';
import { type CodeEvent, codeEventShape } from './event.js';
import * as end from './moves/end-run.js';
import * as call from './moves/model-call.js';
import * as reply from './moves/read-reply.js';
import * as resume from './moves/resume.js';
import * as cells from './moves/run-cells.js';
import * as start from './moves/start-run.js';
import type { CodeState } from './state.js';

const BEGUN = late('the run has begun already');
const OVER = late('the run is over');
const NO_CELL = late('stale: no cell runs here');
const NO_READING = late('stale: no variable is read here');
const NO_CALL = late('stale: no model call is open here');
const NO_WAIT = late('stale: the wait was already over');
const NO_ASKING = late('stale: no policy was asked here');

const noCell = { CellFinished: NO_CELL, SubcallAsked: NO_CELL, SubcallAnswered: NO_CELL };
const noModelCall = {
  ModelReplied: NO_CALL,
  ModelFailed: NO_CALL,
  CallRefused: NO_CALL,
  PolicyAnswered: NO_ASKING,
};
/** Entries for a state that never has an environment. */
const noEnvironment = {
  EnvironmentStarted: late('stale: this run has no environment'),
  EnvironmentFailed: late('stale: this run has no environment'),
};

/** Entries of all states that call a model; a state may have another one in its place. */
const calls = {
  ModelFailed: [
    { when: call.isStaleReply, stay: call.ignoreReply },
    { when: call.mayRetry, stay: call.waitToRetry },
    { to: 'DONE', then: call.giveUp },
  ],
  CallRefused: [
    { when: call.isStaleReply, stay: call.ignoreReply },
    { to: 'DONE', then: call.stopForBudget },
  ],
  PolicyAnswered: [
    { when: call.isStaleVerdict, stay: call.ignoreVerdict },
    { when: call.saysStop, to: 'DONE', then: call.stopForUserPolicy },
    { when: call.saysFinish, stay: call.finishForUserPolicy },
    { stay: call.takeGo },
  ],
  TimerFired: [
    { when: end.isDeadline, to: 'DONE', then: end.stopForTime },
    { when: call.isRetryTimer, stay: call.tryAgain },
    { stay: end.ignoreTimer },
  ],
} as const;
/** Entries of the states that may read a variable. */
const reading = {
  VariableRead: [{ when: reply.isStaleRead, stay: reply.ignoreRead }, { stay: reply.takeVariable }],
} as const;
/** Entries of the states that may have an environment. */
const environment = {
  EnvironmentStarted: [
    { when: resume.isUnexpected, stay: resume.ignoreEnvironment },
    { stay: resume.environmentIsThere },
  ],
  EnvironmentFailed: { to: 'DONE', then: end.failEnvironment },
} as const;
const cancel = { CancelRequested: { to: 'DONE', then: end.cancelRun } } as const;

const table: CodeTable = {
  states: {
    INIT: {
      always: [
        { when: call.mustStop, to: 'DONE', then: call.stopForPolicy },
        { when: call.mustAskUser, to: 'INIT', then: call.askUserPolicy },
        { when: call.mayCall, to: 'INIT', then: call.callModel },
      ],
      on: {
        ...noCell,
        ...calls,
        ...environment,
        ...cancel,
        VariableRead: NO_READING,
        Started: [
          { when: start.hasStarted, stay: start.ignoreStart },
          {
            when: start.depthIsReached,
            to: 'SHALLOW_CALL',
            as: 'DepthExceeded',
            then: start.startPlain,
          },
          { to: 'INIT', then: start.startRun },
        ],
        ModelReplied: [
          { when: call.isStaleReply, stay: call.ignoreReply },
          { when: call.isRefusal, to: 'DONE', then: call.endRefused },
          { to: 'PROMPTING', as: 'LLMResponseReceived', then: reply.takeReply },
        ],
      },
    },

    SHALLOW_CALL: {
      always: [
        { when: call.mustStop, to: 'DONE', then: call.stopForPolicy },
        { when: call.mustAskUser, to: 'SHALLOW_CALL', then: call.askUserPolicy },
        { when: call.mayCall, to: 'SHALLOW_CALL', then: call.callModel },
      ],
      on: {
        ...noCell,
        ...noEnvironment,
        ...calls,
        ...cancel,
        Started: BEGUN,
        VariableRead: NO_READING,
        ModelReplied: [
          { when: call.isStaleReply, stay: call.ignoreReply },
          { when: call.isRefusal, to: 'DONE', then: call.endRefused },
          { to: 'DONE', as: 'LLMResponseReceived', then: reply.endPlain },
        ],
        PolicyAnswered: [
          { when: call.isStaleVerdict, stay: call.ignoreVerdict },
          { when: call.saysStop, to: 'DONE', then: call.stopForUserPolicy },
          { stay: call.takeGo }, // also `finish`: the one reply of a plain call is its answer
        ],
      },
    },

    PROMPTING: {
      always: [
        { when: reply.hasProgram, to: 'EXECUTING', as: 'CodeBlocksFound', then: reply.execute },
        { when: reply.givesAnswer, to: 'DONE', as: 'FinalAnswerFound', then: reply.endWithFinal },
        // neither code nor an answer: the seed calls it so all the same; the iteration is wasted
        { when: reply.hasNothing, to: 'EXECUTING', as: 'CodeBlocksFound', then: reply.execute },
        { when: reply.namesVariable, to: 'PROMPTING', then: reply.readVariable },
      ],
      on: {
        ...noCell,
        ...noModelCall,
        ...reading,
        ...environment,
        ...cancel,
        Started: BEGUN,
        TimerFired: [
          { when: end.isDeadline, to: 'DONE', then: end.stopForTime },
          { stay: end.ignoreTimer },
        ],
      },
    },

    EXECUTING: {
      // `mustFinish` is here alone: before the first call nothing was iterated or repeated
      always: [
        { when: cells.blockIsNext, to: 'EXECUTING', then: cells.runBlock },
        { when: cells.variableIsNext, to: 'EXECUTING', then: reply.readVariable },
        {
          when: cells.isReplyAtLimit,
          to: 'DONE',
          as: 'MaxIterationsReached',
          then: cells.endWithAnswer,
        },
        { when: cells.isClosingReply, to: 'DONE', then: cells.endWithAnswer },
        {
          when: cells.answerIsFound,
          to: 'DONE',
          as: 'FinalAnswerFound',
          then: cells.endWithAnswer,
        },
        { when: cells.isEvaluated, to: 'EXECUTING', then: cells.closeIteration },
        { when: call.mustStop, to: 'DONE', then: call.stopForPolicy },
        { when: call.mustFinish, to: 'EXECUTING', then: call.askForAnswer },
        { when: call.mustAskUser, to: 'EXECUTING', then: call.askUserPolicy },
        { when: call.mayCall, to: 'EXECUTING', then: call.callModel },
      ],
      on: {
        ...calls,
        ...reading,
        ...environment,
        ...cancel,
        Started: BEGUN,
        CellFinished: [
          { when: cells.isOtherCell, stay: cells.ignoreCell },
          { stay: cells.finishCell },
        ],
        SubcallAsked: [
          { when: cells.isOtherCell, stay: cells.ignoreCell },
          { when: cells.isRecorded, stay: cells.answerFromRecord },
          { when: cells.isUnderWay, stay: cells.waitForAnswer },
          { stay: cells.startSubcall },
        ],
        SubcallAnswered: [
          { when: cells.isOpen, stay: cells.takeAnswer },
          { stay: cells.ignoreAnswer },
        ],
        ModelReplied: [
          { when: call.isStaleReply, stay: call.ignoreReply },
          { when: call.isRefusal, to: 'DONE', then: call.endRefused },
          { when: reply.asksForAnswer, stay: reply.takeLastReply },
          { to: 'PROMPTING', as: 'CodeExecuted', then: reply.takeReply },
        ],
        ModelFailed: [
          { when: call.isStaleReply, stay: call.ignoreReply },
          { when: call.overflowMayBeCut, stay: call.cutAndDecide },
          { when: call.mayRetry, stay: call.waitToRetry },
          { to: 'DONE', then: call.giveUp },
        ],
      },
    },

    DONE: {
      on: {
        ...noCell,
        ...noModelCall,
        Started: OVER,
        VariableRead: NO_READING,
        TimerFired: NO_WAIT,
        EnvironmentStarted: OVER,
        EnvironmentFailed: OVER,
        CancelRequested: OVER,
        ShutdownRequested: OVER,
        Resumed: OVER,
      },
    },
  },

  defaults: { ShutdownRequested: { stay: end.standDown }, Resumed: { stay: resume.startAgain } },
};

// ---- The type of the table; and the machine, with a line of documentation for each name ----

type DefaultEvent = 'ShutdownRequested' | 'Resumed';
/** `never`: it has no transient states, which are left within the step that enters them. */
type CodeTable = Table<CodeState, CodeEvent, CodeAction, never, DefaultEvent>;

/** Takes the table, gives the machine. */
const codeMachine = machine<CodeState, CodeEvent, CodeAction>()({
  shape: codeEventShape,
  initial: 'INIT',
  transient: [],
  defaults: ['ShutdownRequested', 'Resumed'],
  ends: ['DONE'],
  states: {
    INIT: 'the depth is tested, the environment starts, the first call is made',
    SHALLOW_CALL: 'too deep for an environment: one plain call',
    PROMPTING: 'the reply is looked at; waits only while the variable that FINAL_VAR names is read',
    EXECUTING: 'the code of the reply runs, then the next call is made',
    DONE: 'the run is over',
  },
  events: {
    Started: 'the run begins',
    ModelReplied: 'a reply is whole',
    ModelFailed: 'a model call failed',
    CallRefused: 'what is left of the budget does not pay for the call that waited',
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

/** Code mode of one run: pure, total, never throws. */
export const codeMode = codeMachine(table);
