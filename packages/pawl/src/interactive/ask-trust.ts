/**
 * Before a session opens in a terminal: asks about what the project's files want to run, one
 * question each.
 */

import { openTrust, type TrustStore } from '@pawl/agent/extensions/trust';
import { type Clock, systemClock } from '@pawl/agent/platform/clock';
import { stateFolder } from '@pawl/agent/platform/environment';
import { type Pressed, readKeyboard, readLines } from '@pawl/terminal/keys';
import type { LiveArea, Screen } from '@pawl/terminal/live-area';
import { detectLook, type Look, oneLine, paint, warningText } from '@pawl/terminal/paint';
import { type ContentAnswer, ContentQuestion, type WindowSize } from '@pawl/terminal/questions';
import { joinSafe, makeSafe, safe } from '@pawl/terminal/safe-text';
import {
  hookSource,
  judgeExecutables,
  kindTexts,
  type OpenQuestion,
  serverSource,
  storeAnswer,
  type TrustQuestion,
  trustQuestion,
} from '../sessions/project-trust.js';

export type TrustTerminal = {
  readonly area: LiveArea;
  readonly clock: Clock;
  look(): Look;
  size(): WindowSize;
  /**
   * Passes on what is pressed until the returned function is called. In a plain terminal a line is
   * a paste.
   */
  listen(take: (pressed: Pressed) => void): () => void;
};

/** Asks about MCP servers and hooks of the project's files that the user has not answered yet. */
export const askAtStart = async (
  screen: Screen,
  plain: boolean,
  workspace: string,
): Promise<void> => {
  const { area } = screen;
  const trust = openTrust(stateFolder(process.env), (text) => area.print(warningText(text)));
  const { open } = await judgeExecutables(trust, workspace, [serverSource, hookSource]);
  if (open.length === 0) return;
  screen.take(); // raw mode, and the modes in which keys are read
  await askTrust(trust, workspace, open, {
    area,
    clock: systemClock,
    size: () => screen.size(),
    look: () => {
      const look = detectLook(process.stdout, process.env);
      return plain ? { ...look, colour: 'no', plain: 'yes' } : look;
    },
    listen: (take) =>
      plain
        ? readLines(process.stdin, { take })
        : readKeyboard(process.stdin, { take, receive: () => undefined }),
  });
};

/**
 * Asks each question in turn. A yes is stored before the next question; a failure to store it is
 * thrown.
 */
export const askTrust = async (
  trust: TrustStore,
  workspace: string,
  open: readonly OpenQuestion[],
  terminal: TrustTerminal,
): Promise<void> => {
  for (const one of open) {
    const question = addLevels(await trustQuestion(one));
    const ask = terminal.look().plain === 'yes' ? askInLines : askInWindow;
    const key = await ask(question, terminal);
    const answer =
      typeof key === 'string' ? key : (question.yes.find((yes) => yes === key) ?? 'later');
    const stored = await storeAnswer(trust, workspace, one.executable, answer);
    const { kind, name } = one.executable;
    const text = safe`· ${makeSafe(kindTexts[kind])} ${oneLine(name, 60)}: ${makeSafe(stored)}`;
    terminal.area.print(paint(terminal.look(), 'dim', text));
  }
};

/** Says what each yes means, if there are several. */
const addLevels = (question: TrustQuestion): TrustQuestion =>
  question.yes.length === 1
    ? question
    : {
        ...question,
        meaning:
          'y runs it in the sandbox: it reads this folder and has no network. w also gives it ' +
          'the network. o runs it as you, outside the sandbox, with all that you can reach. ' +
          `${question.meaning}`,
      };

const askInWindow = (question: TrustQuestion, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    const draw = (): void =>
      area.draw(() => contentQuestion.frame(terminal.look(), terminal.size()));
    const end = (answer: ContentAnswer): void => {
      stop();
      contentQuestion.close();
      resolve(answer);
    };
    const contentQuestion = new ContentQuestion(question, clock, { answered: end, changed: draw });
    const stop = terminal.listen((pressed) => {
      const leaves =
        pressed.kind === 'key' && pressed.key.control && ['c', 'd'].includes(pressed.key.name);
      if (leaves) end('later');
      else contentQuestion.take(pressed, terminal.size());
    });
    contentQuestion.open();
    draw();
  });

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

/** In a plain terminal: the whole text is printed, and a line answers. */
const askInLines = (question: TrustQuestion, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    // Only for its rows: the answers are read here, and nothing is drawn again.
    const handlers = { answered: () => undefined, changed: () => undefined };
    const rows = new ContentQuestion(question, clock, handlers).rows(terminal.look(), EVERY_COLUMN);
    area.print(joinSafe([safe`? ${oneLine(question.title, EVERY_COLUMN)}`, ...rows], safe`\n`));
    const keys = question.yes.map(({ key }) => key).join(', ');
    const advise = (): void =>
      area.print(
        makeSafe(`Answer with ${keys}, n, or an empty line to be asked next time, then Enter.`),
      );
    advise();
    const stop = terminal.listen((pressed) => {
      const isEnd = pressed.kind === 'key' && pressed.key.control && pressed.key.name === 'd';
      if (pressed.kind !== 'paste' && !isEnd) return;
      const line = pressed.kind === 'paste' ? pressed.text.trim().toLowerCase() : '';
      const answer = answerInLine(line, question);
      if (answer === undefined) return advise();
      stop();
      resolve(answer);
    });
  });

/** Undefined if the line is no answer. */
const answerInLine = (line: string, { yes }: TrustQuestion): ContentAnswer | undefined => {
  if (line === '') return 'later';
  if (line === 'n' || line === 'no') return 'no';
  return yes.find(({ key }) => line === key || (key === 'y' && line === 'yes'));
};
