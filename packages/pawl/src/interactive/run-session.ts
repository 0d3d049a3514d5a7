import type { Session } from '@pawl/agent/api/create-agent';
import type { State } from '@pawl/agent/machine/state';
import type { Input, Stepped } from '@pawl/agent/ports/session-input-output';
import { harmless, type Look, paint, warningText } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { isMoving, SPINNER_MS } from '@pawl/terminal/status-row';
import { loadWordMarks } from '@pawl/terminal/transcript/changed-words';
import { loadMarkdown } from '@pawl/terminal/transcript/markdown';
import { indentWords, wrapWords } from '@pawl/terminal/width';
import { exitCodes } from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import { returnedTexts } from '../sessions/open-for-resume.js';
import type { Opened } from '../sessions/open-session.js';
import { storedBlobs } from '../sessions/stored-sessions.js';
import type { CommandContext, NextSession } from '../slash/command-context.js';
import { ShellOutputs } from './attach-shell-output.js';
import type { EventBuffer } from './event-buffer.js';
import { attachPictures, picturesNamed } from './input/mentioned-pictures.js';
import { InteractiveView } from './interactive-view.js';
import type { TerminalSession } from './lasting-terminal.js';
import { startUserCommand, type UserCommand } from './user-shell-command.js';
import type { ViewHandlers } from './view-handler-types.js';
import { banner, lastSessionNote, resumedNotes } from './welcome.js';

/** One session in the terminal, from its first paint until the user leaves. */

/** An open session, with the steps and warnings that came before the screen showed it. */
export type StartedSession = {
  readonly opened: Opened;
  readonly steps: EventBuffer<Stepped>;
  readonly warnings: EventBuffer<string>;
  readonly notice: string;
  readonly draft: string;
};

export type SessionExit =
  | { readonly kind: 'exit'; readonly exit: number }
  | { readonly kind: 'move'; readonly started: StartedSession };

const HARD_END_MS = 2_000;

const pause = (delayMs: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, delayMs).unref());

/** Calls `tick` once per spinner picture while it is on. When off it holds no timer. */
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

type SessionCloser = { readonly exited: Promise<SessionExit>; exit(sessionExit: SessionExit): void };

/** Closes a session once, within a fixed time even if its tools keep running. */
const createSessionCloser = (session: Session): SessionCloser => {
  let finish: ((sessionExit: SessionExit) => void) | null = null;
  const finished = new Promise<SessionExit>((resolve) => {
    finish = resolve;
  });
  return {
    // A session that fails (a full disk) rejects here.
    exited: Promise.race([finished, session.ended.then(() => finished)]),
    exit(sessionExit) {
      const closed = session.close().catch(() => undefined); // `ended` rejects with the same fault
      void Promise.race([closed, pause(HARD_END_MS)]).then(() => finish?.(sessionExit));
    },
  };
};

/** The user's own commands, one at a time. */
const createUserCommands = (context: CommandContext, shellOutputs: ShellOutputs) => {
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
      const stored = storedBlobs();
      const blobs = { ...stored, put: (text: string) => stored.put(session.redact(text)) };
      running = startUserCommand(command, workspace, blobs, (text) => view.print(indent(text)));
      const output = await running.ended;
      running = null;
      shellOutputs.add({ command, output: session.redact(output) });
      view.print(paint(look, 'dim', safe`  ${lastLine(output)} · the model gets it with your next message`));
      view.redraw();
    },
  };
};

const indent = (text: string): Safe =>
  joinSafe(
    harmless(text.replace(/\n$/, ''))
      .split('\n')
      .map((line) => safe`  ${line}`),
    safe`\n`,
  );

const lastLine = (text: string): Safe => harmless(text.trimEnd()).split('\n').at(-1) ?? safe``;

type ControllerOptions = {
  readonly terminal: TerminalSession;
  readonly flags: RunFlags;
  openNext(to: NextSession): Promise<StartedSession>;
};

