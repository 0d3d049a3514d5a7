/**
 * `pawl -p`: one turn without a terminal.
 *
 * From top to bottom: the two forms of output; the turn, whose answer must perhaps satisfy a schema
 * (`--json-schema`); `runHeadless`; the prompt, from flags and stdin; and the calls that were
 * denied because nobody could be asked.
 */

import { fstatSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as pause } from 'node:timers/promises';
import type { Action, WarningKind } from '@pawl/agent/machine/action';
import { messagesOf } from '@pawl/agent/machine/conversation';
import { toldUsage } from '@pawl/agent/machine/moves/request';
import { type Limit, type Limits, totalTokens } from '@pawl/agent/machine/settings';
import { knownCostUsd, type SessionData, type State } from '@pawl/agent/machine/state';
import { attempt } from '@pawl/agent/platform/attempt';
import { plural } from '@pawl/agent/platform/text';
import { commandPlace, decide } from '@pawl/agent/policy/decide';
import type { JudgedCall } from '@pawl/agent/policy/judged-call';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Input, Stepped } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import { createWatchBuffer, type WatchBuffer } from '@pawl/agent/session/loop';
import { aboutPresets } from '@pawl/agent/session/session-settings';
import {
  detectLook,
  formatSpent,
  formatTokens,
  harmless,
  oneLine,
  warningText,
} from '@pawl/terminal/paint';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import {
  createJudgedCalls,
  createStepPrinter,
  type ToolResult,
  withDetail,
} from '@pawl/terminal/step-lines';
import { writeError, writeJson, writeResult } from '@pawl/terminal/write';
import {
  type ExitEnding,
  errorEnding,
  exitCodes,
  INTERRUPTED,
  limitEnding,
  listenToSignals,
  TERMINATED,
  turnEnding,
} from '../process/exit-codes.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { tornText } from '../sessions/session-text.js';
import { attachPictures, picturesNamed } from '../sessions/typed-input.js';
import { type FailOn, type RunFlags, readFailOn, usageStop } from '../settings/flags.js';
import type { AnswerSchema } from './answer-schema.js';
import type { JsonRecord } from './record-schema.js';
import { resultRecord, stepRecords } from './records.js';

/** After a second Ctrl-C the session has this long to kill its processes. */
const HARD_END_MS = 2_000;

/** Output of a turn: JSON lines on stdout, or short lines on stderr and the result on stdout. */
type Outlet = {
  begin(opened: Opened): void;
  /** Prints a step. */
  see(stepped: Stepped): void;
  end(turn: EndedTurn, sessionId: string | null): void;
};

/** The end of a turn. `state` is null if no session was opened. */
export type EndedTurn = {
  readonly ending: ExitEnding;
  readonly state: State | null;
  /** Calls that were denied in this run. */
  readonly denied: number;
  /** A call of this run may have cost more than the sum says. */
  /** The JSON that `--json-schema` asks for, once it fits; null otherwise, and without the flag. */
  readonly json: { readonly text: string; readonly value: unknown } | null;
};

const writeRecord = (record: JsonRecord): void => writeJson(record);

/** The reason of an ending with `notPermitted`, as for a turn that stopped at the call. */
const NOT_APPROVED = 'approval';
/** The reason of an ending by `--fail-on denied`. */
const DENIED = 'denied';
/** The reason of an ending whose answer does not satisfy `--json-schema`. */
const SCHEMA_UNSATISFIED = 'jsonSchema';
/** Reasons that no step of the session has printed. */
const NOT_IN_STEPS: readonly string[] = [NOT_APPROVED, DENIED, SCHEMA_UNSATISFIED];

/** A line on stderr. */
const printLine = (text: Safe): void => writeError(safe`${text}\n`);

const jsonOutlet: Outlet = {
  begin: ({ session, settings, journal, resumed }) =>
    writeRecord({
      type: 'session',
      schema: 1,
      sessionId: session.id,
      workspace: settings.workspace,
      model: settings.model,
      journal,
      resumed: resumed !== null,
      sandbox: settings.sandbox ?? 'off',
      ...(settings.preset === undefined ? {} : { preset: settings.preset }),
      tornTail: session.tornTail,
    }),
  see(stepped) {
    for (const record of stepRecords(stepped)) writeRecord(record);
  },
  end({ ending, state, denied, json }, sessionId) {
    if (ending.reason === SCHEMA_UNSATISFIED) printLine(harmless(`pawl: ${ending.message}`));
    writeRecord(
      resultRecord(
        ending,
        state === null ? '' : resultText(state),
        state === null || sessionId === null ? null : { sessionId, state },
        { denied, ...(json === null ? {} : { structuredOutput: json.value }) },
      ),
    );
  },
};

