import { messagesOf } from '../agent/conversation.js';
import type { State } from '../agent/state.js';
import type { Session } from '../agent-api.js';
import type { Input, Stepped } from '../needs.js';
import { costOf } from '../terminal/cost.js';
import { formatCost, formatTokens, lookOf, warningText, writeWhole } from '../terminal/print.js';
import { type Ending, endingOf, endingOfError, exitCodes } from './exit-codes.js';
import { type RunFlags, usageStop } from './flags.js';
import { createHeld, type Held } from './held.js';
import { type Opened, openFromFlags } from './open-session.js';
import { attachPictures, picturesNamed } from './pictures.js';
import type { Prompt } from './prompt.js';
import type { JsonRecord } from './record-schema.js';
import { recordsOf, resultRecord } from './records.js';
import { listenToSignals } from './signals.js';
import { createStory, wholeOf } from './story.js';
import { tornText } from './torn-text.js';
import { createUnapproved } from './unapproved.js';

/** How long a session that is ended hard may take to kill what it started. */
const HARD_END_MS = 2_000;

/** Where a turn is told: JSON lines on stdout, or short lines on stderr and the result on stdout. */
type Outlet = {
  begin(opened: Opened): void;
  see(stepped: Stepped): void;
  end(ending: Ending, text: string, ended: { sessionId: string; state: State } | null): void;
};

const writeRecord = (record: JsonRecord): void => writeWhole(1, `${JSON.stringify(record)}\n`);

const jsonOutlet: Outlet = {
  begin: ({ session, settings, journal, resumed }) =>
    writeRecord({
      type: 'session',
      schema: 1,
      sessionId: session.id,
      workspace: settings.workspace,
      model: settings.model,
      journal,
      resumed,
      tornTail: session.tornTail,
    }),
  see(stepped) {
    for (const record of recordsOf(stepped)) writeRecord(record);
  },
  end: (ending, text, ended) => writeRecord(resultRecord(ending, text, ended)),
};

/** Warnings and errors always; the rest of the story to a person who watches, or with --verbose. */
const textOutlet = (workspace: string, verbose: boolean): Outlet => {
  const look = lookOf(process.stderr, process.env);
  const story = createStory(look, workspace);
  const watched = process.stderr.isTTY || verbose;
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  return {
    begin({ session: { tornTail } }) {
      if (tornTail !== null) say(tornText(tornTail));
    },
    see(stepped) {
      for (const piece of story(stepped)) {
        if (piece.kind !== 'lines') continue;
        if (watched || piece.urgent) say(verbose ? wholeOf(piece) : piece.text);
      }
    },
    end(ending, text, ended) {
      if (ending.exit === exitCodes.notPermitted) say(`pawl: ${ending.message}`);
      if (text !== '') writeWhole(1, text.endsWith('\n') ? text : `${text}\n`);
      if (!watched || ended === null) return;
      const { usage } = ended.state.session;
      const tokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
      say(`session ${ended.sessionId} · ${formatTokens(tokens)} tokens · ${formatCost(costOf(ended.state))}`);
    },
  };
};

/** The last words of the model, where the turn ended with words. */
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

type Turn = { readonly ending: Ending; readonly state: State };
const TERMINATED: Ending = { exit: exitCodes.terminated, reason: 'terminated', message: '' };
const INTERRUPTED: Ending = { exit: exitCodes.interrupted, reason: 'cancelled', message: '' };

type UserInput = Extract<Input, { readonly type: 'UserInput' }>;

/** The prompt with the pictures that it names; what does not go with it is said. */
const inputFrom = async ({ session, settings }: Opened, { text, typed }: Prompt): Promise<UserInput> => {
  const input = { type: 'UserInput', text, mode: 'steer' } as const;
  const names = picturesNamed(typed);
  if (names.length === 0) return input;
  const { images, faults } = await attachPictures(names, settings.workspace, session);
  for (const fault of faults) process.stderr.write(`${warningText(fault)}\n`);
  return images.length === 0 ? input : { ...input, images };
};

/** Sends the prompt and waits until the session rests. Signals and a closed pipe end it early, settled. */
const runTurn = async (opened: Opened, prompt: Prompt, outlet: Outlet, steps: Steps): Promise<Turn> => {
  const { session, settings } = opened;
  const unapproved = createUnapproved(settings.workspace);
  let last: State | null = null;
  let early: Ending | null = null;
  const endWith = (ending: Ending): void => {
    early ??= ending;
    session.close().catch(() => undefined); // the wait below reports the same failure
  };
  const deaf = listenToSignals({
    interrupt: () => void session.cancel().catch(() => undefined), // refused after the end: there is nothing to cancel
    interruptAgain() {
      endWith(INTERRUPTED);
      void pause(HARD_END_MS).then(() => process.exit(exitCodes.interrupted));
    },
    terminate: () => endWith(TERMINATED),
  });
  const unwatch = steps.hear((stepped) => {
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
    deaf();
  }
  const state = last ?? (await session.state());
  const ending = early ?? endingOf(state);
  if (ending.exit !== exitCodes.notPermitted) return { state, ending };
  return { state, ending: { ...ending, message: unapproved.advice(session.id) } };
};

/** The turn's ending, or that the session could not be closed: then its end is not on disk. */
const closeAfter = async (session: Session, { ending, state }: Turn): Promise<Ending> => {
  if (state.name === 'ShuttingDown') return ending;
  try {
    await session.close();
    return ending;
  } catch (fault) {
    const unclosed = endingOfError(fault);
    process.stderr.write(`pawl: ${unclosed.message}\n`);
    return ending.exit === exitCodes.done ? unclosed : ending;
  }
};

type Steps = Held<Stepped>;

/** What the opening led to: a session, and what was asked for meanwhile by a signal. */
type Begun = { readonly opened: Opened; readonly early: Ending | null };

const runOpened = async (
  { opened, early }: Begun,
  prompt: Prompt,
  outlet: Outlet,
  steps: Steps,
): Promise<Ending> => {
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

/** Opens the session. A signal meanwhile ends it as soon as it is open, before anything is sent. */
const begin = async (flags: RunFlags, steps: Steps): Promise<Begun> => {
  const endings: Ending[] = [];
  const deaf = listenToSignals({
    interrupt: () => void endings.push(INTERRUPTED),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => void endings.push(TERMINATED),
  });
  try {
    const warn = (text: string): void => void process.stderr.write(`${warningText(text)}\n`);
    const opened = await openFromFlags(flags, 'headless', { watcher: steps.give, warn });
    return { opened, early: endings[0] ?? null };
  } finally {
    deaf();
  }
};

/** `pawl -p`: one turn without a terminal; its exit code. */
export const runHeadless = async (flags: RunFlags, prompt: Prompt): Promise<number> => {
  if (prompt.text.trim() === '') throw usageStop('The prompt is empty.');
  try {
    const steps = createHeld<Stepped>();
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
