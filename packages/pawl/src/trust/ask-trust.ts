import type { Executable, TrustStore } from '@pawl/agent/extensions/trust/trust-store';
import type { CommandLevel } from '@pawl/agent/policy/call-sandbox-level';
import type { Clock } from '@pawl/agent/ports/clock';
import type { Pressed } from '@pawl/terminal/input/key';
import type { LiveArea } from '@pawl/terminal/live-area';
import { type Look, oneLine, paint } from '@pawl/terminal/paint-text';
import {
  ALLOW,
  type ContentAnswer,
  ContentQuestion,
  type ContentToRead,
  type YesKey,
} from '@pawl/terminal/questions/must-read-question';
import type { WindowSize } from '@pawl/terminal/questions/reading-window';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { kindText, type OpenQuestion } from './project-executables.js';

/** Asks about what a project wants to run, one question each, and stores the answers. */

export type TrustTerminal = {
  readonly area: LiveArea;
  readonly clock: Clock;
  look(): Look;
  size(): WindowSize;
  /** Passes on what is pressed until the returned function is called. In a plain terminal a line is a paste. */
  listen(take: (pressed: Pressed) => void): () => void;
};

const EVERY_COLUMN = Number.MAX_SAFE_INTEGER;

const UNTIL =
  'now and in later sessions of this folder, until its text changes. pawl trust revoke takes it back.';

/** What a yes means. */
export const meaningOf = ({ isRemote }: Executable): string =>
  isRemote === true
    ? `Its address gets what the model sends it, ${UNTIL}`
    : `It runs on your machine, ${UNTIL}`;

const LEVELS_MEANING =
  'y runs it in the sandbox: it reads this folder and has no network. w also gives it the network. o runs it as you, outside the sandbox, with all that you can reach.';

/** The answers that say yes to something that can run in a sandbox. */
export const LEVEL_ANSWERS: readonly (YesKey & { readonly level: CommandLevel })[] = [
  { key: 'y', means: 'sandboxed', level: 'read-only' },
  { key: 'w', means: 'with network', level: 'read-only+net' },
  { key: 'o', means: 'as you', level: 'off' },
];

/** More changed lines are shown as all lines before and all lines now: to compare them takes time that grows with their square. */
const CHANGED_LINES_MAX = 2_000;

const wholeChange = (before: string, content: string): string =>
  [...before.split('\n').map((line) => `-${line}`), ...content.split('\n').map((line) => `+${line}`)].join(
    '\n',
  );

/** The diff to the allowed content, or the whole content. */
const contentOf = async ({
  executable,
  before,
}: OpenQuestion): Promise<Pick<ContentToRead, 'content' | 'kind'>> => {
  const { content, name } = executable;
  if (before === null) return { content: `name: ${name}\n${content}`, kind: 'text' };
  const { createTwoFilesPatch } = await import('diff');
  const patch = createTwoFilesPatch('allowed', 'now', `${before}\n`, `${content}\n`, undefined, undefined, {
    context: Number.MAX_SAFE_INTEGER,
    maxEditLength: CHANGED_LINES_MAX,
  });
  return { content: patch ?? wholeChange(before, content), kind: 'diff' };
};

export const questionOf = async (open: OpenQuestion): Promise<ContentToRead> => {
  const { kind, name, isRemote } = open.executable;
  const meaning = meaningOf(open.executable);
  const subject = `${kindText[kind]} ${name}`;
  return {
    title:
      open.before === null
        ? `This project wants to ${isRemote === true ? 'use' : 'run'}: ${subject}`
        : `Changed since you allowed it: ${subject}`,
    ...(await contentOf(open)),
    ...(open.executable.levels === undefined
      ? { meaning }
      : { meaning: `${LEVELS_MEANING} ${meaning}`, yes: LEVEL_ANSWERS }),
  };
};

const askInWindow = (asked: ContentToRead, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    const draw = (): void => area.draw(() => question.frame(terminal.look(), terminal.size()));
    const end = (answer: ContentAnswer): void => {
      stop();
      question.close();
      resolve(answer);
    };
    const question = new ContentQuestion(asked, clock, { answered: end, changed: draw });
    const stop = terminal.listen((pressed) => {
      const leaves = pressed.kind === 'key' && pressed.key.control && ['c', 'd'].includes(pressed.key.name);
      if (leaves) end('later');
      else question.take(pressed, terminal.size());
    });
    question.open();
    draw();
  });