/**
 * Text output. Warnings and errors are always printed, other lines only in a terminal or with
 * --verbose.
 */
const textOutlet = (workspace: string, { verbose, plain, jsonSchema }: RunFlags): Outlet => {
  const look = detectLook(
    process.stderr,
    plain ? { ...process.env, PAWL_PLAIN: '1' } : process.env,
  );
  const printStep = createStepPrinter(look, workspace);
  const watched = process.stderr.isTTY || verbose === true;
  return {
    begin({ session: { tornTail }, settings: { preset } }) {
      if (preset !== undefined && (watched || preset === 'full'))
        printLine(harmless(`preset ${preset}: ${aboutPresets[preset]}`));
      if (tornTail !== null) printLine(tornText(tornTail));
    },
    see(stepped) {
      for (const piece of printStep(stepped)) {
        // Streamed text is not printed: the last reply is the result.
        if (piece.kind !== 'lines') continue;
        if (watched || piece.urgent) printLine(verbose ? withDetail(piece) : piece.text);
      }
    },
    end({ ending, state, denied, json }, sessionId) {
      if (NOT_IN_STEPS.includes(ending.reason)) printLine(harmless(`pawl: ${ending.message}`));
      else if (ending.advice !== undefined) printLine(harmless(`pawl: ${ending.advice}`));
      const answer = state === null || jsonSchema !== undefined ? '' : resultText(state);
      const text = json?.text ?? answer;
      if (text !== '') writeResult(text.endsWith('\n') ? text : `${text}\n`);
      if (!watched || state === null || sessionId === null) return;
      const usage = toldUsage(state);
      const cost = formatSpent(knownCostUsd(usage), usage);
      const refused = denied === 0 ? '' : ` · ${plural(denied, 'call')} denied`;
      printLine(
        safe`session ${makeSafe(sessionId)} · ${formatTokens(totalTokens(usage))} tokens · ${cost}${makeSafe(refused)}`,
      );
    },
  };
};

/** Text of the last reply if it ended the turn; otherwise empty. */
const resultText = (state: State): string => {
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'endOfTurn') return '';
  const last = messagesOf(state.session.conversation).at(-1);
  if (last?.role !== 'assistant') return '';
  return last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
};

type Turn = EndedTurn & { readonly state: State };

/** What the flags ask of a turn beyond its prompt. */
type TurnDemands = {
  /** `--json-schema`: what the answer must satisfy. */
  readonly schema: AnswerSchema | null;
  /** `--fail-on`: what makes the turn a failure, such as a denied call. */
  readonly failOn: readonly FailOn[];
};

type UserInput = Extract<Input, { readonly type: 'UserInput' }>;

/**
 * The prompt with the skill or command and the pictures that it names. Warns of what can't be
 * attached.
 */
export const inputFrom = async (
  { session, settings, prompts }: Opened,
  { text, typed }: Prompt,
  schema: AnswerSchema | null,
): Promise<UserInput> => {
  const expanded = await prompts.expand(typed);
  if (expanded.fault !== null) printLine(warningText(expanded.fault));
  // Piped text follows the typed one.
  const whole = expanded.text === typed ? text : `${expanded.text}${text.slice(typed.length)}`;
  const input = {
    type: 'UserInput',
    text: schema === null ? whole : schema.addTo(whole),
    mode: 'steer',
  } as const;
  const names = picturesNamed(typed);
  if (names.length === 0) return input;
  const { images, faults } = await attachPictures(names, settings.workspace, session);
  for (const fault of faults) printLine(warningText(fault));
  return images.length === 0 ? input : { ...input, images };
};

/** A run as signals find it, from before its session is open until its result is printed. */
type Run = {
  /** null until it is open. */
  session: Session | null;
  /** Whether SIGINT cancels the turn. Before the prompt is sent, it ends the run. */
  isPromptSent: boolean;
  /** The ending that a signal or a closed pipe asked for; the first one counts. */
  early: ExitEnding | null;
  /** Called before the session is closed early. */
  beforeClose: (() => Promise<void>) | null;
};

