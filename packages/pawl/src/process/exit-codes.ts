/**
 * How the program ends, from top to bottom: exit codes and expected failures (`Stop`); the ending
 * of a turn; the ending for a thrown error; signals; and what is sent before the end.
 */

import { basename } from 'node:path';
import type { JournalError, JournalErrorKind } from '@pawl/agent/journal/journal-error';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { FailureKind } from '@pawl/agent/machine/event';
import type { Dimension } from '@pawl/agent/machine/settings';
import type { CancelledCause, In, SessionData, State, WaitReason } from '@pawl/agent/machine/state';
import { reasonText } from '@pawl/agent/session/turn';

/** All exit codes of the program. docs/use/headless.md explains them to users. */
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

/**
 * An expected failure with a message for the user and an exit code. Thrown only in
 * `packages/pawl/src`.
 */
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
export type ExitEnding = {
  readonly exit: ExitCode;
  readonly reason: string;
  readonly message: string;
  /** The part of the message that says what the user can do; absent where nothing helps. */
  readonly advice?: string;
};

export const TERMINATED: ExitEnding = {
  exit: exitCodes.terminated,
  reason: 'terminated',
  message: 'The session was ended by SIGTERM.',
};
export const INTERRUPTED: ExitEnding = {
  exit: exitCodes.interrupted,
  reason: 'cancelled',
  message: 'The turn was cancelled by SIGINT.',
};