const OTHER_ANSWERS: Readonly<Record<string, ContentAnswer>> = { n: 'no', no: 'no', '': 'later' };

/** The answer in a typed line; undefined if it is none. */
const answerIn = (typed: string, { yes = ALLOW }: ContentToRead): ContentAnswer | undefined => {
  if (Object.hasOwn(OTHER_ANSWERS, typed)) return OTHER_ANSWERS[typed];
  return yes.find(({ key }) => typed === key || (key === 'y' && typed === 'yes'));
};

/** In a plain terminal: the whole text is printed, and a line answers. */
const askInLines = (asked: ContentToRead, terminal: TrustTerminal): Promise<ContentAnswer> =>
  new Promise((resolve) => {
    const { area, clock } = terminal;
    const look = terminal.look();
    const rows = new ContentQuestion(asked, clock, { answered: () => undefined, changed: () => undefined });
    const head = safe`? ${oneLine(asked.title, EVERY_COLUMN)}`;
    area.print(joinSafe([head, ...rows.rows(look, EVERY_COLUMN)], safe`\n`));
    const keys = (asked.yes ?? ALLOW).map(({ key }) => key).join(', ');
    const advise = (): void =>
      area.print(makeSafe(`Answer with ${keys}, n, or an empty line to be asked next time, then Enter.`));
    advise();
    const stop = terminal.listen((pressed) => {
      const isEnd = pressed.kind === 'key' && pressed.key.control && pressed.key.name === 'd';
      if (pressed.kind !== 'paste' && !isEnd) return;
      const typed = pressed.kind === 'paste' ? pressed.text.trim().toLowerCase() : '';
      const answer = answerIn(typed, asked);
      if (answer === undefined) return advise();
      stop();
      resolve(answer);
    });
  });

const saidOf = (answer: ContentAnswer): string => {
  if (answer === 'no') return 'never run';
  return answer === 'later' ? 'not run this time' : `allowed${answer.key === 'y' ? '' : `, ${answer.means}`}`;
};

/** Stores an answer; resolves with what holds now, in a few words. Rejects if it could not be stored. */
export const storeAnswer = async (
  trust: TrustStore,
  workspace: string,
  executable: Executable,
  answer: ContentAnswer,
): Promise<string> => {
  if (answer === 'no') await trust.refuse(workspace, executable);
  else if (answer !== 'later') {
    const granted = LEVEL_ANSWERS.find((known) => known === answer);
    await trust.allow(workspace, executable, granted?.level);
  }
  return saidOf(answer);
};

/** Asks each question in turn. A yes is stored before the next question; a failure to store it is thrown. */
export const askTrust = async (
  trust: TrustStore,
  workspace: string,
  open: readonly OpenQuestion[],
  terminal: TrustTerminal,
): Promise<void> => {
  for (const one of open) {
    const asked = await questionOf(one);
    const isPlain = terminal.look().plain === 'yes';
    const answer = await (isPlain ? askInLines : askInWindow)(asked, terminal);
    const stored = await storeAnswer(trust, workspace, one.executable, answer);
    const { kind, name } = one.executable;
    const said: Safe = safe`· ${makeSafe(kindText[kind])} ${oneLine(name, 60)}: ${makeSafe(stored)}`;
    terminal.area.print(paint(terminal.look(), 'dim', said));
  }
};

/** One line for what is not run because nobody was asked; null if there is nothing. */
export const notRunText = (open: readonly OpenQuestion[]): string | null => {
  if (open.length === 0) return null;
  const listed = (some: readonly OpenQuestion[]): string => {
    const names = some.map(({ executable: { kind, name } }) => `${kindText[kind]} ${name}`).slice(0, 5);
    return `${names.join(', ')}${some.length > names.length ? `, and ${some.length - names.length} more` : ''}`;
  };
  const isChanged = ({ before }: OpenQuestion): boolean => before !== null;
  const [changed, waiting] = [open.filter(isChanged), open.filter((one) => !isChanged(one))];
  const parts = [
    ...(waiting.length === 0 ? [] : [`not run, since you have not allowed it: ${listed(waiting)}`]),
    ...(changed.length === 0
      ? []
      : [`not run, since it has changed since you allowed it: ${listed(changed)}`]),
  ];
  return `${parts.join('. ')}. pawl trust shows and allows it.`;
};
