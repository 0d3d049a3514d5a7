/**
 * `pawl` in a terminal: runs sessions one after the other, each from its first paint until the
 * user leaves it.
 *
 * From top to bottom: `runTerminal`, and opening a session; one session, with a watch on the
 * provider's cache, since a request without it is dear; and commands of the user (`!`) and their
 * output for the model. A typed text becomes a `UserInput` in `say`, which the view calls on Enter.
 */

import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSessionSandbox, type SessionSandbox } from '@pawl/agent/command/session-sandbox';
import type { AskUserOrNot } from '@pawl/agent/extensions/mcp/session-servers';
import type { State } from '@pawl/agent/machine/state';
import { keyVariables } from '@pawl/agent/models/provider-table';
import type { Clock } from '@pawl/agent/platform/clock';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Input, Stepped } from '@pawl/agent/ports/session';
import { createJobs } from '@pawl/agent/ports/tool';
import { createWatchBuffer, type WatchBuffer } from '@pawl/agent/session/loop';
import { coldUsd } from '@pawl/agent/session/model-call';
import { cutText } from '@pawl/agent/session/result-text';
import { createFileMemory } from '@pawl/agent/tools/file-change';
import { loadWordMarks } from '@pawl/terminal/diff-rows';
import { createScreen, isMoving, type Screen, SPINNER_MS } from '@pawl/terminal/live-area';
import { loadMarkdown } from '@pawl/terminal/markdown';
import {
  harmless,
  indentWords,
  isPlain,
  type Look,
  paint,
  warningText,
  wrapWords,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeWindow } from '@pawl/terminal/write';
import type { OpenedForUi, UiServers, UiSession } from '../detached/remote-session.js';
import { exitCodes } from '../process/exit-codes.js';
import { openFromFlags, returnedTexts } from '../sessions/open-session.js';
import { chooseSession, findSession, storedBlobs } from '../sessions/stored-sessions.js';
import { attachPictures, picturesNamed } from '../sessions/typed-input.js';
import { hasProjectFile, mcpJsonFiles } from '../settings/configuration.js';
import { realWorkspace } from '../settings/connect-model.js';
import { type RunFlags, SESSION_CHOICE, usageStop, withoutFlags } from '../settings/flags.js';
import { hearEarlyKeys } from './early-keys.js';
import type { NextSession, SlashCommandContext } from './slash-command.js';
import { banner, otherSessionNote, resumedNotes } from './start-texts.js';
import { openTerminalSession, type TerminalSession, UserWork } from './terminal-session.js';
import { InteractiveView, type ViewHandlers } from './view.js';

export const refuseWithoutTerminal = (): void => {
  for (const stream of ['stdin', 'stdout'] as const) {
    if (process[stream].isTTY) continue;
    throw usageStop(
      `There is no terminal (${stream} is not one). To run one turn without a terminal: pawl ` +
        '-p "prompt", or with the prompt from stdin: pawl -p -',
    );
  }
};

/**
 * The flags for the next session in the same terminal. A new session takes all but those that say
 * which session to open; a resumed one also keeps its own model, preset and profile.
 */
const flagsForNext = (flags: RunFlags, next: NextSession): RunFlags => {
  const rest = withoutFlags(flags, SESSION_CHOICE);
  if (next.resume === null) return next.model === undefined ? rest : { ...rest, model: next.model };
  return withoutFlags(rest, ['model', 'preset', 'profile']);
};

/**
 * Opens a new session, or one to resume, or joins one that runs in a separate process. Its steps
 * and warnings wait in buffers until the screen shows it. `rights`: of a fork, those of the session
 * that it is a copy of. `configured`: whether the user's configuration applies.
 */
const openNextSession = async (
  flags: RunFlags,
  { resume, rights, notice, text = '' }: NextSession,
  configured: boolean,
  waitFor: (what: string | null) => void = () => undefined,
): Promise<StartedSession> => {
  const steps: StartedSession['steps'] = createWatchBuffer();
  const warnings: StartedSession['warnings'] = createWatchBuffer();
  const buffers = { watcher: steps.push, warn: warnings.push };
  const live = resume === null ? null : await findRunning(resume);
  if (live !== null) {
    const { openRemote } = await import('../detached/remote-session.js');
    waitFor(`the process of ${live}`);
    const opened = await openRemote(live, flags, buffers);
    return { opened, steps, warnings, notice, draft: text, first: null };
  }
  const opened = await openFromFlags(flags, 'terminal', {
    ...buffers,
    ...(configured ? {} : { configured: false as const }),
    ...(resume === null ? {} : { resume }),
    ...(rights === undefined ? {} : { rights }),
  });
  if (!opened.resumed) await opened.session.send({ type: 'Start' });
  return { opened: { ...opened, remote: null }, steps, warnings, notice, draft: text, first: null };
};

