import { messagesOf } from '../agent/conversation.js';
import type { Dimension } from '../agent/settings.js';
import type { State } from '../agent/state.js';
import type { Session } from '../agent-api.js';
import type { Input, Stepped } from '../needs.js';
import { systemClock } from '../runtime/clock.js';
import { chooseSession } from './choose-session.js';
import { Desk, type DeskWishes } from './desk.js';
import { exitCodes } from './exit-codes.js';
import { type RunFlags, usageStop } from './flags.js';
import { createHeld, type Held } from './held.js';
import { readKeys, readLines, type Typed } from './keys.js';
import { type Opened, openFromFlags } from './open-session.js';
import {
  formatCost,
  formatTokens,
  isBare,
  type Look,
  lookOf,
  paint,
  warningText,
  writeIfThere,
} from './print.js';
import { costOf } from './records.js';
import { createScreen, createSuspend, type Screen } from './screen.js';
import { messageLines } from './show-message.js';
import { listenToSignals } from './signals.js';
import { keyHelp, slashHelp, type Wish } from './slash.js';
import { isBusy } from './status.js';
import { tornText } from './torn-text.js';

const HARD_END_MS = 2_000;
const TICK_MS = 1_000;
/** Messages of a resumed session that are shown again. */
const SHOWN_MESSAGES = 4;

const helpText = (): string =>
  [...slashHelp, ...keyHelp].map(([name, what]) => `  ${name.padEnd(22)} ${what}`).join('\n');

const costText = (state: State): string => {
  const { usage } = state.session;
  return [
    `  input ${formatTokens(usage.inputTokens)} · cache read ${formatTokens(usage.cacheReadTokens)}`,
    `cache write ${formatTokens(usage.cacheWriteTokens)} · output ${formatTokens(usage.outputTokens)}`,
    formatCost(costOf(state)),
  ].join(' · ');
};

/** The answer of `/budget AMOUNT`, or null where no limit stopped the turn or the amount is none. */
const approvalOf = (state: State, amount: string): Input | null => {
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'budget') return null;
  const dimension: Dimension = state.reason.dimension;
  const given = Number(amount);
  if (!(given > 0)) return null;
  return { type: 'ApproveBudget', dimension, limit: dimension === 'time' ? given * 60_000 : given };
};

/** The event for a command, or null where it is answered on the screen. */
const eventOf = (wish: Wish, state: State): Input | null => {
  if (wish.kind === 'compact') return { type: 'CompactRequested' };
  if (wish.kind === 'retry') return { type: state.name === 'Error' ? 'RetryNow' : 'RetryLast' };
  return wish.kind === 'budget' ? approvalOf(state, wish.amount) : null;
};

const greet = (desk: Desk, look: Look, { session, settings, resumed }: Opened, state: State): void => {
  desk.print(paint(look, 'dim', `${settings.model} · ${settings.workspace} · session ${session.id} · /help`));
  if (!resumed) return;
  const { tornTail } = session;
  if (tornTail !== null) desk.print(paint(look, 'yellow', tornText(tornTail)));
  const messages = messagesOf(state.session.conversation);
  const left = messages.length - SHOWN_MESSAGES;
  if (left > 0) desk.print(paint(look, 'dim', `… ${left} earlier messages: pawl show ${session.id}`));
  for (const message of messages.slice(-SHOWN_MESSAGES)) {
    const shown = messageLines(look, message).split('\n');
    desk.print(
      shown.length > 12
        ? [...shown.slice(0, 10), paint(look, 'dim', `… ${shown.length - 10} more lines`)].join('\n')
        : shown.join('\n'),
    );
  }
};

const pause = (delayMs: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, delayMs).unref());

/** Ticks each second while it is set; no timer otherwise. */
const createTicker = (tick: () => void) => {
  let timer: NodeJS.Timeout | null = null;
  return {
    set(on: boolean): void {
      if (on && timer === null) timer = setInterval(tick, TICK_MS);
      if (!on && timer !== null) {
        clearInterval(timer);
        timer = null;
      }
    },
  };
};

type Ending = { readonly exited: Promise<number>; end(exit: number): void };

/** Ends a session with a code: once, and within a bound even if its tools don't let go. */
const createEnding = (session: Session): Ending => {
  let finish: ((exit: number) => void) | null = null;
  const finished = new Promise<number>((resolve) => {
    finish = resolve;
  });
  return {
    // What stops the session without us (a full disk) rejects here.
    exited: Promise.race([finished, session.ended.then(() => finished)]),
    end(exit) {
      const closed = session.close().catch(() => undefined); // `ended` rejects with the same fault
      void Promise.race([closed, pause(HARD_END_MS)]).then(() => finish?.(exit));
    },
  };
};