/** Closes the session early, in order; one that is not open yet is closed once it is. */
const endEarly = (run: Run, ending: ExitEnding): void => {
  run.early ??= ending;
  const { session, beforeClose } = run;
  if (session === null) return;
  // The wait for the session reports the same failure.
  void attempt(async () => beforeClose?.()).then(() => attempt(session.close));
};

/** Ends the run at signals, until the returned function is called. */
const listenForRun = (run: Run): (() => void) =>
  listenToSignals({
    interrupt() {
      // rejects after the end: there is nothing to cancel
      if (run.isPromptSent) void run.session?.cancel().catch(() => undefined);
      else endEarly(run, INTERRUPTED);
    },
    interruptAgain() {
      if (run.session === null) process.exit(exitCodes.interrupted);
      endEarly(run, INTERRUPTED);
      void pause(HARD_END_MS, undefined, { ref: false }).then(() =>
        process.exit(exitCodes.interrupted),
      );
    },
    terminate: () => endEarly(run, TERMINATED),
  });

type TurnLimits = Pick<Limits, 'rounds' | 'timeMs'>;

const remaining = (limit: Limit, used: number): Limit =>
  limit === 'unlimited' ? limit : Math.ceil(limit - used);

/** What the turn's answer has left of the limits that count per turn. */
const remainingLimits = ({ session }: State, elapsedMs: number): TurnLimits => {
  const { rounds, timeMs } = session.settings.limits;
  return {
    // A round counts in `turn` once its tools have run. That of the answer has none, hence 1 more.
    rounds: remaining(rounds, session.turn.rounds + 1),
    timeMs: remaining(timeMs, elapsedMs),
  };
};

/** The limit that is used up; null if none is. */
const usedUp = ({ rounds, timeMs }: TurnLimits): 'rounds' | 'time' | null => {
  if (rounds !== 'unlimited' && rounds <= 0) return 'rounds';
  return timeMs !== 'unlimited' && timeMs <= 0 ? 'time' : null;
};

/**
 * Sends a text within other limits, and waits until the session rests. The session has its own
 * limits again then, and before it is closed early.
 */
const sendWithin = async (
  run: Run,
  session: Session,
  limits: TurnLimits,
  text: string,
): Promise<State> => {
  const before = (await session.state()).session.settings.limits;
  const change = async ({ rounds, timeMs }: TurnLimits): Promise<void> => {
    const now = (await session.state()).session.settings.limits;
    if (rounds !== now.rounds || timeMs !== now.timeMs)
      await session.send({
        type: 'SettingsChanged',
        patch: { limits: { ...now, rounds, timeMs } },
      });
  };
  run.beforeClose = () => change(before);
  await change(limits);
  await session.send({ type: 'UserInput', text, mode: 'steer' });
  const state = await session.idle();
  if (state.name !== 'ShuttingDown') await change(before);
  return state;
};

type Answered = Pick<Turn, 'ending' | 'state' | 'json'>;

/**
 * The end of a turn whose answer must satisfy the schema. `fault`: why it does not; empty if it
 * does, and if the turn failed, so that there is no answer to ask for again.
 */
const judgeAnswer = (state: State, schema: AnswerSchema): Answered & { readonly fault: string } => {
  const ending = turnEnding(state);
  const checked = schema.check(resultText(state));
  return checked.kind === 'fits'
    ? { state, ending, json: checked, fault: '' }
    : { state, ending, json: null, fault: ending.exit === exitCodes.done ? checked.why : '' };
};

/**
 * Waits until the session rests. An answer that does not satisfy the schema is asked for once more,
 * within what is left of the turn's limits.
 */
const awaitAnswer = async (
  run: Run,
  session: Session,
  schema: AnswerSchema | null,
): Promise<Answered> => {
  const startedMs = performance.now();
  const state = await session.idle();
  if (schema === null) return { state, ending: turnEnding(state), json: null };
  const first = judgeAnswer(state, schema);
  if (first.fault === '') return first;
  const unfit = `the answer does not satisfy ${schema.file}`;
  const limits = remainingLimits(state, performance.now() - startedMs);
  const dimension = usedUp(limits);
  if (dimension !== null) {
    const ending = limitEnding(dimension);
    printLine(warningText(`${unfit}: ${first.fault}`));
    printLine(harmless(`pawl: ${ending.message}`));
    return { ...first, ending };
  }
  printLine(warningText(`${unfit}, so it is asked for again: ${first.fault}`));
  const second = judgeAnswer(
    await sendWithin(run, session, limits, schema.askAgain(first.fault)),
    schema,
  );
  if (second.fault === '') return second;
  const message =
    `The answer does not satisfy ${schema.file}, also after a second question: ${second.fault}\n` +
    `The answer is in the session: pawl show ${session.id}`;
  return { ...second, ending: { exit: exitCodes.taskFailed, reason: SCHEMA_UNSATISFIED, message } };
};

