import type { Session } from '../agent-api.js';
import type { Input, Stepped } from '../needs.js';
import { loadMarkdown } from '../terminal/markdown.js';
import { paint, warningText } from '../terminal/print.js';
import { isMoving, SPINNER_MS } from '../terminal/status.js';
import { indentWords, wrapWords } from '../terminal/width.js';
import { Asides } from './asides.js';
import type { Destination, Room } from './commands/room.js';
import { Desk, type DeskWishes } from './desk.js';
import { exitCodes } from './exit-codes.js';
import type { RunFlags } from './flags.js';
import { foresee } from './foresee.js';
import { greeting, tellEarlier } from './greet.js';
import type { Held } from './held.js';
import type { Opened } from './open-session.js';
import { attachPictures, picturesNamed } from './pictures.js';
import type { Seat } from './seat.js';
import { type Shell, startShell } from './shell.js';
import { storedBlobs } from './stored.js';

/** One session at the terminal: from when it is open until it is left. */

/** A session that is open, and what was heard of it before anybody listened. */
export type Arrival = {
  readonly opened: Opened;
  readonly steps: Held<Stepped>;
  readonly warnings: Held<string>;
  readonly said: string;
  readonly text: string;
};

export type Departure =
  | { readonly kind: 'exit'; readonly exit: number }
  | { readonly kind: 'move'; readonly arrival: Arrival };

const HARD_END_MS = 2_000;

const pause = (delayMs: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, delayMs).unref());

/** Ticks while it is set, as fast as the spinner turns; no timer otherwise. */
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

type Leaving = { readonly left: Promise<Departure>; leave(departure: Departure): void };

/** Ends a session: once, and within a bound even if its tools don't let go. */
const createLeaving = (session: Session): Leaving => {
  let finish: ((departure: Departure) => void) | null = null;
  const finished = new Promise<Departure>((resolve) => {
    finish = resolve;
  });
  return {
    // What stops the session without us (a full disk) rejects here.
    left: Promise.race([finished, session.ended.then(() => finished)]),
    leave(departure) {
      const closed = session.close().catch(() => undefined); // `ended` rejects with the same fault
      void Promise.race([closed, pause(HARD_END_MS)]).then(() => finish?.(departure));
    },
  };
};

/** The user's own commands, one at a time. */
const createOwnCommands = (room: Room, asides: Asides) => {
  let running: Shell | null = null;
  return {
    stop(): boolean {
      if (running === null) return false;
      running.stop();
      return true;
    },
    async run(command: string): Promise<void> {
      const { desk, look, workspace } = room;
      if (running !== null)
        return desk.print(paint(look, 'yellow', '  A command of yours is running: Escape stops it.'));
      running = startShell(command, workspace, storedBlobs(), (text) => desk.print(indent(text)));
      const output = await running.ended;
      running = null;
      asides.add({ command, output });
      desk.print(paint(look, 'dim', `  ${lastLine(output)} · the model reads it with your next message`));
      desk.redraw();
    },
  };
};

const indent = (text: string): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? '';

type Around = {
  readonly seat: Seat;
  readonly flags: RunFlags;
  arrive(to: Destination): Promise<Arrival>;
};

/** Reads the clipboard once at a time; a second wish meanwhile is the same one. */
const createPaste = (room: () => Room, { composer }: Seat, signal: AbortSignal) => {
  let pasting: Promise<void> | null = null;
  const paste = async (): Promise<void> => {
    const { pastePicture } = await import('./paste.js');
    await pastePicture(room(), composer, signal);
  };
  return (): Promise<void> => {
    pasting ??= paste().finally(() => {
      pasting = null;
    });
    return pasting;
  };
};