/** The id of a session that runs in a separate process; null for any other. */
const findRunning = async (sessionId: string): Promise<string | null> => {
  const { findLive } = await import('../sessions/live-records.js');
  return (await findLive(sessionId))?.status === 'runs' ? sessionId : null;
};

/** What the screen shows until a session is open. */
const STARTING = { rows: [safe``, safe`starting`, safe`> `], cursor: { row: 2, column: 2 } };

/**
 * Asks about what the project's files want to run, before the session opens. Other sessions of this
 * terminal don't ask.
 */
const askAboutProject = async (screen: Screen, plain: boolean, flags: RunFlags): Promise<void> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  if (mcpJsonFiles(workspace).length === 0 && !hasProjectFile(workspace)) return;
  const { askAtStart } = await import('./ask-trust.js');
  await askAtStart(screen, plain, workspace);
  screen.area.draw(STARTING);
};

/**
 * `pawl`: runs sessions in the terminal, one after the other. Returns the exit code. `first`: the
 * prompt that the first of them begins with, or null. `configured`: whether the user's
 * configuration applies.
 */
export const runTerminal = async (
  flags: RunFlags,
  first: string | null,
  configured = true,
): Promise<number> => {
  refuseWithoutTerminal();
  const chosen = await chooseSession(flags); // for `--resume` without an id, asks which one
  const plain = flags.plain === true || isPlain(process.env);
  // Raw mode from the start: without it an Enter that is pressed early would arrive as a line feed.
  if (!plain) process.stdin.setRawMode(true);
  const screen = createScreen(plain);
  // Draw something first: opening the session takes time.
  screen.area.draw(STARTING);
  const begin = async (waitFor: (what: string | null) => void): Promise<StartedSession> => {
    const resume = typeof chosen.resume === 'string' ? await findSession(chosen.resume) : null;
    const opened = await openNextSession(chosen, { resume, notice: '' }, configured, waitFor);
    return { ...opened, first };
  };
  await askAboutProject(screen, plain, chosen).catch(clearFirst(screen));
  const keys = plain ? null : hearEarlyKeys(process.stdin, screen, () => leaveEarly(screen));
  let started = await begin((what) => keys?.waitFor(what))
    .finally(() => keys?.end())
    .catch(clearFirst(screen));
  const terminal = openTerminalSession(screen, plain, started.opened.settings.workspace);
  const outputs = new ShellOutputs(); // those that wait go to the next session too
  let how: SessionExit['kind'] | 'failed' = 'failed';
  try {
    for (;;) {
      const sessionExit = await runSession(started, {
        ...{ terminal, outputs, flags },
        openNext: (to) => openNextSession(flagsForNext(flags, to), to, configured),
      });
      if (sessionExit.kind !== 'move') {
        how = sessionExit.kind;
        return sessionExit.exit;
      }
      started = sessionExit.started;
    }
  } finally {
    terminal.close();
    const words = farewell(started.opened, how, terminal.look);
    if (words !== '') writeWindow(safe`\n${paint(terminal.look, 'dim', words)}\n`);
  }
};

/** Passes an error on, after the rows that were drawn. */
const clearFirst =
  (screen: Screen) =>
  (error: unknown): never => {
    screen.area.clear();
    throw error;
  };

/** Nothing is open yet, so the program ends as a signal would end it. */
const leaveEarly = (screen: Screen): never => {
  screen.area.clear();
  process.exit(exitCodes.interrupted);
};

/**
 * How to come back. A detached session goes on when its user quits; of one that failed the error
 * says it.
 */
const farewell = (
  { session, remote }: OpenedForUi,
  how: SessionExit['kind'] | 'failed',
  { columns }: Look,
): Safe => {
  if (remote !== null && how === 'quit') return detachedText(session.id);
  if (remote !== null && how === 'failed') return safe``;
  const command = safe`pawl --resume ${makeSafe(session.id)}`;
  const row = safe`To continue: ${command}`;
  // A command that is copied has no break in it.
  return row.length < columns ? row : safe`To continue:\n${command}`;
};