type Warning = Extract<Action, { readonly type: 'DisplayWarning' }>;

/** Warnings that say why a turn was no success, by the reason that its state gives. */
const warnedReasons: Readonly<Partial<Record<WarningKind, string>>> = {
  callAsText: 'answer',
  objection: 'answer',
  stopped: 'refused',
};

/** The ending of a turn with what only its last warning says. */
const endingWithWarning = (
  ending: ExitEnding,
  warning: Warning,
  json: EndedTurn['json'],
): ExitEnding =>
  warnedReasons[warning.kind] !== ending.reason ||
  // JSON that was asked for may look like a call.
  (warning.kind === 'callAsText' && json !== null)
    ? ending
    : { exit: exitCodes.taskFailed, reason: warning.kind, message: warning.text };

/**
 * The ending of a turn, in which calls may have been denied. Another failure of the turn comes
 * first.
 */
const endingWithDenials = (
  ending: ExitEnding,
  denials: Denials,
  sessionId: string,
  failOn: readonly FailOn[],
): ExitEnding => {
  const exit = exitCodes.notPermitted;
  const goesOn = ending.exit === exitCodes.done; // the model went on and answered
  if (ending.exit === exit || (goesOn && denials.lacksPermission()))
    return { exit, reason: NOT_APPROVED, message: denials.advice(sessionId, goesOn) };
  return goesOn && failOn.includes('denied') && denials.count() > 0
    ? { exit, reason: DENIED, message: denials.summary() }
    : ending;
};

/**
 * Sends the prompt and waits until the session rests. Signals and a closed pipe close the session
 * early, in order.
 */
const runTurn = async (
  run: Run,
  opened: Opened,
  prompt: Prompt,
  { schema, failOn }: TurnDemands,
  outlet: Outlet,
  steps: Steps,
): Promise<Turn> => {
  const { session, settings } = opened;
  const denials = createDenials(settings.workspace);
  let last: State | null = null;
  let warning: Warning | null = null;
  const unwatch = steps.subscribe((stepped) => {
    last = stepped.state;
    denials.see(stepped);
    for (const action of stepped.actions) {
      if (action.type === 'SendLlmRequest') warning = null;
      if (action.type === 'DisplayWarning' && action.kind in warnedReasons) warning = action;
    }
    if (run.early?.exit === exitCodes.closedPipe) return;
    try {
      outlet.see(stepped);
    } catch (fault) {
      endEarly(run, errorEnding(fault));
    }
  });
  let settled: Answered | null = null;
  try {
    const input = await inputFrom(opened, prompt, schema);
    if (run.early === null) {
      run.isPromptSent = true;
      await session.send(input);
      settled = await awaitAnswer(run, session, schema);
    }
    if (run.early !== null) await session.ended; // its last steps are printed
  } catch (fault) {
    if (run.early === null) throw fault;
  } finally {
    unwatch();
  }
  const state = last ?? (await session.state());
  const { json = null } = settled ?? {};
  const rested = settled?.ending ?? turnEnding(state);
  const ending =
    run.early ?? (warning === null ? rested : endingWithWarning(rested, warning, json));
  const denied = denials.count();
  return {
    state,
    denied,
    json,
    ending: endingWithDenials(ending, denials, session.id, failOn),
  };
};

/**
 * Closes the session; returns the turn's ending. If closing fails, a success becomes that failure:
 * the end isn't on disk.
 */
const closeAfter = async (session: Session, { ending, state }: Turn): Promise<ExitEnding> => {
  if (state.name === 'ShuttingDown') return ending;
  try {
    await session.close();
    return ending;
  } catch (fault) {
    const unclosed = errorEnding(fault);
    printLine(harmless(`pawl: ${unclosed.message}`));
    return ending.exit === exitCodes.done ? unclosed : ending;
  }
};

