import type { Session } from '@pawl/agent/api/create-agent';
import { messagesOf } from '@pawl/agent/machine/conversation';
import { costOf } from '@pawl/agent/machine/known-cost';
import type { State } from '@pawl/agent/machine/state';
import type { Input, Stepped } from '@pawl/agent/ports/session-input-output';
import { formatCost, formatTokens, harmless, lookOf, warningText } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeResult } from '@pawl/terminal/write';
import {
  type ExitEnding,
  endingOf,
  endingOfError,
  exitCodes,
  INTERRUPTED,
  TERMINATED,
} from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import { createEventBuffer, type EventBuffer } from '../interactive/event-buffer.js';
import { attachPictures, picturesNamed } from '../interactive/input/mentioned-pictures.js';
import { createStepPrinter, withDetail } from '../interactive/progress-lines.js';
import { type Opened, openFromFlags } from '../sessions/open-session.js';
import { tornText } from '../sessions/show/torn-journal-text.js';
import { listenToSignals } from '../signals.js';
import { type Prompt, refuseEmpty } from './headless-prompt.js';
import type { JsonRecord } from './record-schema.js';
import { recordsOf, resultRecord } from './records.js';
import { createUnapproved } from './unapproved-calls.js';

/** After a second Ctrl-C the session has this long to kill its processes. */
const HARD_END_MS = 2_000;

/** Output of a turn: JSON lines on stdout, or short lines on stderr and the result on stdout. */
type Outlet = {
  begin(opened: Opened): void;
  see(stepped: Stepped): void;
  end(ending: ExitEnding, text: string, ended: { sessionId: string; state: State } | null): void;
};

const writeRecord = (record: JsonRecord): void => writeJson(record);

/** The reason of an ending with `notPermitted`, as for a turn that stopped at the call. */
const UNAPPROVED = 'approval';

/** A line on stderr. */
const say = (text: Safe): void => writeError(safe`${text}\n`);

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
      tornTail: session.tornTail,
    }),
  see(stepped) {
    for (const record of recordsOf(stepped)) writeRecord(record);
  },
  end: (ending, text, ended) => writeRecord(resultRecord(ending, text, ended)),
};