/** Reads the clipboard. A request during a read joins that read. */
const createPaste = (context: () => CommandContext, { composer }: TerminalSession, signal: AbortSignal) => {
  let pasting: Promise<void> | null = null;
  const paste = async (): Promise<void> => {
    const { pastePicture } = await import('./input/paste-picture.js');
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
const tellFault = ({ view, look }: CommandContext, fault: string): void =>
  view.print(paint(look, 'yellow', indentWords(makeSafe(fault), look.columns)));

const createViewHandlers = (
  context: CommandContext,
  closer: SessionCloser,
  { terminal }: ControllerOptions,
): ViewHandlers => {
  const { session, prompts } = context;
  const shellOutputs = new ShellOutputs();
  const userCommands = createUserCommands(context, shellOutputs);
  /** Sends texts in the order of typing, even if the pictures or the skill of one are still being read. */
  let sending: Promise<void> = Promise.resolve();
  let attaching = 0;
  const send = (input: Input): void => {
    session.send(input).catch(() => undefined); // `session.ended` rejects with the same error and is awaited
  };
  const commands = () => import('../slash/run-slash-command.js');
  return {
    say(text, mode) {
      terminal.history.add(text);
      const names = picturesNamed(text);
      const isPrompt = prompts.expands(text);
      if (names.length === 0 && !isPrompt && attaching === 0)
        return send({ type: 'UserInput', text: shellOutputs.attach(text), mode });
      attaching += 1;
      const prepare = async (): Promise<void> => {
        const expanded = isPrompt ? await prompts.expand(text) : { text, fault: null };
        const { images, faults } = await attachPictures(names, context.workspace, session);
        for (const fault of [expanded.fault, ...faults]) if (fault !== null) tellFault(context, fault);
        attaching -= 1;
        const input = { type: 'UserInput', text: shellOutputs.attach(text, expanded.text), mode } as const;
        send(images.length === 0 ? input : { ...input, images });
      };
      sending = sending.then(prepare);
    },
    cancel: () => send({ type: 'CancelTurn' }),
    answer: (batchId, callId, given) => send({ type: 'ApprovalAnswered', batchId, callId, ...given }),
    runCommand(wish) {
      terminal.history.add(wish.kind === 'shell' ? `!${wish.command}` : `/${wish.name} ${wish.words}`.trim());
      if (wish.kind === 'shell') void userCommands.run(wish.command);
      else void commands().then(({ runCommand }) => runCommand(context, wish.name, wish.words));
    },
    stopUserCommand: () => userCommands.stop(),
    withoutShellOutput: (texts) => texts.map((text) => shellOutputs.detach(text)),
    pastePicture: () => void context.paste(),
    editLast() {
      void Promise.all([commands(), import('../slash/change-session.js')]).then(
        ([{ attemptFor }, { editLast }]) =>
          attemptFor(context, () => editLast(context, (text) => shellOutputs.detach(text))),
      );
    },
    suspend: () => terminal.suspend(),
    end: (how) =>
      closer.exit({ kind: 'exit', exit: how === 'hard' ? exitCodes.interrupted : exitCodes.done }),
  };
};

/**
 * Prints the last turns, the queued texts and the grants of a resumed session. Texts that a crash took from the input line
 * return to it, except in a fork made here, whose line is what the user had in it or chose to edit.
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

/** In a new session, names the last session in this folder once it is found. */
const hintLastSession = (
  { session, settings }: Opened,
  view: InteractiveView,
  look: Look,
  signal: AbortSignal,
): void => {
  lastSessionNote(look, settings.workspace, session.id).then(
    (note) => {
      if (note !== '' && !signal.aborted) view.print(note);
    },
    () => undefined, // only a hint is lost; /resume reports the reason
  );
};

/** Runs a session in the terminal until the user leaves it. */
export const runSession = async (
  started: StartedSession,
  options: ControllerOptions,
): Promise<SessionExit> => {
  const { opened, steps, warnings, notice, draft } = started;
  const { terminal, flags } = options;
  const { look, clock, composer, screen } = terminal;
  const closer = createSessionCloser(opened.session);
  const leaving = new AbortController();
  const state = await opened.session.state();
  const context: CommandContext = {
    session: opened.session,
    workspace: opened.settings.workspace,
    flags,
    look,
    prompts: opened.prompts,
    servers: opened.servers,
    get view() {
      return view;
    },
    paste: createPaste(() => context, terminal, leaving.signal),
    move: async (to) => closer.exit({ kind: 'move', started: await options.openNext(to) }),
    quit: () => closer.exit({ kind: 'exit', exit: exitCodes.done }),
  };
  const parts = { area: screen.area, look, clock, composer, rows: () => screen.size().rows };
  const handlers = createViewHandlers(context, closer, options);
  const view: InteractiveView = new InteractiveView(parts, handlers, state);
  opened.servers?.answerWith((question, signal) => view.serverForms.ask(question, signal));
  const ticking = createTicker(() => view.redraw());
  if (notice !== '') view.print(paint(look, 'dim', safe`· ${makeSafe(notice)}`));
  terminal.offer(opened.prompts.choices, opened.prompts.mentions);
  view.print(banner(look, opened));
  if (draft !== '') composer.setText(draft);
  warnings.subscribe((warning) =>
    view.print(paint(look, 'yellow', joinSafe(wrapWords(warningText(warning), look.columns - 1), safe`\n`))),
  );
  view.redraw();
  terminal.attach({
    take: (pressed) => view.take(pressed),
    interrupt: () => view.interrupt(),
    terminate: () => closer.exit({ kind: 'exit', exit: exitCodes.terminated }),
    redraw: () => view.redraw(),
  });
  // After the first paint. Steps that arrive meanwhile stay in the buffer, so they are drawn with Markdown.
  await Promise.all([loadMarkdown(), loadWordMarks()]);
  if (opened.resumed !== null) showEarlierTurns(started, view, look, state);
  else if (notice === '') hintLastSession(opened, view, look, leaving.signal);
  const unsubscribe = steps.subscribe((stepped) => {
    view.see(stepped);
    ticking.set(isMoving(stepped.state));
  });
  try {
    return await closer.exited;
  } finally {
    leaving.abort();
    terminal.detach();
    unsubscribe();
    ticking.set(false);
  }
};