const detachedText = (sessionId: string): Safe => {
  const id = makeSafe(sessionId);
  return safe`The session stays open. To come back: pawl attach ${id}\nTo end it: pawl stop ${id}`;
};

// One session in the terminal, from its first paint until the user leaves: `runSession`, the last
// function of this part, puts the parts before it together.

/** An open session, with the steps and warnings that came before the screen showed it. */
type StartedSession = {
  readonly opened: OpenedForUi;
  readonly steps: WatchBuffer<Stepped>;
  readonly warnings: WatchBuffer<string>;
  /** Why the terminal moved to this session, for the user; empty at the start. */
  readonly notice: string;
  /** The text that the input line begins with. */
  readonly draft: string;
  /** The prompt to send at once; null for none. */
  readonly first: string | null;
};

/**
 * Why the terminal shows a session no more: its user quits the program, it was ended elsewhere, or
 * its user moves to another one.
 */
type SessionExit =
  | { readonly kind: 'quit' | 'ended'; readonly exit: number }
  | { readonly kind: 'move'; readonly started: StartedSession };

/** How long a session may take to close, in ms; `hard`: after a second Ctrl-C. */
const CLOSE_MS = { clean: 2_000, hard: 700 };

/** Calls `tick` for each picture of the spinner while it is on. When off it holds no timer. */
const createTicker = (tick: () => void) => {
  let timer: NodeJS.Timeout | null = null;
  return {
    set(on: boolean): void {
      if (on && timer === null) timer = setInterval(tick, SPINNER_MS);
      if (on || timer === null) return;
      clearInterval(timer);
      timer = null;
    },
  };
};

type SessionCloser = {
  readonly exited: Promise<SessionExit>;
  exit(sessionExit: SessionExit, how?: keyof typeof CLOSE_MS): void;
};

/** Closes a session once, within a fixed time even if its tools keep running. */
const createSessionCloser = (session: UiSession): SessionCloser => {
  let finish: ((sessionExit: SessionExit) => void) | null = null;
  const finished = new Promise<SessionExit>((resolve) => {
    finish = resolve;
  });
  // A session that fails (a full disk) rejects here.
  const exited = Promise.race([finished, session.ended.then(() => finished)]);
  exited.catch(() => undefined); // it may fail before it is awaited
  return {
    exited,
    exit(sessionExit, how = 'clean') {
      const closed = session.close().catch(() => undefined); // `ended` rejects with the same fault
      void Promise.race([closed, pause(CLOSE_MS[how], undefined, { ref: false })]).then(() =>
        finish?.(sessionExit),
      );
    },
  };
};

/** What all sessions of this terminal share. */
type TerminalParts = {
  readonly terminal: TerminalSession;
  readonly outputs: ShellOutputs;
  /** As they were typed. */
  readonly flags: RunFlags;
  /** Opens the session to which the user changes. */
  openNext(to: NextSession): Promise<StartedSession>;
};

/** Reads the clipboard. A request during a read joins that read. */
const createPaste = (
  // A function: the context, which uses this paste, comes later.
  context: () => SlashCommandContext,
  { composer }: TerminalSession,
  signal: AbortSignal,
) => {
  let pasting: Promise<void> | null = null;
  const paste = async (): Promise<void> => {
    const { pastePicture } = await import('./paste-picture.js');
    await pastePicture(context(), composer, signal);
  };
  return (): Promise<void> => {
    pasting ??= paste().finally(() => {
      pasting = null;
    });
    return pasting;
  };
};

/** Prints why a part of a message could not be used. */
const tellFault = ({ view, look }: SlashCommandContext, fault: string): void =>
  view.print(paint(look, 'yellow', indentWords(makeSafe(fault), look.columns)));

/** A fault that ends the session ends it within this time after the input that it refused. */
const ENDING_MS = 500;

/** Sends inputs one by one, and tells which was not confirmed while its session lives. */
const createSend =
  (context: SlashCommandContext, keepUnsent: (text: string) => void, leaving: AbortSignal) =>
  (input: Input, typed = '', askAgain = (): void => undefined): void => {
    context.session.send(input).catch(async ({ message }: Error) => {
      keepUnsent(typed);
      await pause(ENDING_MS, undefined, { ref: false });
      if (leaving.aborted) return;
      tellFault(context, `Not confirmed: ${message}`);
      askAgain();
    });
  };