const createWishes = (room: Room, leaving: Leaving, { seat }: Around): DeskWishes => {
  const { session } = room;
  const asides = new Asides();
  const own = createOwnCommands(room, asides);
  /** Texts go in the order in which they were said, also while pictures of one are read. */
  let said: Promise<void> = Promise.resolve();
  let looking = 0;
  const send = (input: Input): void => {
    session.send(input).catch(() => undefined); // `session.ended` rejects with the same fault, and is waited for
  };
  const commands = () => import('./commands/run.js');
  return {
    say(text, mode) {
      seat.history.add(text);
      const input = { type: 'UserInput', text: asides.attach(text), mode } as const;
      const names = picturesNamed(text);
      if (names.length === 0 && looking === 0) return send(input);
      looking += 1;
      said = said.then(async () => {
        const { images, faults } = await attachPictures(names, room.workspace, session);
        for (const fault of faults)
          room.desk.print(paint(room.look, 'yellow', indentWords(fault, room.look.columns)));
        looking -= 1;
        send(images.length === 0 ? input : { ...input, images });
      });
    },
    cancel: () => send({ type: 'CancelTurn' }),
    answer: (batchId, callId, given) => send({ type: 'ApprovalAnswered', batchId, callId, ...given }),
    command(wish) {
      seat.history.add(wish.kind === 'shell' ? `!${wish.command}` : `/${wish.name} ${wish.words}`.trim());
      if (wish.kind === 'shell') void own.run(wish.command);
      else void commands().then(({ runCommand }) => runCommand(room, wish.name, wish.words));
    },
    stopShell: () => own.stop(),
    takenBack: (texts) => texts.map((text) => asides.detach(text)),
    paste: () => void room.paste(),
    editLast() {
      void Promise.all([commands(), import('./commands/sessions.js')]).then(
        ([{ attemptFor }, { editLast }]) =>
          attemptFor(room, () => editLast(room, (text) => asides.detach(text))),
      );
    },
    foresee: ({ call }) => foresee(call),
    suspend: () => seat.suspend(),
    end: (how) =>
      leaving.leave({ kind: 'exit', exit: how === 'hard' ? exitCodes.interrupted : exitCodes.done }),
  };
};

/** Sits down at a session until it is left. */
export const live = async (arrival: Arrival, around: Around): Promise<Departure> => {
  const { opened, steps, warnings, said, text } = arrival;
  const { seat, flags } = around;
  const { session } = opened;
  const { look, clock, composer, screen } = seat;
  const leaving = createLeaving(session);
  const leftBehind = new AbortController();
  const state = await session.state();
  const room: Room = {
    ...{ session, workspace: opened.settings.workspace, flags, look },
    get desk() {
      return desk;
    },
    paste: createPaste(() => room, seat, leftBehind.signal),
    move: async (to) => leaving.leave({ kind: 'move', arrival: await around.arrive(to) }),
    quit: () => leaving.leave({ kind: 'exit', exit: exitCodes.done }),
  };
  const furniture = { area: screen.area, look, clock, composer, rows: () => screen.size().rows };
  const desk: Desk = new Desk(furniture, createWishes(room, leaving, around), state);
  const ticking = createTicker(() => desk.redraw());
  if (said !== '') desk.print(paint(look, 'dim', `· ${said}`));
  desk.print(greeting(look, opened, state));
  if (text !== '') composer.setText(text);
  warnings.hear((warning) =>
    desk.print(paint(look, 'yellow', wrapWords(warningText(warning), look.columns - 1).join('\n'))),
  );
  const terminate = (): void => leaving.leave({ kind: 'exit', exit: exitCodes.terminated });
  desk.redraw();
  seat.sit({
    take: (pressed) => desk.take(pressed),
    interrupt: () => desk.interrupt(),
    terminate,
    redraw: () => desk.redraw(),
  });
  // After the first paint; what happens meanwhile is held, and so is drawn as it should be.
  await loadMarkdown();
  if (!opened.resumed && said === '') {
    tellEarlier(look, opened.settings.workspace, session.id).then(
      (earlier) => {
        if (earlier !== '' && !leftBehind.signal.aborted) desk.print(earlier);
      },
      () => undefined, // a hint that can't be given; /resume says why
    );
  }
  const deaf = steps.hear((stepped) => {
    desk.see(stepped);
    ticking.set(isMoving(stepped.state));
  });
  try {
    return await leaving.left;
  } finally {
    leftBehind.abort();
    seat.stand();
    deaf();
    ticking.set(false);
  }
};