/** Steps wait in it until somebody subscribes. */
type Steps = WatchBuffer<Stepped>;

const runOpened = async (
  run: Run,
  opened: Opened,
  prompt: Prompt,
  demands: TurnDemands,
  outlet: Outlet,
  steps: Steps,
): Promise<ExitEnding> => {
  const { session } = opened;
  try {
    outlet.begin(opened);
    const turn =
      run.early === null
        ? await runTurn(run, opened, prompt, demands, outlet, steps)
        : { ending: run.early, state: await session.state(), denied: 0, json: null };
    const ending = await closeAfter(session, turn);
    if (ending.exit !== exitCodes.closedPipe) outlet.end({ ...turn, ending }, session.id);
    return ending;
  } catch (fault) {
    // The fault that ended the turn is the one to report; a session that it stopped can't be closed
    // again.
    await session.close().catch(() => undefined);
    throw fault;
  }
};

/**
 * Opens a session, and runs and prints a turn. A signal that comes while it is opened ends it once
 * it is open, before anything is sent. `configured`: see `openFromFlags`.
 */
export const runPrinted = async (
  flags: RunFlags,
  prompt: Prompt,
  demands: TurnDemands,
  createOutlet: (opened: Opened) => Outlet,
  more: { readonly configured?: false } = {},
): Promise<ExitEnding> => {
  const run: Run = { session: null, isPromptSent: false, early: null, beforeClose: null };
  const stopListening = listenForRun(run);
  try {
    const steps = createWatchBuffer<Stepped>();
    const warn = (text: string): void => printLine(warningText(text));
    const opened = await openFromFlags(flags, 'headless', { watcher: steps.push, warn, ...more });
    run.session = opened.session;
    return await runOpened(run, opened, prompt, demands, createOutlet(opened), steps);
  } finally {
    stopListening();
  }
};

/** Reads the flags that ask something of the turn. Throws before anything is opened. */
export const readDemands = async (flags: RunFlags): Promise<TurnDemands> => ({
  failOn: readFailOn(flags),
  schema:
    flags.jsonSchema === undefined
      ? null
      : (await import('./answer-schema.js')).loadAnswerSchema(flags.jsonSchema),
});

/**
 * `pawl -p`: runs one turn without a terminal. Returns the exit code. `read`: the demands, if they
 * are read already; a schema from a pipe is read only once.
 */
export const runHeadless = async (
  flags: RunFlags,
  prompt: Prompt,
  read?: TurnDemands,
): Promise<number> => {
  const seen: { session: Session | null; denied: number } = { session: null, denied: 0 };
  try {
    refuseEmpty(prompt);
    const demands = read ?? (await readDemands(flags));
    const ending = await runPrinted(flags, prompt, demands, ({ session, settings }) => {
      seen.session = session;
      if (!flags.json) return textOutlet(settings.workspace, flags);
      const see = (stepped: Stepped): void => {
        seen.denied += stepped.actions.filter(isDenial).length;
        jsonOutlet.see(stepped);
      };
      return { ...jsonOutlet, see };
    });
    return ending.exit;
  } catch (fault) {
    const ending = errorEnding(fault);
    if (flags.json && ending.exit !== exitCodes.closedPipe) {
      const { session, denied } = seen;
      const state = session === null ? null : await session.state();
      jsonOutlet.end({ ending, state, denied, json: null }, session?.id ?? null);
    }
    throw fault;
  }
};

/*
 * The prompt of a turn without a terminal (`readPrompt`).
 *
 * 1. `-`, or no prompt at all, waits for stdin to its end.
 * 2. With a prompt, stdin is added to it if it is a file, or a pipe that delivers or ends within a
 *    second. A silent pipe is ignored with a warning: scripts, CI and cron hand down pipes that
 *    never end. One that delivers and does not end is waited for, which is told.
 * 3. Piped text beside a prompt is its subject, not the prompt: paths of pictures in it are not
 *    attached.
 */

export type Prompt = {
  readonly text: string;
  /** The part of `text` that the user wrote. Only pictures named here are attached. */
  readonly typed: string;
};

export const refuseEmpty = ({ text }: Prompt): void => {
  if (text.trim() === '') throw usageStop('The prompt is empty.');
};