/** `leaving` aborts when the session has ended, or its user leaves it. */
type UserParts = {
  readonly terminal: TerminalSession;
  readonly work: UserWork;
  readonly leaving: AbortSignal;
};

const createViewHandlers = (
  context: SlashCommandContext,
  closer: SessionCloser,
  { terminal, work, leaving }: UserParts,
  shellOutputs: ShellOutputs,
): ViewHandlers => {
  const { session, prompts } = context;
  const userCommands = createUserCommands(context, shellOutputs);
  // Texts are sent in the order of typing, also while the pictures or the skill of an earlier one
  // are still read: `sending` is the chain of them, `attaching` their number.
  let sending: Promise<void> = Promise.resolve();
  let attaching = 0;
  const keepUnsent = (text: string): void => terminal.history.add(text, 'unsent');
  const send = createSend(context, keepUnsent, leaving);
  const commands = () => import('./slash-commands.js');
  return {
    say(text, mode) {
      terminal.history.add(text);
      const names = picturesNamed(text);
      // Whether it names a skill, or something of an MCP server, whose text is added.
      const isPrompt = prompts.expands(text);
      if (names.length === 0 && !isPrompt && attaching === 0)
        return send({ type: 'UserInput', text: shellOutputs.attach(text), mode }, text);
      attaching += 1;
      const prepare = async (): Promise<void> => {
        const expanded = isPrompt ? await prompts.expand(text) : { text, fault: null };
        const { images, faults } = await attachPictures(names, context.workspace, session);
        for (const fault of [expanded.fault, ...faults])
          if (fault !== null) tellFault(context, fault);
        const input = {
          type: 'UserInput',
          text: shellOutputs.attach(text, expanded.text),
          mode,
        } as const;
        send(images.length === 0 ? input : { ...input, images }, text);
      };
      const failed = ({ message }: Error): void => {
        keepUnsent(text);
        tellFault(context, `Not sent (${message}). Up brings your text back.`);
      };
      const prepared = sending.then(prepare).catch(failed);
      const ended = prepared.finally(() => {
        attaching -= 1;
      });
      sending = work.during(ended);
    },
    cancel: () => send({ type: 'CancelTurn' }),
    answer(question, scoped) {
      const { batchId, call } = question;
      send({ type: 'ApprovalAnswered', batchId, callId: call.callId, ...scoped }, '', () =>
        context.view.askAgain(question),
      );
    },
    allowInFolder: (question, rule) =>
      void commands().then(({ answerForEver }) => answerForEver(context, question, rule)),
    runCommand(command) {
      terminal.history.add(
        command.kind === 'shell'
          ? `!${command.command}`
          : `/${command.name} ${command.words}`.trim(),
      );
      // at once: the next line may be typed before the command is loaded
      if (command.kind === 'command' && command.name === 'detach' && command.words === '')
        context.view.setLeaving(true);
      if (command.kind === 'shell') void userCommands.run(command.command);
      else
        void commands().then(({ runCommand }) => runCommand(context, command.name, command.words));
    },
    stopUserCommand: () => userCommands.stop(),
    keepUnsent,
    withoutShellOutput: (texts) => texts.map((text) => shellOutputs.detach(text)),
    pastePicture: () => void context.paste(),
    nextPreset: () => void commands().then(({ nextPreset }) => nextPreset(context)),
    openList: (command) =>
      void commands().then(({ runCommand }) => runCommand(context, command, '')),
    suspend: () => terminal.suspend(),
    end: (how) =>
      closer.exit(
        { kind: 'quit', exit: how === 'hard' ? exitCodes.interrupted : exitCodes.done },
        how,
      ),
  };
};

/**
 * Prints the last turns, the queued texts and the grants of a resumed session. Texts that a crash
 * took from the input line return to it, except in a fork made here, whose line is what the user
 * had in it or chose to edit.
 */
const showEarlierTurns = (
  { opened: { resumed }, notice }: StartedSession,
  view: InteractiveView,
  look: Look,
  state: State,
): void => {
  const recent = resumed?.recent ?? null;
  if (recent !== null) view.showRecentTurns(recent);
  const notes = resumedNotes(look, state);
  if (notes !== '') view.print(notes);
  const returned = recent === null || notice !== '' ? [] : returnedTexts(recent.steps);
  if (returned.length > 0) view.takeBack(returned);
  view.redraw();
};

