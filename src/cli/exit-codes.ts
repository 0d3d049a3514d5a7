import { basename } from 'node:path';
import type { Dimension } from '../agent/settings.js';
import type { FailureKind, State, StopCause, WaitReason } from '../agent/state.js';
import type { JournalError, JournalErrorKind } from '../journal/error.js';

/** Every way the program can end; docs/headless.md says the same to people. */
export const exitCodes = {
  done: 0,
  taskFailed: 1,
  usage: 2,
  badInput: 65,
  unavailable: 69,
  internal: 70,
  cannotWrite: 74,
  tryAgain: 75,
  notPermitted: 77,
  configuration: 78,
  timeLimit: 124,
  budget: 125,
  roundLimit: 126,
  interrupted: 130,
  closedPipe: 141,
  terminated: 143,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** A failure that a user can read and a script can tell by its code. Thrown inside the command line only. */
export class Stop extends Error {
  readonly exit: ExitCode;
  /** Short word for the JSON stream's last record. */
  readonly reason: string;

  constructor(exit: ExitCode, reason: string, message: string) {
    super(message);
    this.name = 'Stop';
    this.exit = exit;
    this.reason = reason;
  }
}

/** How a turn ended, for a script: `reason` is one word, `message` a sentence or empty. */
export type Ending = { readonly exit: ExitCode; readonly reason: string; readonly message: string };

export const exitOfFailure: Readonly<Record<FailureKind, ExitCode>> = {
  rateLimited: exitCodes.tryAgain,
  overloaded: exitCodes.tryAgain,
  unreachable: exitCodes.unavailable,
  timeout: exitCodes.unavailable,
  quotaExhausted: exitCodes.unavailable,
  malformed: exitCodes.unavailable,
  contextOverflow: exitCodes.taskFailed,
  refused: exitCodes.taskFailed,
  compaction: exitCodes.taskFailed,
  auth: exitCodes.configuration,
  badRequest: exitCodes.configuration,
  input: exitCodes.badInput,
  tools: exitCodes.internal,
};

const exitOfDimension: Readonly<Record<Dimension, ExitCode>> = {
  usd: exitCodes.budget,
  tokens: exitCodes.budget,
  time: exitCodes.timeLimit,
  rounds: exitCodes.roundLimit,
  truncation: exitCodes.taskFailed,
  repeats: exitCodes.taskFailed,
  errors: exitCodes.taskFailed,
  sameResults: exitCodes.taskFailed,
};

const exitOfCause: Readonly<Record<StopCause, ExitCode>> = {
  user: exitCodes.interrupted,
  veto: exitCodes.taskFailed,
  approval: exitCodes.notPermitted,
  policy: exitCodes.taskFailed,
};

const endingOfReason = (reason: WaitReason): Ending => {
  switch (reason.kind) {
    case 'endOfTurn':
      return {
        exit: reason.cause === 'answer' ? exitCodes.done : exitCodes.taskFailed,
        reason: reason.cause,
        message: '',
      };
    case 'cancelled':
      return {
        exit: exitOfCause[reason.cause],
        reason: reason.cause === 'user' ? 'cancelled' : reason.cause,
        message: '',
      };
    case 'budget':
      return { exit: exitOfDimension[reason.dimension], reason: `${reason.dimension}Limit`, message: '' };
    case 'error':
      return { exit: exitOfFailure[reason.error], reason: reason.error, message: reason.message };
    case 'start':
    case 'compacted':
    case 'resumed':
      return { exit: exitCodes.done, reason: reason.kind, message: '' };
    default:
      return reason satisfies never;
  }
};

/** What a session that came to rest says to a script; a state that still works is an internal fault. */
export const endingOf = (state: State): Ending => {
  if (state.name === 'WaitingForUserInput') return endingOfReason(state.reason);
  if (state.name === 'Ready') return { exit: exitCodes.done, reason: 'start', message: '' };
  if (state.name === 'ShuttingDown') return { exit: exitCodes.terminated, reason: 'terminated', message: '' };
  return { exit: exitCodes.internal, reason: 'internal', message: `the session stopped in ${state.name}` };
};

const exitOfJournal: Readonly<Record<JournalErrorKind, ExitCode>> = {
  locked: exitCodes.tryAgain,
  damaged: exitCodes.badInput,
  newerVersion: exitCodes.badInput,
  notFound: exitCodes.badInput,
  cannotRead: exitCodes.badInput,
  outOfRange: exitCodes.usage,
  otherMachine: exitCodes.usage,
  cannotWrite: exitCodes.cannotWrite,
  exists: exitCodes.internal,
};

/** By name, so that the journal is not loaded to look at an error. */
const isJournalError = (error: unknown): error is JournalError =>
  error instanceof Error && error.name === 'JournalError';

/** What a damaged journal can still be used for. */
const waysOn = ({ kind, place, path }: JournalError): string => {
  if (kind !== 'damaged' || place === null || place.seq === 0) return '';
  const at = `${basename(path, '.jsonl')} --at ${place.seq}`;
  return `\nTo look at what is good: pawl show ${at}\nTo go on from there: pawl fork ${at}`;
};

const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

const exitOfSystem: Readonly<Record<string, ExitCode>> = {
  EPIPE: exitCodes.closedPipe,
  ENOSPC: exitCodes.cannotWrite,
  EROFS: exitCodes.cannotWrite,
  EDQUOT: exitCodes.cannotWrite,
};

/** Whatever was thrown, as an ending. What nobody expected is an internal fault, told with its stack. */
export const endingOfError = (error: unknown): Ending => {
  if (error instanceof Stop) return { exit: error.exit, reason: error.reason, message: error.message };
  if (isJournalError(error))
    return {
      exit: exitOfJournal[error.kind],
      reason: error.kind,
      message: `${error.message}${waysOn(error)}`,
    };
  const code = systemCode(error);
  const exit = exitOfSystem[code];
  const text = error instanceof Error ? error.message : String(error);
  if (exit !== undefined)
    return { exit, reason: exit === exitCodes.closedPipe ? 'closedPipe' : 'cannotWrite', message: text };
  const stack = error instanceof Error ? (error.stack ?? text) : text;
  return {
    exit: exitCodes.internal,
    reason: 'internal',
    message: `an internal fault, please report it: ${stack}`,
  };
};