const createWishes = (
  session: Session,
  ending: Ending,
  desk: () => Desk,
  suspend: () => void,
): DeskWishes => {
  const send = (input: Input): void => {
    session.send(input).catch(() => undefined); // `session.ended` rejects with the same fault, and is waited for
  };
  return {
    say: (text, mode) => send({ type: 'UserInput', text, mode }),
    cancel: () => send({ type: 'CancelTurn' }),
    answer: (batchId, callId, given) => send({ type: 'ApprovalAnswered', batchId, callId, ...given }),
    command(wish) {
      if (wish.kind === 'quit') return ending.end(exitCodes.done);
      if (wish.kind === 'help') return desk().print(helpText());
      if (wish.kind === 'cost') return desk().print(costText(desk().state));
      const event = eventOf(wish, desk().state);
      if (event === null) return desk().print('  No limit stopped the turn, or that is no amount: /budget 5');
      send(event);
    },
    suspend,
    end: (how) => ending.end(how === 'hard' ? exitCodes.interrupted : exitCodes.done),
  };
};

/** Connects keyboard, window and signals; the returned function disconnects them and leaves a clean screen. */
const connect = (desk: Desk, screen: Screen, ending: Ending): (() => void) => {
  const take = (typed: Typed): void => desk.take(typed);
  const stopKeys = screen.bare ? readLines(process.stdin, take) : readKeys(process.stdin, take);
  const resized = (): void => desk.redraw();
  process.stdout.on('resize', resized);
  const goOn = (): void => {
    screen.take();
    desk.redraw();
  };
  process.on('SIGCONT', goOn);
  const interrupt = (): void => desk.take({ kind: 'interrupt' });
  const terminate = (): void => ending.end(exitCodes.terminated);
  const deaf = listenToSignals({ interrupt, interruptAgain: interrupt, terminate });
  screen.take();
  return () => {
    deaf();
    process.off('SIGCONT', goOn);
    process.stdout.off('resize', resized);
    screen.area.clear();
    stopKeys();
    screen.giveBack();
  };
};

/** One life of the terminal: from the open session to the exit code. */
const live = async (opened: Opened, { steps, warnings }: Heard): Promise<number> => {
  const { session } = opened;
  const look = lookOf(process.stdout, process.env);
  const screen = createScreen();
  const ending = createEnding(session);
  const suspend = createSuspend(screen, () => desk.redraw());
  const wishes = createWishes(session, ending, () => desk, suspend);
  const desk = new Desk(screen.area, look, systemClock, wishes, await session.state());
  const ticking = createTicker(() => desk.redraw());
  greet(desk, look, opened, desk.state);
  warnings.hear((text) => desk.print(paint(look, 'yellow', warningText(text))));
  steps.hear((stepped) => {
    desk.see(stepped);
    ticking.set(isBusy(stepped.state));
  });
  const disconnect = connect(desk, screen, ending);
  desk.redraw();
  try {
    return await ending.exited;
  } finally {
    ticking.set(false);
    disconnect();
    writeIfThere(1, `${paint(look, 'dim', `To go on: pawl --resume ${session.id}`)}\n`);
  }
};

/** What may come before there is a screen. */
type Heard = { readonly steps: Held<Stepped>; readonly warnings: Held<string> };

/** `pawl`: a session in the terminal; its exit code. */
export const runTerminal = async (flags: RunFlags): Promise<number> => {
  for (const stream of ['stdin', 'stdout'] as const) {
    if (process[stream].isTTY) continue;
    throw usageStop(
      `There is no terminal (${stream} is none). For one turn without one: pawl -p "prompt", or with the prompt from stdin: pawl -p -`,
    );
  }
  const heard: Heard = { steps: createHeld(), warnings: createHeld() };
  const chosen = await chooseSession(flags);
  // From now on keys wait as they were pressed; without this an early Enter would arrive as a mere line feed.
  if (!isBare(process.env)) process.stdin.setRawMode(true);
  const early = { watcher: heard.steps.give, warn: heard.warnings.give };
  const opened = await openFromFlags(chosen, 'terminal', early);
  if (!opened.resumed) await opened.session.send({ type: 'Start' });
  return live(opened, heard);
};