/** Names another session of this folder once it is found. */
const hintOtherSession = (
  { session, settings, resumed }: OpenedForUi,
  view: InteractiveView,
  look: Look,
  signal: AbortSignal,
): void => {
  otherSessionNote(look, settings.workspace, session.id, resumed === null).then(
    (note) => {
      if (note !== '' && !signal.aborted) view.print(note);
    },
    () => undefined, // only a hint is lost; /resume reports the reason
  );
};

/** The MCP servers of the session, in this process or in the one where it runs. */
const uiServers = ({ remote, servers }: OpenedForUi): UiServers =>
  remote?.servers ?? {
    status: async () => servers?.status() ?? null,
    reconnect: async () => servers?.reconnect(),
    answerWith: (ask) => servers?.answerWith(ask),
  };

/** The user answers the servers' questions, and is called for them. */
const answerServers = (
  opened: OpenedForUi,
  view: InteractiveView,
  { notifier }: TerminalSession,
): void => {
  const ask: AskUserOrNot = (question, signal) => {
    notifier.ask();
    return view.askForServer(question, signal);
  };
  uiServers(opened).answerWith(ask, (text) => view.print(makeSafe(text)));
};

/** Shows what waits in a session of another process, and leaves when that has ended. */
const followRemote = (
  { session, remote }: OpenedForUi,
  view: InteractiveView,
  closer: SessionCloser,
): void => {
  view.showQuestions(view.state, remote?.questions ?? []);
  // a process that died is reported by `closer.exited`
  session.ended.then(
    () => closer.exit({ kind: 'ended', exit: exitCodes.done }),
    () => undefined,
  );
};

/** The parts of a step that the cache watch needs; a step of the journal has them too. */
type SeenStep = {
  readonly event: Pick<Stepped['event'], 'at'>;
  readonly state: State;
  readonly actions: readonly Pick<Stepped['actions'][number], 'type'>[];
};

/**
 * When the provider may have dropped the conversation from its cache, so that the next request is
 * dear. A timer redraws the screen at that time, if the session rests. It is not a timer of
 * `Clock`: while one of those runs, the time leaves out the computer's sleep, in which the cache
 * ages too.
 */