/** A pipe beside a prompt is ignored if nothing comes within this time. */
const SILENCE_MS = 1_000;

/** After its first data, the user is told that such a pipe is still waited for. */
const REMIND_MS = 3_000;

/** No model reads more at once. Larger texts belong into a file that tools can search. */
const CHARACTERS_MAX = 20_000_000;

/** All of stdin as UTF-8 text; null if nothing came within `silenceMs`. */
const readStdin = (silenceMs: number | null): Promise<string | null> => {
  const decoder = new StringDecoder('utf8');
  const input = process.stdin;
  let text = '';
  return new Promise((resolve, reject) => {
    const finish = (read: string | null): void => {
      if (timer !== null) clearTimeout(timer);
      input.off('data', take).off('end', end).off('error', reject);
      resolve(read);
    };
    const giveUp = (): void => {
      input.pause();
      finish(null);
    };
    const refuse = (): void => {
      input.off('data', take).off('end', end).off('error', reject).destroy();
      const most = `${CHARACTERS_MAX / 1_000_000} million characters`;
      reject(
        usageStop(
          `The piped input is too large for a prompt: at most ${most}. Write it to a file ` +
            'and name the file in the prompt.',
        ),
      );
    };
    const remind = (): void =>
      writeError(
        safe`pawl: still reading stdin, which does not end. To leave it out: < /dev/null\n`,
      );
    let timer = silenceMs === null ? null : setTimeout(giveUp, silenceMs);
    const take = (piece: Buffer): void => {
      if (timer !== null && text === '') {
        clearTimeout(timer);
        timer = setTimeout(remind, REMIND_MS).unref();
      }
      text += decoder.write(piece);
      if (text.length > CHARACTERS_MAX) refuse();
    };
    const end = (): void => finish(text + decoder.end());
    input.on('data', take).on('end', end).on('error', reject);
  });
};

/**
 * Whether stdin is a pipe, a socket or a file that is not empty, rather than a terminal, /dev/null
 * or closed.
 */
const isPipedIn = (): boolean => {
  try {
    const input = fstatSync(0);
    return input.isFIFO() || input.isSocket() || (input.isFile() && input.size > 0);
  } catch {
    return false; // stdin is closed
  }
};

const joinParts = (parts: readonly string[]): string =>
  parts.filter((part) => part.trim() !== '').join('\n\n');

/**
 * Reads the prompt. `-` as the first or last word stands for stdin, which follows the other words
 * after a blank line.
 */
export const readPrompt = async (words: readonly string[]): Promise<Prompt> => {
  const waits = words.length === 0 || words[0] === '-' || words.at(-1) === '-';
  const typed = words
    .filter((word, index) => !(word === '-' && (index === 0 || index === words.length - 1)))
    .join(' ');
  if (waits) {
    if (process.stdin.isTTY)
      throw usageStop(
        'There is no prompt. Write it after -p, or pipe it in: echo "prompt" | pawl -p -',
      );
    const text = joinParts([typed, (await readStdin(null)) ?? '']);
    return { text, typed: typed.trim() === '' ? text : typed };
  }
  // Piped text doesn't make up for an empty prompt: that is an error of the caller.
  if (typed.trim() === '' || !isPipedIn()) return { text: typed, typed: typed };
  const piped = await readStdin(SILENCE_MS);
  if (piped === null)
    writeError(
      safe`pawl: stdin is a pipe without data, so it is ignored. To wait for it: pawl -p "prompt" - ; to silence this: < /dev/null\n`,
    );
  return { text: joinParts([typed, piped ?? '']), typed: typed };
};

/**
 * Collects the calls of a run that were denied. Those of the turn that were denied because nobody
 * could approve them, or because no sandbox works here, end it with exit code 77, also where the
 * model went on and answered.
 *
 * 1. `--on-ask deny` and the preset `ci` accept the denial of what would be asked. They don't
 *    accept a missing sandbox.
 * 2. A denial by a rule, a hook or the preset's own limits does not count: the user decided it.
 */
type Denials = {
  /** Collects the denied calls of a step. */
  see(stepped: Stepped): void;
  /** How many calls were denied in this run, for any reason. */
  count(): number;
  /** Message for the user about all of them. */
  summary(): string;
  /** Whether some call of the turn could not be approved, or had no sandbox. */
  lacksPermission(): boolean;
  /**
   * Message for the user: the denied calls, and how to allow them. `goesOn`: the model went on and
   * answered.
   */
  advice(sessionId: string, goesOn: boolean): string;
};