export const failureExits: Readonly<Record<FailureKind, ExitCode>> = {
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

/** `truncation`: cut replies. `repeats`, `sameResults`: equal calls or results in a row. */
const limitExits: Readonly<Record<Dimension, ExitCode>> = {
  usd: exitCodes.budget,
  tokens: exitCodes.budget,
  time: exitCodes.timeLimit,
  rounds: exitCodes.roundLimit,
  truncation: exitCodes.taskFailed,
  repeats: exitCodes.taskFailed,
  errors: exitCodes.taskFailed,
  sameResults: exitCodes.taskFailed,
};

/** How to continue after a limit; empty where a higher limit is no help. */
const LIMIT_ADVICE: Readonly<Partial<Record<Dimension, string>>> = {
  usd: 'Continue with a higher one: pawl --continue --max-usd N -p "go on".',
  tokens: 'Continue with a higher one: pawl --continue --max-tokens N -p "go on".',
  time: 'Continue with a higher one: pawl --continue --max-minutes N -p "go on".',
  rounds: 'Continue with a higher one: pawl --continue --max-rounds N -p "go on".',
};

const GO_ON = 'pawl --continue -p "go on"';

/** What helps after a failure; empty where the failure itself says it, or nothing helps. */
const failureAdvice: Readonly<Record<FailureKind, string>> = {
  rateLimited: `Wait, then continue: ${GO_ON}`,
  overloaded: `Wait, then continue: ${GO_ON}`,
  unreachable: `Check the network, then continue: ${GO_ON}`,
  timeout: `Continue: ${GO_ON}`,
  contextOverflow:
    'Take a model with a larger window (--model), or take back what is long (pawl rewind).',
  auth: '',
  badRequest: 'Another model may take it: --model MODEL.',
  quotaExhausted: '',
  refused: 'Say it in other words.',
  malformed: `Try again, or take another model (--model): ${GO_ON}`,
  input: '',
  tools: '',
  compaction: 'Take a model with a larger window (--model).',
};

/** Where the conversation was accepted before, something in it that is new is refused each time. */
const REFUSED_AGAIN =
  'The same is sent each time: pawl rewind takes back what was refused, --model MODEL takes ' +
  'another model, --pictures no leaves pictures out.';

const adviceAfter = (error: FailureKind, session: SessionData): string => {
  const wasAccepted = messagesOf(session.conversation).some(({ role }) => role === 'assistant');
  return error === 'badRequest' && wasAccepted ? REFUSED_AGAIN : failureAdvice[error];
};

const withAdvice = (message: string, advice: string): Pick<ExitEnding, 'message' | 'advice'> =>
  advice === '' ? { message } : { message: `${message.replace(/\.$/, '')}. ${advice}`, advice };

/** By what stopped a turn: the user, a hook (`veto`), a missing approval, or a stopping policy. */
const causeExits: Readonly<Record<CancelledCause, ExitCode>> = {
  user: exitCodes.interrupted,
  veto: exitCodes.taskFailed,
  approval: exitCodes.notPermitted,
  policy: exitCodes.taskFailed,
};

/** The ending of a turn at a limit. */
export const limitEnding = (
  dimension: Dimension,
  message: string = reasonText({ kind: 'budget', dimension }),
): ExitEnding => ({
  exit: limitExits[dimension],
  reason: `${dimension}Limit`,
  ...withAdvice(message, LIMIT_ADVICE[dimension] ?? ''),
});

/** `reasonText` says the reason in a sentence, for people. */
const reasonEnding = (reason: WaitReason, session: SessionData): ExitEnding => {
  if (reason.kind === 'endOfTurn' && reason.cause === 'answer')
    return { exit: exitCodes.done, reason: 'answer', message: '' };
  const message = reasonText(reason);
  switch (reason.kind) {
    case 'endOfTurn':
      return { exit: exitCodes.taskFailed, reason: reason.cause, message };
    case 'cancelled':
      return {
        exit: causeExits[reason.cause],
        reason: reason.cause === 'user' ? 'cancelled' : reason.cause,
        message,
      };
    case 'budget':
      return limitEnding(reason.dimension, message);
    case 'error':
      return {
        exit: failureExits[reason.error],
        reason: reason.error,
        ...withAdvice(message, adviceAfter(reason.error, session)),
      };
    case 'start':
    case 'compacted':
    case 'rewound':
    case 'resumed':
      return { exit: exitCodes.done, reason: reason.kind, message };
    default:
      return reason satisfies never;
  }
};

/**
 * Ending of a resting session. If a limit forced the answer, the answer is printed, but the limit
 * decides the exit code.
 */
const restEnding = ({ reason, session }: In<'WaitingForUserInput'>): ExitEnding => {
  const { finishing } = session.turn; // the limit at which the model was asked to answer, or `no`
  return reason.kind === 'endOfTurn' && reason.cause === 'answer' && finishing !== 'no'
    ? reasonEnding({ kind: 'budget', dimension: finishing }, session)
    : reasonEnding(reason, session);
};

/** Ending of a session that came to rest. A state that is still at work is an internal fault. */
export const turnEnding = (state: State): ExitEnding => {
  if (state.name === 'WaitingForUserInput') return restEnding(state);
  if (state.name === 'Ready') return { exit: exitCodes.done, reason: 'start', message: '' };
  if (state.name === 'ShuttingDown') return TERMINATED;
  return {
    exit: exitCodes.internal,
    reason: 'internal',
    message: `the session stopped in ${state.name}`,
  };
};

const journalExits: Readonly<Record<JournalErrorKind, ExitCode>> = {
  locked: exitCodes.tryAgain,
  damaged: exitCodes.badInput,
  newerVersion: exitCodes.badInput,
  notFound: exitCodes.badInput,
  cannotRead: exitCodes.badInput,
  outOfRange: exitCodes.usage,
  otherMachine: exitCodes.usage,
  cannotWrite: exitCodes.cannotWrite,
  foreignChange: exitCodes.cannotWrite,
  takenOver: exitCodes.cannotWrite,
  exists: exitCodes.badInput,
};

/** Compares the name rather than the class, so that the journal's module need not be loaded. */
const isJournalError = (error: unknown): error is JournalError =>
  error instanceof Error && error.name === 'JournalError';

/** Commands that still work with a damaged journal. */
const repairAdvice = ({ kind, place, path }: JournalError): string => {
  if (kind !== 'damaged' || place === null || place.seq === 0) return '';
  const at = `${basename(path, '.jsonl')} --at ${place.seq}`;
  return `\nTo see the undamaged part: pawl show ${at}\nTo continue from there: pawl fork ${at}`;
};

const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** Whether the folder in which the program was started is gone: `process.cwd()` throws then. */
const isFolderGone = (error: unknown): boolean =>
  error instanceof Error && 'syscall' in error && error.syscall === 'uv_cwd';

const systemExits: Readonly<Record<string, ExitCode>> = {
  EPIPE: exitCodes.closedPipe,
  ENOSPC: exitCodes.cannotWrite,
  EROFS: exitCodes.cannotWrite,
  EDQUOT: exitCodes.cannotWrite,
  EMFILE: exitCodes.configuration,
  ENFILE: exitCodes.configuration,
};

const systemReasons: Readonly<Record<string, string>> = {
  EPIPE: 'closedPipe',
  EMFILE: 'openFiles',
  ENFILE: 'openFiles',
};

/** What the user can do about a system error. */
const systemAdvice: Readonly<Record<string, string>> = {
  EMFILE: '. Let this shell open more files (ulimit -n 1024), then start again.',
  ENFILE: '. The whole machine has too many files open: end other programs, then start again.',
};

/**
 * The ending for a thrown error. Unexpected errors are internal faults, reported with their stack.
 */
export const errorEnding = (error: unknown): ExitEnding => {
  if (error instanceof Stop)
    return { exit: error.exit, reason: error.reason, message: error.message };
  if (isJournalError(error))
    return {
      exit: journalExits[error.kind],
      reason: error.kind,
      message: `${error.message}${repairAdvice(error)}`,
    };
  if (isFolderGone(error))
    return {
      exit: exitCodes.badInput,
      reason: 'badInput',
      message:
        'The current folder was removed or replaced. Go to another one (cd), then start again.',
    };
  const code = systemCode(error);
  const exit = systemExits[code];
  const text = error instanceof Error ? error.message : String(error);
  if (exit !== undefined)
    return {
      exit,
      reason: systemReasons[code] ?? 'cannotWrite',
      message: `${text}${systemAdvice[code] ?? ''}`,
    };
  const stack = error instanceof Error ? (error.stack ?? text) : text;
  return {
    exit: exitCodes.internal,
    reason: 'internal',
    message: `an internal fault, please report it: ${stack}`,
  };
};

/** Two interrupts within this time end the program at once. */
const TWICE_MS = 2_000;

type SignalHandlers = {
  /** The first SIGINT. */
  interrupt(): void;
  /** A second SIGINT within two seconds. */
  interruptAgain(): void;
  /** SIGTERM, SIGQUIT, or SIGHUP (the terminal was closed). */
  terminate(): void;
};

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

const exitAtOnce = (signal: NodeJS.Signals): void =>
  process.exit(signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated);

/**
 * Signals end the program at once until `listenToSignals` takes over, before a turn can run. A
 * command that only changes a session, such as `pawl rewind`, ends as by a kill.
 */
export const exitOnSignals = (): void => {
  for (const signal of SIGNALS) process.on(signal, exitAtOnce);
  // Without a listener Node opens a debugger at this signal, through which other local users could
  // read keys.
  process.on('SIGUSR1', () => undefined);
};

/** Calls the handlers on signals until the returned function is called. */
export const listenToSignals = (handlers: SignalHandlers): (() => void) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  const listen = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT') {
      handlers.terminate();
      return;
    }
    const again = performance.now() - lastAt < TWICE_MS;
    lastAt = performance.now();
    if (again) handlers.interruptAgain();
    else handlers.interrupt();
  };
  for (const signal of SIGNALS) process.off(signal, exitAtOnce).on(signal, listen);
  return () => {
    for (const signal of SIGNALS) process.off(signal, listen).on(signal, exitAtOnce);
  };
};

// What is sent before the end: spans of telemetry. This file is loaded at each start, so it does
// not load their exporter.

/** An exit waits no longer than this for a collector, however many sessions it had. */
export const FLUSH_MS = 2_000;

const flushes = new Set<() => Promise<void>>();

/** Calls `flush` before the program ends. */
export const flushAtEnd = (flush: () => Promise<void>): void => void flushes.add(flush);

/** Sends what is left, within the deadline; what is not sent by then is dropped. Never rejects. */
export const flushSpans = async (): Promise<void> => {
  if (flushes.size === 0) return;
  const all = Promise.allSettled([...flushes].map((flush) => flush()));
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS);
  });
  await Promise.race([all, deadline]);
  clearTimeout(timer);
};