export class CacheWatch {
  readonly #session: Pick<UiSession, 'model'>;
  readonly #clock: Clock;
  readonly #redraw: () => void;
  /** The last request: when it was sent, and to which model; null before the first. */
  #last: { readonly at: number; readonly model: string } | null = null;
  /** Facts of the present model, once they are asked for. */
  #model: Pick<Model, 'id' | 'facts'> | null = null;
  /** The question for those facts whose answer starts the timer. */
  #asked: Promise<unknown> | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(session: Pick<UiSession, 'model'>, clock: Clock, redraw: () => void) {
    this.#session = session;
    this.#clock = clock;
    this.#redraw = redraw;
  }

  /** A step of the running session. */
  see(step: SeenStep): void {
    this.note(step);
    this.startTimer(step.state);
  }

  /** Remembers a request. Alone for steps of a resumed session, which are over. */
  note({ event, state, actions }: SeenStep): void {
    const { model } = state.session.settings;
    if (actions.some(({ type }) => type === 'SendLlmRequest')) this.#last = { at: event.at, model };
  }

  /** Waits for the end of the cache's time, if the session rests. */
  startTimer(state: State): void {
    this.end();
    if (this.#last === null || isMoving(state)) return;
    const asked = this.#session.model();
    this.#asked = asked;
    asked.then(
      (known) => this.#asked === asked && this.#wait(known, state),
      () => undefined, // without the model's facts nothing is said
    );
  }

  #wait(model: Pick<Model, 'id' | 'facts'>, { session }: State): void {
    const { cacheLifetimeMs: lifetimeMs } = model.facts;
    if (model.id !== session.settings.model) return;
    this.#model = model;
    if (this.#last === null || lifetimeMs === undefined) return;
    const leftMs = this.#last.at + lifetimeMs - this.#clock.now();
    this.#timer = setTimeout(this.#redraw, Math.max(0, leftMs)).unref();
  }

  /**
   * What the next request costs in dollars without the cache; null while the cache still holds,
   * while the session works, and where nothing is known.
   */
  coldUsd(state: State, now: number): number | null {
    const { model } = state.session.settings;
    if (this.#last === null || this.#model?.id !== model || isMoving(state)) return null;
    const { cacheLifetimeMs, prices } = this.#model.facts;
    if (cacheLifetimeMs === undefined) return null;
    const isWarm = this.#last.model === model && now < this.#last.at + cacheLifetimeMs;
    return isWarm ? null : coldUsd(state, prices);
  }

  end(): void {
    this.#asked = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Gives the view the keys and signals of the terminal. */
const attachView = (
  terminal: TerminalSession,
  view: InteractiveView,
  closer: ReturnType<typeof createSessionCloser>,
): void =>
  terminal.attach({
    take: (pressed) => view.take(pressed),
    interrupt: () => view.interrupt(),
    terminate: () => closer.exit({ kind: 'quit', exit: exitCodes.terminated }),
    redraw: () => view.redraw(),
  });

const warningRows = (look: Look, warning: string): Safe =>
  paint(look, 'yellow', joinSafe(wrapWords(warningText(warning), look.columns - 1), safe`\n`));

/** Calls the user if the settings want it, and follows a session of another process. */
const beginToWatch = (
  { opened }: StartedSession,
  { look, notifier }: TerminalSession,
  view: InteractiveView,
  closer: SessionCloser,
): void => {
  if (opened.notifies && look.plain !== 'yes')
    notifier.start(basename(opened.settings.workspace), view.state);
  if (opened.remote !== null) followRemote(opened, view, closer);
};

/** Inputs are work under way until they are in the journal. */
const trackInputs = (started: StartedSession, work: UserWork): StartedSession => {
  const { opened } = started;
  const { session } = opened;
  const tracked: UiSession = {
    ...session,
    send: (input) => work.during(session.send(input)),
    whileUserRuns: (command) => work.during(session.whileUserRuns(command)),
  };
  return { ...started, opened: { ...opened, session: tracked } };
};

type StepWatchers = {
  readonly view: InteractiveView;
  readonly terminal: TerminalSession;
  readonly ticking: ReturnType<typeof createTicker>;
  readonly cache: CacheWatch;
  readonly work: UserWork;
};

/** Shows each step. The returned function ends that. */
const watchSteps = (
  { opened, steps }: StartedSession,
  { view, terminal, ticking, cache, work }: StepWatchers,
): (() => void) =>
  steps.subscribe((stepped) => {
    if (opened.remote?.isFromElsewhere(stepped)) view.showTyped(stepped.event);
    view.see(stepped);
    terminal.notifier.see(stepped.state); // calls a user who looks elsewhere
    ticking.set(isMoving(stepped.state));
    cache.see(stepped); // when the model was last asked
    work.see(stepped); // `/detach` looks whether it can leave now
  });

const HAND_OVER_TEXTS = {
  waits: safe`  It leaves this window once the model has answered, or what runs has ended. Escape stops the turn.`,
  waitsForUsage: safe`  It leaves this window in two seconds: what the last request cost may still come.`,
  stays: safe`  The other process has ended, so the session stays here.`,
};

/** `/detach` in the terminal that has the session open. */
const detachSession = async (
  { session, flags, view }: SlashCommandContext,
  terminal: TerminalSession,
  work: UserWork,
): Promise<void> => {
  const { handOver } = await import('./hand-over.js');
  const leave = (): void => {
    terminal.close();
    writeWindow(safe`\n${paint(terminal.look, 'dim', detachedText(session.id))}\n`);
    // These listeners end running commands, which must go on in the other process.
    process.removeAllListeners('exit');
    process.exit(exitCodes.done);
  };
  const say = (what: keyof typeof HAND_OVER_TEXTS): void => {
    if (what === 'stays') view.setLeaving(false);
    view.print(HAND_OVER_TEXTS[what]);
  };
  view.setLeaving(true);
  await handOver({ session, flags, view, work, say, leave }).catch((error: unknown) => {
    view.setLeaving(false);
    throw error;
  });
};

/** Runs a session in the terminal until the user leaves it. */
const runSession = async (
  untracked: StartedSession,
  options: TerminalParts,
): Promise<SessionExit> => {
  const work = new UserWork();
  const started = trackInputs(untracked, work);
  const { opened, warnings, notice, draft } = started;
  const { terminal, outputs, flags } = options;
  const { look, clock, composer, screen } = terminal;
  const closer = createSessionCloser(opened.session);
  const leaving = new AbortController();
  const state = await opened.session.state();
  const context: SlashCommandContext = {
    session: opened.session,
    workspace: opened.settings.workspace,
    flags,
    look,
    prompts: opened.prompts,
    servers: uiServers(opened),
    get view() {
      return view; // it exists below
    },
    paste: createPaste(() => context, terminal, leaving.signal),
    hasWork: () => !work.isOver,
    move: async (to) => closer.exit({ kind: 'move', started: await options.openNext(to) }),
    quit: () => closer.exit({ kind: 'quit', exit: exitCodes.done }),
    detach: async () =>
      opened.remote === null ? detachSession(context, terminal, work) : context.quit(),
    typedText: (text) => outputs.typedText(text),
    takeBackText: (text) => outputs.detach(text),
  };
  const viewParts = {
    area: screen.area,
    ...{ look, clock, composer },
    rows: () => screen.size().rows,
    servers: () => opened.servers?.waitsFor() ?? [],
    coldUsd: (now: State, at: number) => cache.coldUsd(now, at),
  };
  const user = { terminal, work, leaving: leaving.signal };
  const handlers = createViewHandlers(context, closer, user, outputs);
  const view: InteractiveView = new InteractiveView(viewParts, handlers, state);
  answerServers(opened, view, terminal);
  const ticking = createTicker(() => view.redraw());
  const cache = new CacheWatch(opened.session, clock, () => view.redraw());
  if (notice !== '') view.print(paint(look, 'dim', safe`· ${makeSafe(notice)}`));
  terminal.offer(opened.prompts.choices, opened.prompts.mentions); // to complete after / and @
  view.print(banner(look, opened));
  if (draft !== '') composer.setText(draft);
  warnings.subscribe((warning) => view.print(warningRows(look, warning)));
  view.redraw();
  attachView(terminal, view, closer);
  // After the first paint. Steps that arrive meanwhile stay in the buffer, so they are drawn with
  // Markdown.
  await Promise.all([loadMarkdown(), loadWordMarks()]);
  for (const step of opened.resumed?.recent?.steps ?? []) cache.note(step);
  cache.startTimer(view.state);
  if (opened.resumed !== null) showEarlierTurns(started, view, look, state);
  if (notice === '') hintOtherSession(opened, view, look, leaving.signal);
  beginToWatch(started, terminal, view, closer);
  const unsubscribe = watchSteps(started, { view, terminal, ticking, cache, work });
  if (started.first !== null) view.sendFirst(started.first);
  try {
    return await closer.exited;
  } finally {
    leaving.abort();
    terminal.detach();
    unsubscribe();
    ticking.set(false);
    cache.end();
  }
};

// Commands of the user (`!command`), and their output for the model.

/** A command that the user ran with `!`, and its output for the model. */
type ShellOutput = { readonly command: string; readonly output: string };

/** Bytes of each output for the model. */
const SHELL_OUTPUT_BYTES_MAX = 10_000;

const shortenOutput = (output: string): string => {
  const cut = cutText(output, SHELL_OUTPUT_BYTES_MAX);
  return cut === null ? output : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

const shellOutputText = ({ command, output }: ShellOutput): string =>
  `I ran this command myself:\n$ ${command}\n${shortenOutput(output.trimEnd())}\n`;

/**
 * Outputs of the user's `!` commands. They are attached to the next text for the model.
 *
 * 1. Each output is sent once, before the next text.
 * 2. When a text comes back for editing, its outputs are removed from it and attached to the next
 *    text.
 */
export class ShellOutputs {
  #waiting: readonly ShellOutput[] = [];
  /** Sent texts that differ from what was typed, oldest first. Equal texts have an entry each. */
  #sent: readonly {
    readonly whole: string;
    readonly text: string;
    readonly outputs: readonly ShellOutput[];
  }[] = [];

  add(output: ShellOutput): void {
    this.#waiting = [...this.#waiting, output];
  }

  /** The text to send: the pending outputs, then `message`, which was made from the typed text. */
  attach(text: string, message = text): string {
    if (this.#waiting.length === 0 && message === text) return text;
    const whole = [...this.#waiting.map(shellOutputText), message].join('\n');
    this.#sent = [...this.#sent, { whole, text, outputs: this.#waiting }];
    this.#waiting = [];
    return whole;
  }

  /** The typed text, without the outputs and the skill that were attached to it. */
  typedText(whole: string): string {
    return this.#sent.find((one) => one.whole === whole)?.text ?? whole;
  }

  /** As `typedText`, for a text that comes back: its outputs wait for the next text. */
  detach(whole: string): string {
    const sent = this.#sent.find((one) => one.whole === whole);
    if (sent === undefined) return whole;
    this.#sent = this.#sent.filter((one) => one !== sent);
    this.#waiting = [...sent.outputs, ...this.#waiting];
    return sent.text;
  }
}

/** Runs the user's own commands (`!command`), one at a time. */
const createUserCommands = (context: SlashCommandContext, shellOutputs: ShellOutputs) => {
  let running: UserCommand | null = null;
  return {
    stop(): boolean {
      if (running === null) return false;
      running.stop();
      return true;
    },
    async run(command: string): Promise<void> {
      const { view, look, workspace, session } = context;
      if (running !== null)
        return view.print(
          paint(look, 'yellow', safe`  Your last command is still running. Escape stops it.`),
        );
      // What a tool stores holds no secrets.
      const stored = storedBlobs();
      const blobs = { ...stored, put: (text: string) => stored.put(session.redact(text)) };
      // Output may arrive in pieces of a line.
      let line = '';
      const show = (text: string): void => {
        const lines = `${line}${text}`.split('\n');
        line = lines.pop() ?? '';
        if (lines.length > 0) view.print(indentOutput(lines.join('\n')));
      };
      running = startUserCommand(command, { workspace, blobs, session }, show);
      const output = await running.ended;
      if (line !== '') view.print(indentOutput(line));
      running = null;
      shellOutputs.add({ command, output: session.redact(output) });
      view.print(
        paint(look, 'dim', safe`  ${lastLine(output)} · the model gets it with your next message`),
      );
      view.redraw();
    },
  };
};

const indentOutput = (text: string): Safe =>
  joinSafe(
    harmless(text)
      .split('\n')
      .map((line) => safe`  ${line}`),
    safe`\n`,
  );

const lastLine = (text: string): Safe => harmless(text.trimEnd()).split('\n').at(-1) ?? safe``;

/** The user's own shell command (`!command`). The same code runs it as the model's commands. */
type UserCommand = {
  /** The output and how the command ended. A failure is output, too, so this never rejects. */
  readonly ended: Promise<string>;
  stop(): void;
};

/** Grace period in ms between the stop and the kill. */
const COMMAND_GRACE_MS = 2_000;
let commandCount = 0;

/**
 * The user's commands get all environment variables, including secrets, except the keys of model
 * providers.
 */
const ownSandbox = (): SessionSandbox => {
  const environment = process.env;
  const passEnvironment = Object.keys(environment).filter((name) => !keyVariables.includes(name));
  return createSessionSandbox({ environment, passEnvironment });
};

type UserCommandPlace = {
  readonly workspace: string;
  readonly blobs: Blobs;
  readonly session: Pick<UiSession, 'whileUserRuns'>;
};

const startUserCommand = (
  command: string,
  { workspace, blobs, session }: UserCommandPlace,
  progress: (text: string) => void,
): UserCommand => {
  const stopping = new AbortController();
  const forcing = new AbortController();
  commandCount += 1;
  const callId = `own-${commandCount}`;
  const run = async (): Promise<string> => {
    const { runCommand } = await import('@pawl/agent/tools/builtin-tools');
    // It is no call of the model: no sandbox, and none of the session's files, jobs or limits.
    const outcome = await runCommand({ environment: process.env, sandbox: ownSandbox() }, command, {
      workspace,
      callId,
      batchId: 'own',
      paths: [workspace],
      hosts: [],
      sandbox: 'off',
      blobs,
      progress,
      signal: stopping.signal,
      force: forcing.signal,
      files: createFileMemory(),
      jobs: createJobs(),
      left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
    });
    return outcome.text;
  };
  return {
    // The session keeps the files that change meanwhile as the user's changes.
    ended: session
      .whileUserRuns(run)
      .catch((error: unknown) => (error instanceof Error ? error.message : String(error))),
    stop() {
      stopping.abort('cancelled');
      setTimeout(() => forcing.abort('cancelled'), COMMAND_GRACE_MS).unref();
    },
  };
};