/** Text output. Warnings and errors are always printed, other lines only in a terminal or with --verbose. */
const textOutlet = (workspace: string, verbose: boolean): Outlet => {
  const look = lookOf(process.stderr, process.env);
  const story = createStepPrinter(look, workspace);
  const watched = process.stderr.isTTY || verbose;
  return {
    begin({ session: { tornTail } }) {
      if (tornTail !== null) say(tornText(tornTail));
    },
    see(stepped) {
      for (const piece of story(stepped)) {
        if (piece.kind !== 'lines') continue;
        if (watched || piece.urgent) say(verbose ? withDetail(piece) : piece.text);
      }
    },
    end(ending, text, ended) {
      if (ending.exit === exitCodes.notPermitted) say(harmless(`pawl: ${ending.message}`));
      if (text !== '') writeResult(text.endsWith('\n') ? text : `${text}\n`);
      if (!watched || ended === null) return;
      const { usage } = ended.state.session;
      const tokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
      say(
        safe`session ${makeSafe(ended.sessionId)} · ${formatTokens(tokens)} tokens · ${formatCost(costOf(ended.state))}`,
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

const pause = (delayMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, delayMs).unref();
  });

type Turn = { readonly ending: ExitEnding; readonly state: State };

type UserInput = Extract<Input, { readonly type: 'UserInput' }>;

/** The prompt with the skill or command and the pictures that it names. Warns of what can't be attached. */
const inputFrom = async (
  { session, settings, prompts }: Opened,
  { text, typed }: Prompt,
): Promise<UserInput> => {
  const expanded = await prompts.expand(typed);
  if (expanded.fault !== null) say(warningText(expanded.fault));
  // Piped text follows the typed one.
  const whole = expanded.text === typed ? text : `${expanded.text}${text.slice(typed.length)}`;
  const input = { type: 'UserInput', text: whole, mode: 'steer' } as const;
  const names = picturesNamed(typed);
  if (names.length === 0) return input;
  const { images, faults } = await attachPictures(names, settings.workspace, session);
  for (const fault of faults) say(warningText(fault));
  return images.length === 0 ? input : { ...input, images };
};

/** Sends the prompt and waits until the session rests. Signals and a closed pipe close the session early, in order. */
const runTurn = async (opened: Opened, prompt: Prompt, outlet: Outlet, steps: Steps): Promise<Turn> => {
  const { session, settings } = opened;
  const unapproved = createUnapproved(settings.workspace);
  let last: State | null = null;
  let early: ExitEnding | null = null;
  const endWith = (ending: ExitEnding): void => {
    early ??= ending;
    session.close().catch(() => undefined); // the wait below reports the same failure
  };
  const stopListening = listenToSignals({
    interrupt: () => void session.cancel().catch(() => undefined), // rejects after the end: there is nothing to cancel
    interruptAgain() {
      endWith(INTERRUPTED);
      void pause(HARD_END_MS).then(() => process.exit(exitCodes.interrupted));
    },
    terminate: () => endWith(TERMINATED),
  });
  const unwatch = steps.subscribe((stepped) => {
    last = stepped.state;
    unapproved.see(stepped);
    if (early !== null && early.exit === exitCodes.closedPipe) return;
    try {
      outlet.see(stepped);
    } catch (fault) {
      endWith(endingOfError(fault));
    }
  });
  try {
    await session.send(await inputFrom(opened, prompt));
    await session.idle();
    if (early !== null) await session.ended;
  } catch (fault) {
    if (early === null) throw fault;
  } finally {
    unwatch();
    stopListening();
  }
  const state = last ?? (await session.state());
  const ending = early ?? endingOf(state);
  const goesOn = ending.exit === exitCodes.done;
  if (ending.exit !== exitCodes.notPermitted && !(goesOn && unapproved.any())) return { state, ending };
  const message = unapproved.advice(session.id, goesOn);
  return { state, ending: { exit: exitCodes.notPermitted, reason: UNAPPROVED, message } };
};

/** Closes the session; returns the turn's ending. If closing fails, a success becomes that failure: the end isn't on disk. */
const closeAfter = async (session: Session, { ending, state }: Turn): Promise<ExitEnding> => {
  if (state.name === 'ShuttingDown') return ending;
  try {
    await session.close();
    return ending;
  } catch (fault) {
    const unclosed = endingOfError(fault);
    say(harmless(`pawl: ${unclosed.message}`));
    return ending.exit === exitCodes.done ? unclosed : ending;
  }
};

type Steps = EventBuffer<Stepped>;

/** An open session, and the ending that a signal asked for while it was opened. */
type Begun = { readonly opened: Opened; readonly early: ExitEnding | null };

const runOpened = async (
  { opened, early }: Begun,
  prompt: Prompt,
  outlet: Outlet,
  steps: Steps,
): Promise<ExitEnding> => {
  const { session } = opened;
  try {
    outlet.begin(opened);
    const turn =
      early === null
        ? await runTurn(opened, prompt, outlet, steps)
        : { ending: early, state: await session.state() };
    const ending = await closeAfter(session, turn);
    const ended = { sessionId: session.id, state: turn.state };
    if (ending.exit !== exitCodes.closedPipe) outlet.end(ending, resultText(turn.state), ended);
    return ending;
  } catch (fault) {
    // The fault that ended the turn is the one to report; a session that it stopped can't be closed again.
    await session.close().catch(() => undefined);
    throw fault;
  }
};

/** Opens the session. A signal that comes meanwhile ends it once it is open, before anything is sent. */
const begin = async (flags: RunFlags, steps: Steps): Promise<Begun> => {
  const endings: ExitEnding[] = [];
  const stopListening = listenToSignals({
    interrupt: () => void endings.push(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => void endings.push(TERMINATED),
  });
  try {
    const warn = (text: string): void => say(warningText(text));
    const opened = await openFromFlags(flags, 'headless', { watcher: steps.push, warn });
    return { opened, early: endings[0] ?? null };
  } finally {
    stopListening();
  }
};

/** `pawl -p`: runs one turn without a terminal. Returns the exit code. */
export const runHeadless = async (flags: RunFlags, prompt: Prompt): Promise<number> => {
  try {
    refuseEmpty(prompt);
    const steps = createEventBuffer<Stepped>();
    const begun = await begin(flags, steps);
    const { workspace } = begun.opened.settings;
    const outlet = flags.json ? jsonOutlet : textOutlet(workspace, flags.verbose ?? false);
    const ending = await runOpened(begun, prompt, outlet, steps);
    return ending.exit;
  } catch (fault) {
    const ending = endingOfError(fault);
    if (flags.json && ending.exit !== exitCodes.closedPipe) jsonOutlet.end(ending, '', null);
    throw fault;
  }
};