/** `nobody`: there was nobody to approve the call; `sandbox`: no sandbox works here. */
type MissingPermission = 'nobody' | 'sandbox';

const TITLES_MAX = 10;

/**
 * What a denied call lacked; null if it was denied for another reason. Decides about the call again
 * under other settings: what it lacked is what would change the decision.
 */
const missingPermission = (
  { settings, grants }: SessionData,
  call: JudgedCall,
): MissingPermission | null => {
  const decisionWith = (change: Partial<typeof settings>) =>
    decide({ ...settings, ...change }, grants, call).decision;
  if (commandPlace(settings, call) === 'missing') {
    const sandbox = settings.preset === 'plan' ? 'read-only' : 'workspace';
    return decisionWith({ sandbox, onAsk: 'ask' }) === 'deny' ? null : 'sandbox';
  }
  return settings.onAsk !== 'deny' && decisionWith({ onAsk: 'ask' }) === 'ask' ? 'nobody' : null;
};

const listTitles = (titles: readonly string[]): string => {
  const more = titles.length - TITLES_MAX;
  return `${titles.slice(0, TITLES_MAX).join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
};

const isDenial = (action: Action): action is ToolResult =>
  action.type === 'DisplayToolResult' && action.status === 'denied';

const createDenials = (workspace: string): Denials => {
  const calls = createJudgedCalls(workspace);
  const denied: Record<MissingPermission, string[]> = { nobody: [], sandbox: [] };
  const titles: string[] = [];
  let prompted = false;
  // whether the preset `auto` would allow each of the denied calls
  let autoAllows: 'yes' | 'no' = 'yes';
  const nobodyText = (sessionId: string, goesOn: boolean): readonly string[] => {
    const what = denied.nobody.length === 0 ? 'a call' : listTitles(denied.nobody);
    const auto = autoAllows === 'yes' ? '--preset auto allows such calls, ' : '';
    return [
      `There was no user to approve ${what}.`,
      ...(goesOn ? ['The model went on without, and its answer may lack what that was for.'] : []),
      `What you can do: ${auto}--on-ask deny ` +
        `${goesOn ? 'accepts that with exit code 0' : 'lets the model continue without them'},`,
      `or answer in a terminal: pawl --resume ${sessionId}`,
    ];
  };
  const sandboxText = (): readonly string[] => [
    `No sandbox works here, so commands were denied: ${listTitles(denied.sandbox)}.`,
    'What you can do: pawl doctor says why and what helps, --sandbox off runs commands without one.',
  ];
  return {
    see(stepped) {
      const { event, state, actions } = stepped;
      calls.see(stepped); // remembers the calls of a reply by their ids
      // What a resumed turn lacked before the prompt came, the prompt's turn need not lack.
      if (event.type === 'UserInput' && !prompted) {
        for (const list of Object.values(denied)) list.length = 0;
        autoAllows = 'yes';
        prompted = true;
      }
      for (const action of actions) {
        if (!isDenial(action)) continue;
        const title = oneLine(`${action.tool} ${calls.title(action)}`, 80);
        titles.push(title);
        const call = calls.get(action.callId);
        const lack = call === undefined ? null : missingPermission(state.session, call);
        if (call === undefined || lack === null) continue;
        const { settings, grants } = state.session;
        const inAuto = {
          ...settings,
          preset: 'auto',
          rules: presetRules.auto,
          onAsk: 'deny',
        } as const;
        if (decide(inAuto, grants, call).decision !== 'allow') autoAllows = 'no';
        denied[lack].push(title);
      }
    },
    count: () => titles.length,
    summary: () =>
      `${plural(titles.length, 'call')} denied: ${listTitles(titles)}.\n` +
      'The answer may lack what that was for. What you can do: allow it by a rule or another ' +
      '--preset, or leave out --fail-on denied.',
    lacksPermission: () => denied.nobody.length > 0 || denied.sandbox.length > 0,
    advice: (sessionId, goesOn) =>
      [
        ...(denied.sandbox.length === 0 ? [] : sandboxText()),
        ...(denied.nobody.length === 0 && denied.sandbox.length > 0
          ? []
          : nobodyText(sessionId, goesOn)),
      ].join('\n'),
  };
};
